"""The pods of an API server, in the whole room with a server over HTTP."""

import pytest

from kubelet_mp.config import Settings
from kubelet_mp.config.model import KubeletConfiguration
from kubelet_mp.rooms.sources.room import SourcesRoom
from kubelet_mp.wire.messages import DesiredPod, DesiredSet, MirrorPod, MirrorSet, NodeObject, SourceProblem
from tests.fakes.api import FakeApi
from tests.fakes.link import RoomRunner
from tests.rooms.sources.test_file import manifest
from tests.support import wait_until

PODS = "/api/v1/namespaces/default/pods"
NODE = NodeObject({"kind": "Node", "metadata": {"name": "node"}})


def pod(name, node="node", **meta):
    return {"kind": "Pod", "metadata": {"name": name, **meta},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "x"}]}, "status": {"phase": "Pending"}}


def mirror(name):
    return pod(name, annotations={"kubernetes.io/config.mirror": "hash", "kubernetes.io/config.source": "file"})


@pytest.fixture
def api():
    with FakeApi() as api:
        yield api


@pytest.fixture
def runner(api, tmp_path):
    with room(api, tmp_path) as runner:
        yield runner


def room(api, tmp_path, **kubelet):
    place = tmp_path / "kubeconfig"
    api.kubeconfig(place)
    return RoomRunner(SourcesRoom, Settings(
        node_name="node", kubeconfig=str(place), kubelet=KubeletConfiguration(**kubelet)))


def names(runner):
    pods = {message.uid: message.pod for message in runner.link.of(DesiredPod, to="")}
    return sorted(pod["metadata"]["name"] for pod in pods.values() if pod)


def test_nothing_is_asked_before_the_node_is_registered(api, runner):
    api.add(pod("a"))
    runner.run_here(lambda: None)
    assert api.requests == [] and runner.link.messages == []
    runner.give(NODE, NODE)
    assert runner.wait_for(DesiredSet, lambda m: m.ready).uids == {api.get(f"{PODS}/a")["metadata"]["uid"]}
    wait_until(lambda: api.watches == 1)
    assert [one.params["fieldSelector"] for one in api.asked("list")] == ["spec.nodeName=node"]


def test_without_registration_it_starts_at_once(api, tmp_path):
    with room(api, tmp_path, register_node=False) as runner:
        assert runner.wait_for(DesiredSet, lambda m: m.ready) == DesiredSet(frozenset(), True)


def test_pods_come_change_and_go(api, runner):
    runner.give(NODE)
    runner.wait_for(DesiredSet, lambda m: m.ready)
    wait_until(lambda: api.watches == 1)
    api.add(pod("elsewhere", node="other"))
    made = api.add(pod("a", labels={"x": "1"}, managedFields=[{"manager": "m"}]))
    desired = runner.wait_for(DesiredPod)
    meta = desired.pod["metadata"]
    assert (desired.uid, desired.source) == (made["metadata"]["uid"], "api")
    assert meta["annotations"]["kubernetes.io/config.source"] == "api" and "managedFields" not in meta
    assert (desired.pod["kind"], desired.pod["apiVersion"]) == ("Pod", "v1")
    api.change(f"{PODS}/a", lambda found: found["metadata"]["labels"].update(x="2"))
    changed = runner.wait_for(DesiredPod, lambda m: m.pod["metadata"]["labels"] == {"x": "2"})
    seen = "kubernetes.io/config.seen"
    assert changed.pod["metadata"]["annotations"][seen] == meta["annotations"][seen]
    api.kube().delete(f"{PODS}/a")
    runner.wait_for(DesiredPod, lambda m: m.pod["metadata"].get("deletionGracePeriodSeconds") == 30)
    api.remove(f"{PODS}/a")
    runner.wait_for(DesiredPod, lambda m: m.pod is None)
    assert runner.wait_for(DesiredSet) == DesiredSet(frozenset(), True)


def test_what_went_while_the_watch_was_lost_is_found_by_a_new_list(api, runner):
    runner.give(NODE)
    for name in "abc":
        api.add(pod(name))
    wait_until(lambda: names(runner) == ["a", "b", "c"])
    wait_until(lambda: api.watches == 1)
    hanging = api.hang("watch")
    api.cut()
    wait_until(lambda: api.watches == 0)
    api.remove(f"{PODS}/b")
    api.add(pod("d"))
    api.expire()
    hanging.set()
    wait_until(lambda: names(runner) == ["a", "c", "d"])
    assert [one.params.get("resourceVersion") for one in api.asked("list")] == ["0", None]


def test_a_server_that_is_away_takes_no_pod_away(api, runner):
    runner.give(NODE)
    api.add(pod("a"))
    wait_until(lambda: names(runner) == ["a"])
    api.down()
    problem = runner.wait_for(SourceProblem, lambda m: m.problem)
    assert problem.origin == "API server" and "Connection refused" in problem.problem
    api.add(pod("b"))
    api.up()
    wait_until(lambda: names(runner) == ["a", "b"], 10)
    runner.wait_for(SourceProblem, lambda m: not m.problem)
    assert all(message.ready for message in runner.link.of(DesiredSet)[1:])
    assert not any(message.pod is None for message in runner.link.of(DesiredPod))


def test_mirror_pods_are_told_to_the_reporter_and_never_desired(api, runner):
    shown = api.add(mirror("web-node"))["metadata"]
    runner.give(NODE)
    assert runner.wait_for(MirrorSet) == MirrorSet(frozenset(["default/web-node"]))
    told = runner.wait_for(MirrorPod)
    assert (told.uid, told.key()) == (shown["uid"], "default/web-node") and told.mirror["kind"] == "Pod"
    assert runner.wait_for(DesiredSet) == DesiredSet(frozenset(), True)
    runner.link.clear()
    runner.come_up("reporter")
    wait_until(lambda: len(runner.link.messages) == 3)
    assert {to for to, _ in runner.link.sent} == {"reporter"}
    wait_until(lambda: api.watches == 1)
    api.remove(f"{PODS}/web-node")
    assert runner.wait_for(MirrorPod, lambda m: m.mirror is None).name == "default/web-node"
    assert runner.wait_for(MirrorSet) == MirrorSet(frozenset())


def test_nothing_is_ready_before_both_have_spoken(api, tmp_path):
    place = tmp_path / "manifests"
    place.mkdir()
    (place / "web").write_text(manifest("web"))
    with room(api, tmp_path, static_pod_path=str(place)) as runner:
        assert len(runner.wait_for(DesiredSet, lambda m: m.uids).uids) == 1
        assert not any(message.ready for message in runner.link.of(DesiredSet))
        api.add(mirror("web-node"))
        api.add(pod("a"))
        runner.give(NODE)
        assert len(runner.wait_for(DesiredSet, lambda m: m.ready).uids) == 2


def test_credentials_that_a_bootstrap_brings_later(api, tmp_path):
    place = tmp_path / "kubeconfig"
    with room(api, tmp_path, register_node=False) as runner:
        runner.wait_for(DesiredSet, lambda m: m.ready)
    place.unlink()
    settings = Settings(node_name="node", kubeconfig=str(place), bootstrap_kubeconfig="/b",
                        kubelet=KubeletConfiguration(register_node=False))
    with RoomRunner(SourcesRoom, settings) as runner:
        runner.run_here(lambda: None)
        assert runner.link.of(DesiredSet) == []
        api.kubeconfig(place)
        runner.wait_for(DesiredSet, lambda m: m.ready)


def test_a_fault_in_the_watching_thread_ends_the_room(api, tmp_path):
    api.add(pod("a"))
    api.change(f"{PODS}/a", lambda found: found["metadata"].pop("uid"))
    runner = room(api, tmp_path, register_node=False)
    with pytest.raises((KeyError, AssertionError), match="uid"), runner:
        wait_until(lambda: runner.failure() is not None)
