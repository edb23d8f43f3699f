"""What changed between two reports of a pod, as entries of its timeline. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubelet_mp.model import clock
from kubelet_mp.wire.messages import TimelineEntry

_LISTS = (
    ("initContainerStatuses", "spec.initContainers"),
    ("containerStatuses", "spec.containers"),
    ("ephemeralContainerStatuses", "spec.ephemeralContainers"),
)
_QUIET = frozenset({"", "ContainerCreating", "PodInitializing"})
FRESH = 2.0  # s
Marks = Mapping[str, tuple[str, ...]]
"""What is compared: "" → (phase, reason, message), field path → the container's state."""


def marks(pod: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The part of a pod's status that the timeline tells of."""
    status = pod.get("status", {})
    found: dict[str, tuple[str, ...]] = {"": tuple(status.get(part, "") for part in ("phase", "reason", "message"))}
    for kind, path in _LISTS:
        for container in status.get(kind) or ():
            found[f"{path}{{{container['name']}}}"] = _mark(container)
    return found


def _mark(container: Mapping[str, Any]) -> tuple[str, ...]:
    state, restarts = container.get("state") or {}, str(container.get("restartCount", 0))
    if "running" in state:
        return ("running", restarts, state["running"].get("startedAt") or "", str(container.get("ready", False)))
    if "terminated" in state:
        ended = state["terminated"]
        return ("terminated", restarts, ended.get("finishedAt") or "", str(ended.get("exitCode", 0)),
                ended.get("reason", ""), ended.get("message", ""))
    waiting = state.get("waiting") or {}
    return ("waiting", restarts, waiting.get("reason", ""), waiting.get("message", ""))


def changes(old: Marks | None, new: Marks, now: float) -> list[TimelineEntry]:
    """The entries for what is new, at `now` or at the time that the runtime tells (epoch seconds).

    `old` is None at the first sight of the pod: then its present state is told.
    """
    before = old or {}
    entries = [entry for path, mark in new.items() if before.get(path) != mark
               for entry in _entries(path, before.get(path), mark, now)]
    return sorted(entries, key=lambda entry: entry.last)


def _entries(path: str, old: tuple[str, ...] | None, mark: tuple[str, ...], now: float) -> Iterator[TimelineEntry]:
    if not path:
        yield _phase(old, mark, now)
    elif mark[0] == "running":
        yield from _running(path, old, mark, now)
    elif mark[0] == "terminated":
        _, _, when, code, reason, message = mark
        kind = "Normal" if code == "0" else "Warning"
        told = f"exit code {code}" + (f", {reason}" if reason else "") + (f": {message}" if message else "")
        yield _entry(_wall(when, now), kind, "ContainerTerminated", told, path)
    elif mark[2] not in _QUIET:
        yield _entry(now, "Warning", "ContainerWaiting", f"{mark[2]}: {mark[3]}" if mark[3] else mark[2], path)


def _phase(old: tuple[str, ...] | None, mark: tuple[str, ...], now: float) -> TimelineEntry:
    phase, reason, message = mark
    told = f"{old[0]} → {phase}" if old and old[0] and old[0] != phase else phase
    told += (f", {reason}" if reason else "") + (f": {message}" if message else "")
    return _entry(now, "Warning" if phase == "Failed" else "Normal", "Phase", told, "")


def _running(path: str, old: tuple[str, ...] | None, mark: tuple[str, ...], now: float) -> Iterator[TimelineEntry]:
    if old is None or old[:3] != mark[:3]:
        restarts = f", restart {mark[1]}" if mark[1] != "0" else ""
        yield _entry(_wall(mark[2], now), "Normal", "ContainerRunning", "running" + restarts, path)
    elif old[3] != mark[3]:
        yield _entry(now, "Normal", "ContainerReady", "ready" if mark[3] == "True" else "not ready", path)


def _entry(when: float, kind: str, reason: str, message: str, path: str) -> TimelineEntry:
    return TimelineEntry(when, when, 1, kind, reason, message, path)


def _wall(text: str, now: float) -> float:
    """The time told, unless it is the present cut to seconds: that would sort before what led to it."""
    try:
        told = clock.parse_rfc3339(text) / clock.NS
    except ValueError:
        return now
    return now if 0 <= now - told < FRESH else told
