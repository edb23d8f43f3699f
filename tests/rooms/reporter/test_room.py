"""The reporter without an API server: events and changes of status become timelines for http."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from kubelet_mp import log
from kubelet_mp.rooms.reporter.room import ReporterRoom
from kubelet_mp.wire.messages import Event, PodForgotten, PodStatus, StatusSet, Timeline
from tests.fakes.link import RoomRunner


@pytest.fixture
def reporter() -> Iterator[RoomRunner]:
    with RoomRunner(ReporterRoom) as room:
        yield room


def event(wall: float = 1.0, message: str = "Container started", kind: str = "Pod") -> Event:
    return Event(kind, "ns", "p", "u1", "Normal", "Started", message, wall, "spec.containers{c}", serial=int(wall))


def status(phase: str, uid: str = "u1") -> PodStatus:
    pod = {"metadata": {"name": "p", "namespace": "ns", "uid": uid}, "status": {"phase": phase}}
    return PodStatus(uid, pod, "file")


def reasons(timeline: Timeline) -> list[str]:
    return [entry.reason for entry in timeline.entries]


def test_events_and_changes_of_status_are_told_together(reporter: RoomRunner) -> None:
    reporter.give(event(1.0), event(2.0), status("Pending"), status("Running"))
    told = reporter.wait_for(Timeline, lambda t: len(t.entries) == 3)
    assert (told.uid, told.namespace, told.name) == ("u1", "ns", "p")
    assert [(e.reason, e.count, e.message) for e in told.entries] == [
        ("Started", 2, "Container started"), ("Phase", 1, "Pending"), ("Phase", 1, "Pending → Running")
    ]


def test_changes_gather_before_they_are_sent(reporter: RoomRunner) -> None:
    reporter.give(*(event(float(n), f"m{n}") for n in range(5)))
    assert len(reporter.wait_for(Timeline).entries) == 5
    assert len(reporter.link.of(Timeline)) == 1


def test_http_is_told_again_when_it_restarts_also_of_pods_that_are_gone(reporter: RoomRunner) -> None:
    reporter.give(status("Running"), status("Running", "u2"))
    reporter.wait_for(Timeline, lambda t: t.uid == "u2")
    reporter.give(PodForgotten("u1"), StatusSet(frozenset({"u2"})))
    reporter.link.clear()
    reporter.come_up("http")
    reporter.wait_for(Timeline, lambda t: t.uid == "u2")
    assert {t.uid for t in reporter.link.of(Timeline, to="http")} == {"u1", "u2"}


def test_a_pods_room_that_restarts_adds_nothing_to_the_story(reporter: RoomRunner) -> None:
    reporter.give(status("Pending"), status("Running"), StatusSet(frozenset()), status("Running"), event())
    assert reasons(reporter.wait_for(Timeline, lambda t: "Started" in reasons(t))).count("Phase") == 2


def test_events_of_the_node_reach_the_log_only(reporter: RoomRunner, request: pytest.FixtureRequest) -> None:
    stream = io.StringIO()
    log.setup("text", stream=stream, journal=False)
    request.addfinalizer(lambda: log.setup("text"))
    reporter.give(event(kind="Node", message="Starting kubelet."), event())
    assert reasons(reporter.wait_for(Timeline)) == ["Started"]
    lines = [line for line in stream.getvalue().splitlines() if '"Event"' in line]
    assert len(lines) == 2
    assert 'kind="Node"' in lines[0] and 'text="Starting kubelet."' in lines[0]
    assert 'object="ns/p"' in lines[1] and 'fieldPath="spec.containers{c}"' in lines[1]
