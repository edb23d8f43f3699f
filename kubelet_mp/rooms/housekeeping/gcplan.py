"""Which dead containers and sandboxes of a pod may go. Pure.

Source: Kubernetes 1.37 pkg/kubelet/kuberuntime/kuberuntime_gc.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from kubelet_mp.model.clock import NS
from kubelet_mp.model.runtime import State
from kubelet_mp.rooms.housekeeping.inventory import Box, PodStock, Vessel

STARTING = 60.0  # s after its creation in which a container may still be started


class Standing(Enum):
    """How a pod stands with the node."""

    WANTED = "wanted"
    GONE = "gone"
    UNCLEAR = "unclear"  # not known to be wanted, but perhaps only not yet


@dataclass(frozen=True, slots=True)
class PodPlan:
    """Remove these, the containers first."""

    pod: PodStock
    vessels: tuple[Vessel, ...]
    boxes: tuple[Box, ...]

    def __bool__(self) -> bool:
        return bool(self.vessels or self.boxes)


@dataclass(frozen=True, slots=True)
class Limits:
    """max_per_container: dead instances kept of each container of a wanted pod (-1: all); min_age in seconds."""

    max_per_container: int = 1
    min_age: float = 0.0


def plan(pod: PodStock, standing: Standing, limits: Limits, now_ns: int) -> PodPlan:
    """What to remove of one pod now (`now_ns`: nanoseconds since the epoch)."""
    if standing is Standing.UNCLEAR:
        return PodPlan(pod, (), ())
    dead = [v for v in pod.vessels if _dead(v, limits, now_ns)]
    keep = limits.max_per_container if standing is Standing.WANTED else 0
    vessels = tuple(_beyond(dead, keep)) if keep >= 0 else ()
    return PodPlan(pod, vessels, _boxes(pod, standing, {v.id for v in vessels}))


def _dead(vessel: Vessel, limits: Limits, now_ns: int) -> bool:
    """One that was only just created is about to be started, and is not the last one of its name yet."""
    age = (now_ns - vessel.created_at) / NS
    if vessel.state is State.CREATED and age < STARTING:
        return False
    return vessel.state is not State.RUNNING and age >= limits.min_age


def _beyond(dead: Iterable[Vessel], keep: int) -> Iterable[Vessel]:
    """All but the `keep` newest of each container name; `dead` comes newest first."""
    seen: dict[str, int] = {}
    for vessel in dead:
        seen[vessel.name] = seen.get(vessel.name, 0) + 1
        if seen[vessel.name] > keep:
            yield vessel


def _boxes(pod: PodStock, standing: Standing, removed: set[str]) -> tuple[Box, ...]:
    """Sandboxes that are not ready and hold no container any more; a wanted pod keeps its newest one."""
    inhabited = {v.sandbox_id for v in pod.vessels if v.id not in removed}
    candidates = pod.boxes[1:] if standing is Standing.WANTED else pod.boxes
    return tuple(box for box in candidates if not box.ready and box.id not in inhabited)


class Census:
    """Tells how pods stand, from what the pods room said: a pod that is admitted, or that it still shows
    (finished, or being taken down), is its business.

    A pod that was never wanted, as far as we know, is gone only when two passes in a row found it so: the
    runtime may show a new pod before we hear that it was admitted.
    """

    def __init__(self) -> None:
        self._admitted: frozenset[str] = frozenset()
        self._shown: frozenset[str] = frozenset()
        self._forgotten: set[str] = set()
        self._doubted: set[str] = set()
        self.ready = False

    def admitted(self, uids: frozenset[str], ready: bool) -> None:
        before, self._admitted, self.ready = self._wanted, uids, ready
        self._left(before)

    def shown(self, uids: frozenset[str]) -> None:
        before, self._shown = self._wanted, uids
        self._left(before)

    @property
    def _wanted(self) -> frozenset[str]:
        return self._admitted | self._shown

    def _left(self, before: frozenset[str]) -> None:
        self._forgotten = (self._forgotten | before) - self._wanted

    def forgotten(self, uid: str) -> None:
        if uid not in self._wanted:
            self._forgotten.add(uid)

    def standing(self, uid: str) -> Standing:
        if not self.ready:
            return Standing.UNCLEAR
        if uid in self._wanted:
            return Standing.WANTED
        return Standing.GONE if uid in self._forgotten else Standing.UNCLEAR

    def pass_done(self, present: set[str]) -> None:
        """A full pass has seen these pods (in the runtime or as directories)."""
        strangers = present - self._wanted if self.ready else set()
        self._forgotten = (self._forgotten & present) | (strangers & self._doubted)
        self._doubted = strangers
