"""What the timeline tells of two reports of a pod."""

from __future__ import annotations

from typing import Any

from kubelet_mp.rooms.reporter.transitions import changes, marks

NOW = 1_704_164_700.0
STARTED = "2024-01-02T03:04:05Z"


def pod(phase: str, *containers: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "status": {"phase": phase, "containerStatuses": list(containers), **status}}


def container(state: dict[str, Any], restarts: int = 0, ready: bool = False) -> dict[str, Any]:
    return {"name": "c", "state": state, "restartCount": restarts, "ready": ready}


def told(old: dict[str, Any] | None, new: dict[str, Any]) -> list[tuple[str, str, str]]:
    before = marks(old) if old else None
    return [(e.type, e.reason, e.message) for e in changes(before, marks(new), NOW)]


CREATING = container({"waiting": {"reason": "ContainerCreating"}})
RUNNING = container({"running": {"startedAt": STARTED}})
CRASHED = container({"terminated": {"exitCode": 3, "reason": "Error", "finishedAt": STARTED}}, 1)


def test_the_first_sight_tells_the_phase_but_not_the_usual_waiting() -> None:
    assert told(None, pod("Pending", CREATING)) == [("Normal", "Phase", "Pending")]


def test_a_pod_that_starts() -> None:
    assert told(pod("Pending", CREATING), pod("Running", RUNNING)) == [
        ("Normal", "ContainerRunning", "running"),
        ("Normal", "Phase", "Pending → Running"),
    ]


def test_a_container_is_told_at_the_time_of_the_runtime() -> None:
    entry = changes(marks(pod("Running", CREATING)), marks(pod("Running", RUNNING)), NOW)[0]
    assert (entry.first, entry.field_path) == (1_704_164_645.0, "spec.containers{c}")


def test_nothing_new_is_nothing_told() -> None:
    assert told(pod("Running", RUNNING), pod("Running", RUNNING)) == []


def test_a_crash_and_its_back_off_are_warnings() -> None:
    assert told(pod("Running", RUNNING), pod("Running", CRASHED)) == [
        ("Warning", "ContainerTerminated", "exit code 3, Error")
    ]
    waiting = container({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}, 1)
    assert told(pod("Running", CRASHED), pod("Running", waiting)) == [
        ("Warning", "ContainerWaiting", "CrashLoopBackOff: back-off 10s")
    ]


def test_a_restart_says_which_one_and_readiness_is_told_alone() -> None:
    again = container({"running": {"startedAt": STARTED}}, 2)
    ready = container({"running": {"startedAt": STARTED}}, 2, True)
    running = ("Normal", "ContainerRunning", "running, restart 2")
    assert told(pod("Running", CRASHED), pod("Running", again)) == [running]
    assert told(pod("Running", again), pod("Running", ready)) == [("Normal", "ContainerReady", "ready")]


def test_a_rejected_pod_tells_why() -> None:
    assert told(None, pod("Failed", reason="OutOfcpu", message="Pod was rejected: no room")) == [
        ("Warning", "Phase", "Failed, OutOfcpu: Pod was rejected: no room")
    ]
