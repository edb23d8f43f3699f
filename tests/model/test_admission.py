import dataclasses
from typing import Any

import pytest

from kubelet_mp.model.admission import NodeOffer, Preemption, Rejection, host_ports, judge

OFFER = NodeOffer(node_name="node", allocatable={"cpu": 2000, "memory": 1 << 30, "pods": 3},
                  labels={"disk": "ssd", "n": "5"}, unsafe_sysctls=("net.core.*", "kernel.msgmax"))


def pod(requests: dict[str, str] | None = None, ports: list[dict[str, Any]] | None = None, **spec: Any
        ) -> dict[str, Any]:
    box = {"name": "c", "image": "i", "resources": {"requests": requests or {}}, "ports": ports or []}
    return {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": [box], **spec}}


def reason_of(verdict: Rejection | Preemption | None) -> str:
    return verdict.reason if isinstance(verdict, Rejection) else ""


def test_what_fits_is_admitted() -> None:
    assert judge(pod({"cpu": "1", "memory": "512Mi"}), [pod({"cpu": "1"})], OFFER) is None


@pytest.mark.parametrize(("candidate", "others", "reason", "text"), [
    (pod({"cpu": "1500m"}), [pod({"cpu": "600m"})], "OutOfcpu",
     "Node didn't have enough resource: cpu, requested: 1500, used: 600, capacity: 2000"),
    (pod({"memory": "2Gi"}), [], "OutOfmemory",
     "Node didn't have enough resource: memory, requested: 2147483648, used: 0, capacity: 1073741824"),
    (pod(), [pod()] * 3, "OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"),
    (pod({"ephemeral-storage": "1Gi"}), [], "OutOfephemeral-storage",
     "Node didn't have enough resource: ephemeral-storage, requested: 1073741824, used: 0, capacity: 0"),
])
def test_what_does_not_fit(candidate: Any, others: Any, reason: str, text: str) -> None:
    verdict = judge(candidate, others, OFFER)
    assert isinstance(verdict, Rejection)
    assert (verdict.reason, verdict.message) == (reason, f"Pod was rejected: {text}")


def test_extended_resources_that_the_node_lacks_are_ignored() -> None:
    assert judge(pod({"example.com/gpu": "1"}), [], OFFER) is None


@pytest.mark.parametrize(("one", "other", "clash"), [
    ({"hostPort": 80}, {"hostPort": 80}, True),
    ({"hostPort": 80, "protocol": "UDP"}, {"hostPort": 80}, False),
    ({"hostPort": 80, "hostIP": "192.0.2.1"}, {"hostPort": 80, "hostIP": "192.0.2.2"}, False),
    ({"hostPort": 80, "hostIP": "192.0.2.1"}, {"hostPort": 80}, True),
    ({"containerPort": 80}, {"containerPort": 80}, False),
])
def test_host_ports(one: Any, other: Any, clash: bool) -> None:
    verdict = judge(pod(ports=[one]), [pod(ports=[other])], OFFER)
    assert reason_of(verdict) == ("NodePorts" if clash else "")


def test_ports_of_sidecars_count() -> None:
    side = {"name": "s", "restartPolicy": "Always", "ports": [{"hostPort": 99}]}
    assert host_ports(pod(initContainers=[side, {**side, "restartPolicy": None}])) == [("0.0.0.0", "TCP", 99)]


def expression(operator: str, key: str, *values: str) -> dict[str, Any]:
    match = {"key": key, "operator": operator, "values": list(values)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [match]}]}}}


@pytest.mark.parametrize(("spec", "reason"), [
    ({"nodeName": "node"}, ""), ({"nodeName": "else"}, "NodeName"),
    ({"nodeSelector": {"disk": "ssd"}}, ""), ({"nodeSelector": {"disk": "hdd"}}, "NodeAffinity"),
    ({"affinity": expression("In", "disk", "ssd", "nvme")}, ""),
    ({"affinity": expression("In", "x", "y")}, "NodeAffinity"),
    ({"affinity": expression("NotIn", "x", "y")}, ""), ({"affinity": expression("Exists", "disk")}, ""),
    ({"affinity": expression("DoesNotExist", "disk")}, "NodeAffinity"),
    ({"affinity": expression("Gt", "n", "4")}, ""),
    ({"affinity": expression("Lt", "n", "4")}, "NodeAffinity"),
    ({"affinity": expression("Gt", "disk", "4")}, "NodeAffinity"),
    ({"os": {"name": "windows"}}, "PodOSNotSupported"),
    ({"securityContext": {"supplementalGroupsPolicy": "Strict"}}, "SupplementalGroupsPolicyNotSupported"),
])  # fmt: skip
def test_node_and_platform(spec: Any, reason: str) -> None:
    verdict = judge(pod(**spec), [], OFFER)
    assert reason_of(verdict) == reason


@pytest.mark.parametrize(("name", "spec", "text"), [
    ("kernel.shm_rmid_forced", {}, ""), ("net/ipv4/tcp_rmem", {}, ""), ("net.core.somaxconn", {}, ""),
    ("kernel.msgmax", {}, ""), ("kernel.msgmnb", {}, 'forbidden sysctl: "kernel.msgmnb" not allowlisted'),
    ("net.ipv4.tcp_rmem", {"hostNetwork": True},
     'forbidden sysctl: "net.ipv4.tcp_rmem" not allowed with host net enabled'),
])
def test_sysctls(name: str, spec: Any, text: str) -> None:
    verdict = judge(pod(securityContext={"sysctls": [{"name": name, "value": "1"}]}, **spec), [], OFFER)
    assert (verdict.text if isinstance(verdict, Rejection) else "") == text


NO_EXECUTE = {"key": "broken", "value": "yes", "effect": "NoExecute"}


@pytest.mark.parametrize(("tolerations", "taint", "admitted"), [
    ([], NO_EXECUTE, False), ([], {**NO_EXECUTE, "effect": "NoSchedule"}, True),
    ([{"operator": "Exists"}], NO_EXECUTE, True), ([{"key": "broken", "operator": "Exists"}], NO_EXECUTE, True),
    ([{"key": "broken", "value": "yes"}], NO_EXECUTE, True), ([{"key": "broken", "value": "no"}], NO_EXECUTE, False),
    ([{"operator": "Exists", "effect": "NoSchedule"}], NO_EXECUTE, False),
    ([{"key": "other", "operator": "Exists", "effect": "NoExecute"}], NO_EXECUTE, False),
])  # fmt: skip
def test_taints(tolerations: Any, taint: Any, admitted: bool) -> None:
    offer = dataclasses.replace(OFFER, taints=(taint,))
    verdict = judge(pod(tolerations=tolerations), [], offer)
    assert reason_of(verdict) == ("" if admitted else "TaintToleration")
    if not admitted:
        assert isinstance(verdict, Rejection)
        assert verdict.text == "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
    static = pod()
    static["metadata"]["annotations"] = {"kubernetes.io/config.source": "file"}
    assert judge(static, [], offer) is None


def test_the_order_of_reasons() -> None:
    offer = dataclasses.replace(OFFER, taints=(NO_EXECUTE,), apparmor=False)
    profile = {"appArmorProfile": {"type": "RuntimeDefault"}}
    bad = pod({"cpu": "9"}, nodeName="else", nodeSelector={"x": "y"}, os={"name": "windows"},
              securityContext={"sysctls": [{"name": "vm.swappiness", "value": "1"}], **profile})
    bad["metadata"]["labels"] = {"kubernetes.io/os": "windows"}
    cures: list[tuple[str, Any]] = [
        ("SysctlForbidden", lambda: bad["spec"]["securityContext"].pop("sysctls")),
        ("PodOSSelectorNodeLabelDoesNotMatch", lambda: bad["metadata"].pop("labels")),
        ("PodOSNotSupported", lambda: bad["spec"].pop("os")),
        ("OutOfcpu", lambda: bad["spec"]["containers"][0].pop("resources")),
        ("NodeAffinity", lambda: bad["spec"].pop("nodeSelector")), ("NodeName", lambda: bad["spec"].pop("nodeName")),
        ("TaintToleration", lambda: bad["spec"].update(tolerations=[{"operator": "Exists"}])),
        ("AppArmor", lambda: bad["spec"].pop("securityContext")), ("", lambda: None),
    ]
    for reason, cure in cures:
        assert reason_of(judge(bad, [], offer)) == reason
        cure()


def test_what_the_features_and_the_host_refuse() -> None:
    plain = dataclasses.replace(OFFER, apparmor=False, pod_level_resources=False)
    whole = pod(resources={"limits": {"cpu": "1"}})
    assert reason_of(judge(whole, [], plain)) == "PodLevelResourcesNotSupported"
    assert judge(whole, [], OFFER) is None
    assert judge(pod(securityContext={"appArmorProfile": {"type": "Unconfined"}}), [], plain) is None
    old = pod()
    old["metadata"]["annotations"] = {"container.apparmor.security.beta.kubernetes.io/c": "runtime/default"}
    verdict = judge(old, [], plain)
    assert isinstance(verdict, Rejection)
    assert verdict.text == "Cannot enforce AppArmor: AppArmor is not enabled on the host"


def test_a_safe_sysctl_of_a_newer_kernel_is_not_safe_on_this_one() -> None:
    old = dataclasses.replace(OFFER, kernel=(4, 4))
    wish = pod(securityContext={"sysctls": [{"name": "net.ipv4.tcp_rmem", "value": "1 2 3"}]})
    assert reason_of(judge(wish, [], old)) == "SysctlForbidden"
    assert judge(wish, [], dataclasses.replace(OFFER, kernel=(4, 15))) is None


def test_an_extended_resource_that_the_node_has_is_counted() -> None:
    offer = dataclasses.replace(OFFER, allocatable={**OFFER.allocatable, "example.com/gpu": 1})
    wish = pod({"example.com/gpu": "1"})
    assert judge(wish, [], offer) is None
    assert reason_of(judge(wish, [wish], offer)) == "OutOfexample.com/gpu"
