"""What `pods` and `why` print for an answer of the agent."""

from __future__ import annotations

from typing import Any

import pytest

from kubelet_mp.cli import pods, why
from kubelet_mp.cli.table import age, table


def row(**changes: Any) -> dict[str, Any]:
    usual = {"uid": "u", "namespace": "default", "name": "web-n1", "phase": "Running", "state": "Running",
             "ready": "1/1", "restarts": 0, "age": 75.0, "ip": "10.0.0.2", "source": "file", "waiting_for": "",
             "waiting_seconds": None}
    return usual | changes


def about(pod: dict[str, Any] | None, **changes: Any) -> dict[str, Any]:
    usual = {"namespace": "default", "name": "web-n1", "pod": pod, "status": {}, "timeline": [], "problems": [],
             "obstacles": []}
    return usual | changes


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0.4, "0s"), (59, "59s"), (60, "1m"), (75, "1m15s"), (3600, "1h"), (3725, "1h2m"), (86400, "1d"),
     (100000, "1d3h")],
)
def test_ages(seconds: float | None, text: str) -> None:
    assert age(seconds) == text


def test_columns_are_aligned() -> None:
    assert table(("A", "LONG"), [("abc", "x"), ("", "yy")]) == ["A     LONG", "abc   x", "      yy"]


def test_the_list_of_pods() -> None:
    answer = {"pods": [row(), row(name="db-n1", state="Pending", ready="0/1", ip="", waiting_for="its image")],
              "problems": [{"origin": "/m/b.yaml", "problem": "duplicate of default/web-n1", "other": "/m/a.yaml",
                            "pod": "default/web-n1"}],
              "obstacles": ["the container runtime is not ready: no answer"]}
    lines = pods.lines(answer)
    assert lines[1].split() == ["default", "web-n1", "1/1", "Running", "0", "1m15s", "10.0.0.2", "file"]
    assert lines[2].split() == ["default", "db-n1", "0/1", "Pending", "0", "1m15s", "-", "file", "its", "image"]
    assert lines[4:] == [
        "Manifests that cannot be used:",
        "  /m/b.yaml (pod default/web-n1): duplicate of default/web-n1; see also /m/a.yaml", "",
        "Attention: the container runtime is not ready: no answer",
    ]


def test_no_pods_is_said() -> None:
    assert pods.lines({"pods": [], "problems": [], "obstacles": []}) == ["There are no pods on this node."]


def test_the_story_of_a_pod() -> None:
    entry = {"first": 1_704_164_585.0, "last": 1_704_164_645.0, "count": 3, "type": "Warning", "reason": "BackOff",
             "message": "Back-off\nrestarting", "fieldPath": "spec.containers{c}"}
    lines = why.lines(about(row(waiting_for="the back-off of container c", waiting_seconds=12.0), timeline=[entry]))
    assert lines[0] == "Pod default/web-n1: Running, 1/1 containers ready, 0 restarts, age 1m15s, from file"
    assert lines[3] == "2024-01-02 03:04:05Z   Warning   BackOff   [c] Back-off restarting (×3 over 1m)"
    assert lines[-1] == "Waiting for: the back-off of container c (for 12s)"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (about(row()), "nothing, it runs"),
        (about(row(phase="Pending")), "the agent to take it up"),
        (about(row(phase="Pending"), obstacles=["PLEG is not healthy: x"]), "PLEG is not healthy: x"),
        (about(row(phase="Failed"), status={"reason": "OutOfcpu", "message": "no room"}),
         "nothing, it has ended (Failed, OutOfcpu: no room)"),
        (about(row(phase="Succeeded"), obstacles=["x"]), "nothing, it has ended (Succeeded)"),
        (about(None, timeline=[{}]), "nothing, it is gone"),
        (about(None, problems=[{"origin": "/m/x", "problem": "no YAML"}]), "its manifest to be corrected"),
    ],
)
def test_the_one_thing_that_a_pod_waits_for(answer: dict[str, Any], expected: str) -> None:
    assert why.waiting_for(answer) == expected
