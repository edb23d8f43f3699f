from typing import Any

import pytest

from kubelet_mp.model.admission import NodeOffer, host_ports, judge

OFFER = NodeOffer(node_name="node", allocatable={"cpu": 2000, "memory": 1 << 30, "pods": 3},
                  labels={"disk": "ssd", "n": "5"}, unsafe_sysctls=("net.core.*", "kernel.msgmax"))


def pod(requests: dict[str, str] | None = None, ports: list[dict[str, Any]] | None = None, **spec: Any
        ) -> dict[str, Any]:
    box = {"name": "c", "image": "i", "resources": {"requests": requests or {}}, "ports": ports or []}
    return {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": [box], **spec}}


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
    assert verdict is not None
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
    assert (verdict.reason if verdict else "") == ("NodePorts" if clash else "")


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
    assert (verdict.reason if verdict else "") == reason


@pytest.mark.parametrize(("name", "spec", "text"), [
    ("kernel.shm_rmid_forced", {}, ""), ("net/ipv4/tcp_rmem", {}, ""), ("net.core.somaxconn", {}, ""),
    ("kernel.msgmax", {}, ""), ("kernel.msgmnb", {}, 'forbidden sysctl: "kernel.msgmnb" not allowlisted'),
    ("net.ipv4.tcp_rmem", {"hostNetwork": True},
     'forbidden sysctl: "net.ipv4.tcp_rmem" not allowed with hostNetwork enabled'),
])
def test_sysctls(name: str, spec: Any, text: str) -> None:
    verdict = judge(pod(securityContext={"sysctls": [{"name": name, "value": "1"}]}, **spec), [], OFFER)
    assert (verdict.text if verdict else "") == text
