"""Which dead containers and sandboxes of a pod may go: only of pods that nobody owns any more. Pure.

The pods room prunes what it owns; two who remove one container fall over each other in the runtime.

Source: Kubernetes 1.37 pkg/kubelet/kuberuntime/kuberuntime_gc.go.
"""

from __future__ import annotations

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
    """min_age in seconds."""

    min_age: float = 0.0


def plan(pod: PodStock, standing: Standing, limits: Limits, now_ns: int) -> PodPlan:
    """What to remove of one pod now (`now_ns`: nanoseconds since the epoch)."""
    if standing is not Standing.GONE:
        return PodPlan(pod, (), ())
    vessels = tuple(v for v in pod.vessels if _dead(v, limits, now_ns))
    return PodPlan(pod, vessels, _boxes(pod, {v.id for v in vessels}))


def _dead(vessel: Vessel, limits: Limits, now_ns: int) -> bool:
    """One that was only just created may be about to be started."""
    age = (now_ns - vessel.created_at) / NS
    if vessel.state is State.CREATED and age < STARTING:
        return False
    return vessel.state is not State.RUNNING and age >= limits.min_age


def _boxes(pod: PodStock, removed: set[str]) -> tuple[Box, ...]:
    """Sandboxes that are not ready and hold no container any more."""
    inhabited = {v.sandbox_id for v in pod.vessels if v.id not in removed}
    return tuple(box for box in pod.boxes if not box.ready and box.id not in inhabited)


class Census:
    """Tells how pods stand, from what the pods room said: a pod that is admitted, or that still has a worker
    there (finished, or being taken down), is its business.

    A pod that was never wanted, as far as we know, is gone only when two passes in a row found it so: the
    runtime may show a new pod before we hear that it was admitted.
    """

    def __init__(self) -> None:
        self._admitted: frozenset[str] = frozenset()
        self._shown: frozenset[str] | None = None
        self._sources_ready = False
        self._forgotten: set[str] = set()
        self._doubted: set[str] = set()

    def admitted(self, uids: frozenset[str], ready: bool) -> None:
        before, self._admitted, self._sources_ready = self._wanted, uids, ready
        self._left(before)

    def shown(self, uids: frozenset[str]) -> None:
        before, self._shown = self._wanted, uids
        self._left(before)

    @property
    def ready(self) -> bool:
        """Both sets have come, and no source is missing."""
        return self._sources_ready and self._shown is not None

    @property
    def _wanted(self) -> frozenset[str]:
        return self._admitted | (self._shown or frozenset())

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
