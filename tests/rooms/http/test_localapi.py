"""The rows that the command line shows."""

from __future__ import annotations

from typing import Any

import pytest

from kubelet_mp.model.runtime import RuntimeState
from kubelet_mp.rooms.http import localapi
from kubelet_mp.rooms.http.state import State
from kubelet_mp.wire.messages import (
    Health,
    PodStatus,
    RelistDone,
    RoomHealth,
    RuntimeStateChanged,
    SourceProblem,
    StatusSet,
    Timeline,
    TimelineEntry,
)

WALL = 1_704_164_700.0


def pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p-node", "namespace": "ns", "uid": "u",
                         "annotations": {"kubernetes.io/config.seen": "2024-01-02T03:04:00.123Z"}},
            "spec": {"containers": [{"name": "a"}, {"name": "b"}],
                     "initContainers": [{"name": "s", "restartPolicy": "Always"}, {"name": "i"}]},
            "status": status}


def state_of(*messages: Any) -> State:
    state = State(lambda: 100.0)
    for message in messages:
        state.apply(message)
    return state


def told(*messages: Any) -> dict[str, Any]:
    return localapi.pods(state_of(*messages), "node", 100.0, WALL)


def test_a_row() -> None:
    statuses = [{"name": "a", "ready": True, "restartCount": 2, "state": {"running": {}}},
                {"name": "b", "ready": False, "restartCount": 1, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
    sidecar = [{"name": "s", "ready": True, "restartCount": 4, "state": {"running": {}}},
               {"name": "i", "ready": True, "restartCount": 9, "state": {"terminated": {"exitCode": 0}}}]
    found = pod(phase="Running", podIP="10.0.0.1", containerStatuses=statuses, initContainerStatuses=sidecar)
    row = told(PodStatus("u", found, "file", "the back-off", 90.0))["pods"][0]
    assert row == {
        "uid": "u", "namespace": "ns", "name": "p-node", "phase": "Running", "state": "CrashLoopBackOff",
        "ready": "2/3", "restarts": 7, "age": pytest.approx(59.877), "ip": "10.0.0.1", "source": "file",
        "waiting_for": "the back-off", "waiting_seconds": 10.0,
    }


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({"phase": "Pending"}, "Pending"),
        ({"phase": "Failed", "reason": "OutOfcpu"}, "OutOfcpu"),
        ({"phase": "Pending", "initContainerStatuses": [
            {"name": "i", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]}, "Init:Error"),
        ({"phase": "Pending", "containerStatuses": [
            {"name": "a", "state": {"waiting": {"reason": "ContainerCreating"}}}]}, "Pending"),
        ({"phase": "Running", "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 7}}}]},
         "ExitCode:7"),
    ],
)
def test_the_word_that_says_most(status: dict[str, Any], word: str) -> None:
    assert localapi.pod_state(pod(**status)) == word


def test_a_pod_that_no_longer_stands_is_dropped_but_its_story_is_known() -> None:
    entry = TimelineEntry(1.0, 2.0, 1, "Normal", "Started", "m")
    state = state_of(PodStatus("u", pod(phase="Running"), "file"), Timeline("u", "ns", "p-node", (entry,)),
                     StatusSet(frozenset()))
    assert localapi.pods(state, "node", 0, WALL)["gone"] == [{"namespace": "ns", "name": "p-node"}]
    answer = localapi.why(state, "ns", "p-node", 0, WALL)
    assert answer is not None and answer["pod"] is None and answer["timeline"][0]["reason"] == "Started"
    state.apply(Timeline("u", "", "", ()))
    assert localapi.why(state, "ns", "p-node", 0, WALL) is None


def test_stories_of_two_pods_of_one_name_follow_each_other() -> None:
    def story(uid: str, when: float) -> Timeline:
        return Timeline(uid, "ns", "p", (TimelineEntry(when, when, 1, "Normal", uid, ""),))

    answer = localapi.why(state_of(story("new", 9.0), story("old", 1.0)), "ns", "p", 0, WALL)
    assert answer is not None and [entry["reason"] for entry in answer["timeline"]] == ["old", "new"]


def test_broken_manifests_come_and_go() -> None:
    problem = SourceProblem("/m/b.yaml", "duplicate of ns/p", "/m/a.yaml", "ns/p")
    assert told(problem)["problems"] == [
        {"origin": "/m/b.yaml", "problem": "duplicate of ns/p", "other": "/m/a.yaml", "pod": "ns/p"}
    ]
    assert told(problem, SourceProblem("/m/b.yaml", ""))["problems"] == []


def test_what_hinders_everything_is_told() -> None:
    down = RuntimeStateChanged(RuntimeState(ready=False, message="no answer", observed=1.0))
    overdue = RelistDone(1.0, frozenset(), False, "PLEG is not healthy: x")
    assert told(down, overdue)["obstacles"] == ["the container runtime is not ready: no answer",
                                                "PLEG is not healthy: x"]
    assert told(RuntimeStateChanged(RuntimeState(ready=True, network_ready=True, observed=1.0)))["obstacles"] == []
    never = RuntimeStateChanged(RuntimeState(message="no such socket"))
    assert told(never)["obstacles"] == ["the container runtime is not ready: no such socket"]


def test_rooms() -> None:
    table = localapi.rooms(state_of(Health((RoomHealth("pods", 7, 2, 1, 0.5, 60.0, 3, "exit 1"),))))
    assert table["rooms"][0]["room"] == "pods" and table["rooms"][0]["restarts"] == 1
    assert table["age"] == 0.0
