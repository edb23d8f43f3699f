"""What this room knows and others are told: on a change, and again when one of them starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kubelet_mp.rooms.pods.lifecycle import FREED_BY
from kubelet_mp.rooms.pods.reporting import Reporting
from kubelet_mp.rooms.pods.resizing import prepared
from kubelet_mp.rooms.pods.worker import LIVE, Stage, Worker
from kubelet_mp.wire import messages as m

PREPARING = ("cgroups", "volumes", "probes")
SHOWING = ("reporter", "http", "housekeeping")


class Facts:
    """`running`: UIDs that run in the runtime; `complete`: sources and runtime have been listed."""

    def __init__(self, workers: Mapping[str, Worker], reporting: Reporting, running: Callable[[], set[str]],
                 complete: Callable[[], bool]) -> None:
        self._workers, self._reporting = workers, reporting
        self._running, self._complete = running, complete
        self._told: tuple[m.Message, ...] = ()

    def of_room(self, room: str) -> Iterator[m.Message]:
        """All that a room which has just started has to know."""
        for worker in self._workers.values():
            yield from self._of_worker(worker, room)
        admitted, reported = self._sets()
        if room in (*PREPARING, "housekeeping"):
            yield admitted
        if room in SHOWING:
            yield reported

    def _of_worker(self, worker: Worker, room: str) -> Iterator[m.Message]:
        if worker.stage in LIVE and worker.admitted and room in PREPARING:
            yield prepared(worker)
        if worker.stage is Stage.STOPPING and room == "probes":
            yield m.PodStopping(worker.uid)
        if worker.stage is Stage.STOPPED and room in PREPARING and (
                room not in FREED_BY or room not in worker.freed):
            yield m.PodStopped(worker.uid, None if worker.orphan else worker.pod)
        if room in SHOWING and worker.sent is not None:
            yield self._reporting.message(worker)
        if room == "reporter" and worker.finish_told is not None:
            yield m.PodFinished(worker.uid, worker.finish_told)
        if room == "pleg" and not worker.fresh:
            yield m.RelistPod(worker.uid)

    def news(self) -> tuple[m.Message, ...]:
        """The sets that are not what was told last."""
        sets = self._sets()
        changed = tuple(one for one in sets if one not in self._told)
        self._told = sets
        return changed

    def _sets(self) -> tuple[m.AdmittedSet, m.StatusSet]:
        admitted = {w.uid for w in self._workers.values() if w.stage in LIVE} | self._running()
        return m.AdmittedSet(frozenset(admitted), self._complete()), m.StatusSet(frozenset(self._workers))
