"""What the runtime holds, as far as housekeeping decides on it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kubelet_mp.model.runtime import PodRuntime, State


@dataclass(frozen=True, slots=True)
class Box:
    id: str
    ready: bool
    created_at: int


@dataclass(frozen=True, slots=True)
class Vessel:
    """One container; `created_at` in nanoseconds since the epoch."""

    id: str
    name: str
    state: State
    sandbox_id: str
    created_at: int
    log_path: str


@dataclass(frozen=True, slots=True)
class PodStock:
    """One pod, newest first."""

    uid: str
    namespace: str
    name: str
    boxes: tuple[Box, ...]
    vessels: tuple[Vessel, ...]

    @classmethod
    def of(cls, pod: PodRuntime) -> PodStock:
        boxes = (Box(s.id, s.ready, s.created_at) for s in pod.sandboxes)
        vessels = (Vessel(c.id, c.name, c.state, c.sandbox_id, c.created_at, c.log_path) for c in pod.containers)
        return cls(pod.uid, pod.namespace, pod.name, tuple(sorted(boxes, key=_age)), tuple(sorted(vessels, key=_age)))


def _age(thing: Box | Vessel) -> tuple[int, str]:
    return -thing.created_at, thing.id


class Inventory:
    """All pods that the runtime holds something of. `complete` once a full listing was seen."""

    def __init__(self) -> None:
        self._pods: dict[str, PodStock] = {}
        self.complete = False

    def update(self, pod: PodRuntime) -> PodStock | None:
        """Take a pod's newest view; None if there is nothing (or nothing was learnt)."""
        if pod.error:
            return None
        if pod.empty:
            self._pods.pop(pod.uid, None)
            return None
        stock = self._pods[pod.uid] = PodStock.of(pod)
        return stock

    def listed(self, uids: frozenset[str]) -> None:
        """A full listing saw exactly these pods."""
        self.complete = True
        for uid in self._pods.keys() - uids:
            del self._pods[uid]

    def __iter__(self) -> Iterator[PodStock]:
        return iter(list(self._pods.values()))

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def get(self, uid: str) -> PodStock | None:
        return self._pods.get(uid)

    def running(self) -> Iterator[Vessel]:
        for pod in self:
            yield from (v for v in pod.vessels if v.state is State.RUNNING)
