"""The pods that are measured, and when the runtime says that they started and went."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from cri_api.v1 import api_pb2

from integration.rig import manifests
from integration.rig.console import RigError
from integration.rig.cri import Cri

SLEEPER = ("sh", "-c", "trap 'exit 0' TERM; sleep 1000000 & wait")
"""Ends at once on SIGTERM, which a bare `sleep` does not as process 1."""
GRACE = 1  # s
PATIENCE = 180.0  # s for all pods of one measurement


@dataclass(frozen=True)
class Times:
    """Seconds from the order to each pod's event."""

    each: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.each)

    @property
    def all(self) -> float:
        return max(self.each)

    def joined(self, other: Times) -> Times:
        """The pods of two rounds of the same."""
        return Times(self.each + other.each)


@dataclass(frozen=True)
class Round:
    """One set of pods, started and deleted. Without an agent nobody shows or forgets pods."""

    running: Times
    stopped: Times  # its container runs no more
    removed: Times  # its sandbox is gone
    shown: Times | None = None  # /pods shows it Running
    forgotten: Times | None = None  # it is gone from /pods
    cpu: dict[str, float] = field(default_factory=dict)  # seconds of the agent in all rounds, by what it did
    rounds: int = 1

    def joined(self, other: Round) -> Round:
        return Round(
            self.running.joined(other.running),
            self.stopped.joined(other.stopped),
            self.removed.joined(other.removed),
            self.shown.joined(other.shown) if self.shown and other.shown else None,
            self.forgotten.joined(other.forgotten) if self.forgotten and other.forgotten else None,
            {name: self.cpu[name] + other.cpu[name] for name in self.cpu},
            self.rounds + other.rounds,
        )


def names(count: int) -> list[str]:
    return [f"bench-{number:03}" for number in range(count)]


def manifest(name: str) -> dict[str, Any]:
    return manifests.pod(name, manifests.container("c", *SLEEPER), terminationGracePeriodSeconds=GRACE)


def started(cri: Cri, containers: Iterable[str], began_wall: float) -> Times:
    """When the containers started, by the runtime's own clock."""
    found = []
    for one in containers:
        request = api_pb2.ContainerStatusRequest(container_id=one)
        status = cri.runtime.ContainerStatus(request, timeout=30).status
        found.append(status.started_at / 1e9 - began_wall)
    return Times(tuple(found))


class Watch:
    """Notes when each of a set of things is first there (or first away). All times are monotonic."""

    def __init__(self, began: float, what: str, wanted: Collection[str]) -> None:
        self._began, self._what, self._open = began, what, set(wanted)
        self._seen: list[float] = []

    def saw(self, done: Collection[str]) -> None:
        now = time.monotonic() - self._began
        new = self._open.intersection(done)
        self._open -= new
        self._seen += [now] * len(new)

    def saw_only(self, left: Collection[str]) -> None:
        self.saw(self._open.difference(left))

    @property
    def complete(self) -> bool:
        return not self._open

    def times(self) -> Times:
        if self._open:
            raise RigError(f"{len(self._open)} pods are not {self._what}, e.g. {min(self._open)}")
        return Times(tuple(self._seen))


def look_until(watches: Collection[Watch], look: Callable[[], None]) -> None:
    """Call `look` until every watch is complete, with pauses so that looking takes little of the machine."""
    deadline = time.monotonic() + PATIENCE
    while not all(watch.complete for watch in watches) and time.monotonic() < deadline:
        before = time.monotonic()
        look()
        time.sleep(min(max(0.01, 4 * (time.monotonic() - before)), 0.1))


def live_containers(cri: Cri) -> set[str]:
    return {one.id for one in cri.containers(running=True)}


def live_sandboxes(cri: Cri) -> set[str]:
    return {one.id for one in cri.sandboxes()}
