"""What the Node shall be, and how it gets there: the pure modules."""

from __future__ import annotations

from typing import Any

from kubelet_mp.config import KubeletConfiguration, Settings
from kubelet_mp.host.procfs import Identity
from kubelet_mp.model.runtime import HandlerFeatures, Image, RuntimeState
from kubelet_mp.rooms.reporter.node import conditions, difference, registration, status
from kubelet_mp.rooms.reporter.node.lease import renewed
from kubelet_mp.rooms.reporter.node.seen import Host, Seen, observe
from kubelet_mp.wire.messages import NodeFacts, PodForgotten, RelistDone

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:10Z"
HOST = Host(Identity("m", "s", "boot", "6.1", "Debian", "amd64"), 1024)
RUNTIME = RuntimeState(ready=True, network_ready=True, name="containerd", version="v2.1.9",
                       handlers=(HandlerFeatures("", True, False), HandlerFeatures("runc", True, True)))
FACTS = NodeFacts(("192.0.2.1",), "node", 2, "systemd",
                  {"cpu": 2000, "memory": 4 << 30, "pods": 110, "ephemeral-storage": 10 << 30},
                  {"cpu": 1900, "memory": (4 << 30) - 1000, "pods": 110, "ephemeral-storage": 9 << 30})
GOOD = Seen(FACTS, RUNTIME, "", (Image("i", ("t:1",), ("t@sha256:1",), 5),))


def settings(**more: Any) -> Settings:
    return Settings(node_name="node", hostname="node", kubeconfig="x", **more)


def made(seen: Seen = GOOD, old: dict[str, Any] | None = None, now: str = NOW, **more: Any) -> dict[str, Any]:
    return status.status(settings(**more), HOST, seen, old or {}, now)


def by_type(found: dict[str, Any]) -> Any:
    return conditions.by_type(found["conditions"])


# ---- seen ----


def test_only_news_are_news() -> None:
    assert observe(GOOD, PodForgotten("u")) is GOOD
    assert observe(GOOD, RelistDone(1.0, frozenset({"u"}))) is GOOD
    assert observe(GOOD, RelistDone(1.0, frozenset(), False, "late")).pleg == "late"
    assert not Seen().complete
    assert GOOD.complete


# ---- conditions ----


def test_ready_says_all_that_is_wrong() -> None:
    assert conditions.ready(GOOD, True)["message"] == "kubelet is posting ready status"
    down = RuntimeState(name="containerd", message="container runtime is down: no socket", network_message="unknown, x")
    assert conditions.ready(Seen(FACTS, down, ""), True) == {
        "type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "container runtime is down"}
    network = RuntimeState(ready=True, name="c", network_message="NetworkReady=false reason:N message:m")
    assert conditions.ready(Seen(FACTS, network), True)["message"] == (
        "[PLEG is not healthy: pleg has yet to be successful, "
        "container runtime network not ready: NetworkReady=false reason:N message:m]")
    bad = RuntimeState(name="c", network_ready=True, message="RuntimeReady=false reason:R message:m")
    assert conditions.ready(Seen(FACTS, bad, ""), True)["message"] == (
        "container runtime not ready: RuntimeReady=false reason:R message:m")
    assert conditions.ready(Seen(None, RUNTIME, ""), False)["message"] == (
        "missing node capacity for resources: cpu, memory, pods")
    assert conditions.NOT_YET in conditions.ready(Seen(FACTS), True)["message"]


def test_a_transition_keeps_its_time_until_the_status_changes() -> None:
    first = made()
    again = made(old=first, now=LATER)
    assert {one["lastTransitionTime"] for one in again["conditions"]} == {NOW}
    assert {one["lastHeartbeatTime"] for one in again["conditions"]} == {LATER}
    ill = made(Seen(FACTS, RUNTIME, "late"), old=first, now=LATER)
    assert by_type(ill)["Ready"]["lastTransitionTime"] == LATER
    assert by_type(ill)["DiskPressure"]["lastTransitionTime"] == NOW
    assert conditions.news(ill["conditions"], first["conditions"]) == ["NodeNotReady"]
    assert conditions.news(again["conditions"], first["conditions"]) == []
    assert conditions.news(first["conditions"], ()) == [
        "NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID", "NodeReady"]
    assert "NodeNotReady" not in conditions.news(ill["conditions"], ())


# ---- status ----


def test_the_status_of_a_new_node() -> None:
    found = made()
    assert [(one["type"], one["address"]) for one in found["addresses"]] == [
        ("InternalIP", "192.0.2.1"), ("Hostname", "node")]
    assert found["capacity"] == {"cpu": "2", "memory": "4Gi", "pods": "110", "ephemeral-storage": "10Gi"}
    assert found["allocatable"]["cpu"] == "1900m"
    info = found["nodeInfo"]
    assert info["containerRuntimeVersion"] == "containerd://2.1.9"
    assert info["kubeletVersion"].startswith("v1.37.2+kubelet-mp.")
    assert info["swap"] == {"capacity": 1024}
    assert found["runtimeHandlers"][0] == {"features": {"recursiveReadOnlyMounts": True, "userNamespaces": False}}
    assert found["images"] == [{"names": ["t@sha256:1", "t:1"], "sizeBytes": 5}]
    assert found["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 10250}}


def test_what_is_not_known_yet_is_not_told() -> None:
    found = made(Seen())
    assert not {"addresses", "capacity", "images", "features"} & found.keys()
    assert "containerRuntimeVersion" not in found["nodeInfo"]
    assert by_type(found)["Ready"]["status"] == "False"


def test_images_are_the_largest_with_few_names() -> None:
    many = [Image(f"i{n}", tuple(f"t{n}:{k}" for k in range(9)), (), n) for n in range(4)]
    found = status.images(many, 2)
    assert [one["sizeBytes"] for one in found] == [3, 2]
    assert len(found[0]["names"]) == 5
    assert len(status.images(many, -1)) == 4
    assert status.images([Image("i", size=1)], 1) == [{"sizeBytes": 1}]


def test_versions_of_runtimes() -> None:
    told = {"v2.1.9": "2.1.9", "1.6.20~ds1": "1.6.20", "1.30.0-rc.1": "1.30.0-rc.1", "odd": "odd"}
    assert {text: status.plain_version(text) for text in told} == told


def test_extended_resources_of_others_stay_and_are_allocatable() -> None:
    found = made(old={"capacity": {"example.com/x": "4", "hugepages-2Mi": "0"}, "allocatable": {}})
    assert found["capacity"]["example.com/x"] == found["allocatable"]["example.com/x"] == "4"
    assert "hugepages-2Mi" not in found["capacity"]


def test_a_cloud_provider_writes_the_addresses() -> None:
    theirs = [{"type": "ExternalIP", "address": "198.51.100.1"}]
    assert made(cloud_provider="external", old={"addresses": theirs})["addresses"] == theirs
    assert made(cloud_provider="external")["addresses"] == [{"type": "Hostname", "address": "node"}]
    given = made(cloud_provider="external", node_ips=("192.0.2.1",))["addresses"]
    assert given[0] == {"type": "InternalIP", "address": "192.0.2.1"}


# ---- difference ----


def test_a_heartbeat_alone_does_not_matter() -> None:
    first = made()
    patch = difference.of_status(first, made(old=first, now=LATER))
    assert set(patch) == {"conditions"}
    assert not difference.matters(patch, first)
    ill = difference.of_status(first, made(Seen(FACTS, RUNTIME, "late", GOOD.images), first, LATER))
    assert difference.matters(ill, first)
    assert not difference.matters({}, first)
    assert difference.of_status(first, made(old=first)) == {}


def test_what_the_server_fills_in_is_no_difference() -> None:
    first = made()
    first["nodeInfo"]["kubeProxyVersion"] = ""
    first["runtimeHandlers"][0]["name"] = ""
    assert difference.of_status(first, made()) == {}


def test_addresses_are_replaced_and_lost_resources_taken_out() -> None:
    old = {**made(), "addresses": [{"type": "InternalIP", "address": "192.0.2.9"}]}
    old["capacity"] = {**old["capacity"], "hugepages-2Mi": "2Mi"}
    patch = difference.of_status(old, made())
    assert patch["addresses"][-1] == {"$patch": "replace"}
    assert patch["capacity"] == {"hugepages-2Mi": None}
    gone = difference.of_status(made(), status.status(settings(), Host(HOST.identity), GOOD, made(), NOW))
    assert gone == {"nodeInfo": {"swap": None}}


# ---- registration ----


def test_a_new_node() -> None:
    kubelet = KubeletConfiguration(register_with_taints=[{"key": "k", "effect": "NoSchedule"}], provider_id="p://1")
    node = registration.initial(
        settings(kubelet=kubelet, node_labels={"a": "b", "kubernetes.io/arch": "mine"}, cloud_provider="external",
                 node_ips=("192.0.2.1",)), HOST, {})
    assert node["metadata"]["labels"] == {
        "kubernetes.io/hostname": "node", "kubernetes.io/os": "linux", "kubernetes.io/arch": "mine",
        "beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64", "a": "b"}
    assert node["metadata"]["annotations"] == {
        registration.ATTACH_DETACH: "true", registration.PROVIDED_IP: "192.0.2.1"}
    assert [one["key"] for one in node["spec"]["taints"]] == [
        "k", "node.cloudprovider.kubernetes.io/uninitialized"]
    assert node["spec"]["providerID"] == "p://1"


def test_an_existing_node_is_put_right_and_otherwise_left_alone() -> None:
    ours = settings(node_labels={"mine": "new"})
    wanted = registration.initial(ours, HOST, made())
    same = {"metadata": {**wanted["metadata"]}, "status": made()}
    assert registration.reconciled(same, wanted, ours) == {}
    old = {"metadata": {"labels": {"kubernetes.io/hostname": "other", "theirs": "x"}},
           "status": {"capacity": {"example.com/x": "4", "hugepages-2Mi": "2Mi"},
                      "allocatable": {"example.com/y": "0"}}}
    patch = registration.reconciled(old, wanted, ours)
    assert patch["metadata"]["labels"]["kubernetes.io/hostname"] == "node"
    assert not {"theirs", "mine"} & patch["metadata"]["labels"].keys()
    assert patch["metadata"]["annotations"] == {registration.ATTACH_DETACH: "true"}
    assert patch["status"] == {"capacity": {"example.com/x": "0", "hugepages-2Mi": None}}


def test_each_pass_keeps_os_and_arch() -> None:
    node = {"metadata": {"labels": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
                         "annotations": {registration.PROVIDED_IP: "x"}}}
    assert registration.upkeep(node, settings(), HOST) == {"annotations": {registration.PROVIDED_IP: None}}
    assert registration.upkeep({"metadata": {}}, settings(), HOST) == {
        "labels": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}}


# ---- lease ----


def test_a_lease_keeps_what_others_wrote() -> None:
    new = renewed({}, "node", 40, "u", "t1")
    assert new["metadata"] == {"name": "node", "namespace": "kube-node-lease", "ownerReferences": [
        {"apiVersion": "v1", "kind": "Node", "name": "node", "uid": "u"}]}
    assert new["spec"] == {"holderIdentity": "node", "leaseDurationSeconds": 40, "renewTime": "t1"}
    old = {"metadata": {**new["metadata"], "resourceVersion": "7"}, "spec": {"leaseTransitions": 1}}
    again = renewed(old, "node", 40, "other", "t2")
    assert again["metadata"] == old["metadata"]
    assert again["spec"]["leaseTransitions"] == 1
