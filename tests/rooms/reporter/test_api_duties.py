"""Statuses, mirror pods and events in the whole room, with an API server over HTTP."""

import pytest

from kubelet_mp.config import Settings
from kubelet_mp.rooms.reporter.apievents import KEPT, ApiEvents
from kubelet_mp.rooms.reporter.mirrors import MIRROR, Mirrors
from kubelet_mp.rooms.reporter.podstatus import PodStatuses
from kubelet_mp.rooms.reporter.room import ReporterRoom
from kubelet_mp.wire.messages import (
    DesiredPod,
    DesiredSet,
    Event,
    MirrorPod,
    MirrorSet,
    NodeObject,
    PodFinished,
    PodForgotten,
    PodStatus,
    StatusSet,
)
from tests.fakes.api import FakeApi
from tests.fakes.link import RoomRunner
from tests.support import wait_until

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def api():
    with FakeApi() as api:
        yield api


@pytest.fixture
def reporter(api, tmp_path):
    api.add({"kind": "Node", "metadata": {"name": "node"}})
    settings = Settings(node_name="node", kubeconfig=str(tmp_path / "none"))
    duties = (PodStatuses, Mirrors, ApiEvents)
    with RoomRunner(ReporterRoom, settings, make=duties, make_api=api.kube) as room:
        yield room


def make(api, name="p"):
    return api.add({"kind": "Pod", "metadata": {"name": name}, "spec": {"nodeName": "node"},
                    "status": {"phase": "Pending", "conditions": [{"type": "gate", "status": "True"}]}})


def told(pod, phase, terminal=False, source="api"):
    status = {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}
    return PodStatus(pod["metadata"]["uid"], {**pod, "status": status}, source, terminal=terminal)


def phase(api, name="p"):
    found = api.get(f"{PODS}/{name}")
    return found.get("status", {}).get("phase", "") if found else None


def test_the_newest_status_is_written_and_no_other_twice(api, reporter):
    pod = make(api)
    reporter.give(told(pod, "Pending"), told(pod, "Running"))
    wait_until(lambda: phase(api) == "Running")
    kinds = {one["type"] for one in api.get(f"{PODS}/p")["status"]["conditions"]}
    assert kinds == {"gate", "Ready"}
    count = len(api.asked("patch"))
    reporter.give(told(pod, "Running"))
    other = make(api, "q")
    reporter.give(told(other, "Running"))
    wait_until(lambda: phase(api, "q") == "Running")
    assert len(api.asked("patch")) == count + 1
    assert len(api.asked("get", f"{PODS}/p")) == 1


def test_what_the_watch_told_need_not_be_looked_at(api, reporter):
    pod = make(api)
    reporter.give(DesiredPod(pod["metadata"]["uid"], pod, "api"), told(pod, "Pending"), told(pod, "Running"))
    wait_until(lambda: phase(api) == "Running")
    assert not api.asked("get")


def test_what_somebody_else_wrote_is_written_again_but_not_at_full_speed(api, reporter):
    pod = make(api)
    uid = pod["metadata"]["uid"]
    duty = reporter.room.duties[0]

    def answered():
        return (duty._view.status(uid) or {}).get("phase") == "Running"

    def meddle():
        return DesiredPod(uid, api.change(f"{PODS}/p", lambda found: found["status"].update(phase="Pending")), "api")

    reporter.give(told(pod, "Running"))
    wait_until(answered)
    reporter.give(meddle())
    wait_until(lambda: phase(api) == "Running" and answered())
    reporter.give(meddle())
    other = make(api, "q")
    reporter.give(told(other, "Running"))
    wait_until(lambda: phase(api, "q") == "Running")
    assert phase(api) == "Pending"
    reporter.run_here(duty._reconcile_late)
    wait_until(lambda: phase(api) == "Running")


def test_an_echo_of_an_older_write_is_not_taken_for_somebody_elses(api, reporter):
    pod = make(api)
    uid = pod["metadata"]["uid"]
    reporter.give(told(pod, "Pending"))
    old = wait_until(lambda: (found := api.get(f"{PODS}/p")) and len(found["status"]["conditions"]) == 2 and found)
    reporter.give(told(pod, "Running"))
    wait_until(lambda: phase(api) == "Running")
    count = len(api.asked())
    reporter.give(DesiredPod(uid, old, "api"), DesiredPod(uid, api.get(f"{PODS}/p"), "api"))
    other = make(api, "q")
    reporter.give(told(other, "Running"))
    wait_until(lambda: phase(api, "q") == "Running")
    assert not [one for one in api.asked()[count:] if "/p" in one.path.removeprefix(PODS)]


def test_a_write_whose_answer_was_lost_is_looked_at_and_not_done_twice(api, reporter):
    pod = make(api)
    api.drop("patch")
    reporter.give(told(pod, "Running"))
    wait_until(lambda: len(api.asked("get", f"{PODS}/p")) == 2)
    assert phase(api) == "Running" and len(api.asked("patch")) == 1


def test_an_api_server_that_fails_is_tried_until_it_has_the_newest(api, reporter):
    pod = make(api)
    api.fail("patch", times=2)
    reporter.give(told(pod, "Pending"), told(pod, "Running"))
    wait_until(lambda: phase(api) == "Running")


def test_a_finished_pod_is_deleted_once_its_phase_is_terminal_there(api, reporter):
    pod = make(api)
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    reporter.give(told(pod, "Running"), PodFinished(pod["metadata"]["uid"], pod))
    wait_until(lambda: phase(api) == "Running")
    assert not api.asked("delete")
    reporter.give(told(pod, "Succeeded", terminal=True))
    wait_until(lambda: phase(api) is None)
    [request] = api.asked("delete")
    assert request.body["preconditions"] == {"uid": pod["metadata"]["uid"]}
    assert request.body["gracePeriodSeconds"] == 0


def test_a_pod_whose_end_was_told_by_its_finish_alone(api, reporter):
    pod = make(api)
    ended = {**pod, "status": {"phase": "Failed"}}
    ended["metadata"] = {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    reporter.give(PodFinished(pod["metadata"]["uid"], ended))
    wait_until(lambda: phase(api) is None)


def test_a_pod_of_the_same_name_is_left_alone(api, reporter):
    old = make(api)
    api.remove(f"{PODS}/p")
    make(api)
    reporter.give(told(old, "Running"))
    other = make(api, "q")
    reporter.give(told(other, "Running"))
    wait_until(lambda: phase(api, "q") == "Running" and api.asked("get", f"{PODS}/p"))
    assert phase(api) == "Pending"


STATIC = {"kind": "Pod", "metadata": {"name": "s-node", "namespace": "default", "uid": "hash1", "labels": {"a": "b"},
                                      "annotations": {"kubernetes.io/config.hash": "hash1"}},
          "spec": {"nodeName": "node", "containers": []}}


def mirror_of(api):
    return api.get(f"{PODS}/s-node")


def test_a_static_pod_has_a_mirror_with_its_status(api, reporter):
    reporter.give(told(STATIC, "Running", source="file"), DesiredSet(frozenset({"hash1"}), True))
    assert mirror_of(api) is None
    reporter.give(MirrorSet(frozenset()))
    mirror = wait_until(lambda: mirror_of(api))
    assert mirror["metadata"]["annotations"][MIRROR] == "hash1" and mirror["metadata"]["labels"] == {"a": "b"}
    [owner] = mirror["metadata"]["ownerReferences"]
    assert owner["name"] == "node" and owner["controller"] is True
    reporter.give(MirrorPod(mirror["metadata"]["uid"], "default/s-node", mirror))
    wait_until(lambda: phase(api, "s-node") == "Running")


def test_a_deleted_or_outdated_mirror_is_made_anew(api, reporter):
    old = api.add({"kind": "Pod", "metadata": {"name": "s-node", "annotations": {MIRROR: "hash0"}}, "spec": {}})
    uid = old["metadata"]["uid"]
    reporter.give(told(STATIC, "Running", source="file"), DesiredSet(frozenset({"hash1"}), True),
                  MirrorPod(uid, "default/s-node", old), MirrorSet(frozenset({"default/s-node"})))
    wait_until(lambda: mirror_of(api) is None)
    reporter.give(MirrorPod(uid, "default/s-node", None))
    wait_until(lambda: mirror_of(api))


def test_a_mirror_goes_with_its_static_pod_but_not_before_it_has_ended(api, reporter):
    mirror = api.add({"kind": "Pod", "metadata": {"name": "s-node", "annotations": {MIRROR: "hash1"}}, "spec": {}})
    reporter.give(told(STATIC, "Running", source="file"),
                  MirrorPod(mirror["metadata"]["uid"], "default/s-node", mirror),
                  MirrorSet(frozenset({"default/s-node"})), DesiredSet(frozenset(), False))
    reporter.give(DesiredSet(frozenset(), True))
    reporter.run_here(lambda: None)
    assert mirror_of(api) and not api.asked("delete")
    reporter.give(PodForgotten("hash1"), StatusSet(frozenset()))
    wait_until(lambda: mirror_of(api) is None)


def test_a_mirror_waits_for_its_node(api, reporter):
    node = api.get("/api/v1/nodes/node")
    api.remove("/api/v1/nodes/node")
    reporter.give(told(STATIC, "Running", source="file"), DesiredSet(frozenset({"hash1"}), True),
                  MirrorSet(frozenset()))
    wait_until(lambda: api.asked("get", "nodes"))
    assert mirror_of(api) is None
    reporter.give(NodeObject(node))
    assert wait_until(lambda: mirror_of(api))["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]


def test_the_status_of_a_mirror_is_corrected_and_starts_over_with_a_new_one(api, reporter):
    def mirror():
        made = api.add({"kind": "Pod", "metadata": {"name": "s-node", "annotations": {MIRROR: "hash1"}}, "spec": {}})
        reporter.give(MirrorPod(made["metadata"]["uid"], "default/s-node", made))
        wait_until(lambda: phase(api, "s-node") == "Running")

    reporter.give(told(STATIC, "Running", source="file"), DesiredSet(frozenset({"hash1"}), True))
    mirror()
    changed = api.change(f"{PODS}/s-node", lambda found: found["status"].update(phase="Pending"))
    reporter.give(MirrorPod(changed["metadata"]["uid"], "default/s-node", changed))
    wait_until(lambda: phase(api, "s-node") == "Running")
    api.remove(f"{PODS}/s-node")
    reporter.give(MirrorPod(changed["metadata"]["uid"], "default/s-node", None))
    mirror()


def test_an_orphan_is_deleted_only_when_all_sources_have_spoken(api, reporter):
    orphan = api.add({"kind": "Pod", "metadata": {"name": "s-node", "annotations": {MIRROR: "hash1"}}, "spec": {}})
    reporter.give(MirrorPod(orphan["metadata"]["uid"], "default/s-node", orphan),
                  MirrorSet(frozenset({"default/s-node"})), DesiredSet(frozenset(), False))
    reporter.run_here(lambda: None)
    assert mirror_of(api) and not api.asked("delete")
    reporter.give(DesiredSet(frozenset(), True))
    wait_until(lambda: mirror_of(api) is None)


def event(message="m", wall=1.0):
    return Event("Pod", "default", "p", "u1", "Normal", "Started", message, wall, "spec.containers{c}",
                 resource_version="7")


def test_events_are_created_and_counted(api, reporter):
    reporter.give(event(), event(wall=2.0), Event("Node", "", "node", "node", "Normal", "Starting", "x", 3.0))
    path = "/api/v1/namespaces/default/events"
    found = wait_until(lambda: (listed := api.all(path)) and len(listed) == 2 and listed)
    pods, nodes = sorted(found, key=lambda one: one["involvedObject"]["kind"], reverse=True)
    assert (pods["count"], pods["firstTimestamp"], pods["lastTimestamp"]) == (
        2, "1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z")
    assert pods["involvedObject"]["fieldPath"] == "spec.containers{c}"
    assert pods["involvedObject"]["resourceVersion"] == "7"
    assert pods["source"] == {"component": "kubelet", "host": "node"}
    assert nodes["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "node", "uid": "node"}


EVENTS = "/api/v1/namespaces/default/events"


def test_an_event_that_is_refused_holds_up_no_other(api, reporter):
    api.fail(403, "create", EVENTS, times=1, reason="Forbidden")
    api.fail(503, "create", EVENTS, times=1)
    reporter.give(event("lost"), event("kept"))
    wait_until(lambda: [one["message"] for one in api.all(EVENTS)] == ["kept"])


def test_an_event_that_expired_is_made_anew_with_its_count(api, reporter):
    reporter.give(event())
    [first] = wait_until(lambda: api.all(EVENTS))
    api.remove(f"{EVENTS}/{first['metadata']['name']}")
    reporter.give(event(wall=9.0))
    [again] = wait_until(lambda: api.all(EVENTS))
    assert again["count"] == 2 and again["metadata"]["name"] != first["metadata"]["name"]


def test_the_node_is_called_by_its_uid_once_that_is_known(api, reporter):
    node = api.get("/api/v1/nodes/node")
    reporter.give(NodeObject(node), Event("Node", "", "node", "node", "Normal", "NodeReady", "x", 3.0))
    [found] = wait_until(lambda: api.all(EVENTS))
    assert found["involvedObject"]["uid"] == node["metadata"]["uid"]


def test_events_of_an_api_server_that_hangs_are_bounded_and_the_oldest_go(api, tmp_path):
    gate = api.hang("create", EVENTS)
    settings = Settings(node_name="node", kubeconfig=str(tmp_path / "none"))
    with RoomRunner(ReporterRoom, settings, make=(ApiEvents,), make_api=api.kube) as room:
        room.give(event("first"))
        wait_until(lambda: api.asked("create"))
        duty = room.room.duties[0]
        room.run_here(lambda: [duty.handle(event(str(n))) for n in range(KEPT + 5)])
        assert len(duty._waiting) == KEPT and duty._waiting[0].message == "5"
        api.faults.clear()
        gate.set()
        wait_until(lambda: any(one["message"] == "5" for one in api.all(EVENTS)))
