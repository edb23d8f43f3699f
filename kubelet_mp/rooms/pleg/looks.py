"""Which pods are being looked at, and which have to be looked at again. Main thread only."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubelet_mp.model.runtime import ContainerEvent
from kubelet_mp.rooms.pleg.diff import PodBriefs, covers


@dataclass(frozen=True, slots=True)
class Look:
    """One look. `ordered`: somebody waits for its answer. `listed`: briefs of a listing and when that began."""

    uid: str
    ordered: bool = False
    listed: tuple[PodBriefs, float] | None = None


@dataclass(slots=True)
class _Running:
    late: bool = False  # reported as hanging
    order: bool = False  # wanted again: somebody asked meanwhile
    listed: bool = False  # wanted again: a listing told something else
    events: list[ContainerEvent] = field(default_factory=list)  # wanted again, unless the result tells of them


class Looks:
    """Each of `order`, `note` and `listed` gives the look to begin, or None while one of that pod runs."""

    def __init__(self) -> None:
        self._running: dict[str, _Running] = {}

    def order(self, uid: str) -> Look | None:
        running = self._running.get(uid)
        if running is None:
            return self._begin(Look(uid, ordered=True))
        running.order = True
        return None

    def note(self, uid: str, event: ContainerEvent) -> Look | None:
        running = self._running.get(uid)
        if running is None:
            return self._begin(Look(uid))
        running.events.append(event)
        return None

    def listed(self, uid: str, briefs: PodBriefs, began: float) -> Look | None:
        running = self._running.get(uid)
        if running is None:
            return self._begin(Look(uid, listed=(briefs, began)))
        running.listed = True
        return None

    def finish(self, uid: str, known: PodBriefs) -> Look | None:
        """The look has come back and `known` is what is recorded now: the look to follow, if any."""
        running = self._running.pop(uid)
        missed = any(not covers(known, event) for event in running.events)
        if running.order or running.listed or missed:
            return self._begin(Look(uid, ordered=running.order))
        return None

    def late(self, uid: str) -> bool:
        return uid in self._running and self._running[uid].late

    def mark_late(self, uid: str) -> None:
        if uid in self._running:
            self._running[uid].late = True

    def _begin(self, look: Look) -> Look:
        self._running[look.uid] = _Running()
        return look
