"""What the sources want: keeps the wishes of the workers in step with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from kubelet_mp.model import podupdate
from kubelet_mp.model.qos import is_mirror
from kubelet_mp.rooms.pods.resizing import Resizes, prepared
from kubelet_mp.rooms.pods.worker import LIVE, Pod, Worker
from kubelet_mp.wire import messages as m

API = "api"


class Home(Protocol):
    """What the room does for this."""

    workers: dict[str, Worker]

    def add(self, uid: str, pod: Pod, source: str, **fields: Any) -> Worker: ...
    def shorten(self, worker: Worker, grace: int) -> None: ...
    def touch(self, worker: Worker) -> None: ...
    def send(self, message: m.Message, to: str = "") -> None: ...

    @property
    def resizes(self) -> Resizes: ...


class Desired:
    """`uids`: all that is wanted; `ready`: every source has reported."""

    def __init__(self, home: Home, removed: Mapping[str, float]) -> None:
        self._home, self._removed = home, removed
        self.uids: frozenset[str] = frozenset()
        self.ready = False

    def take_pod(self, message: m.DesiredPod) -> None:
        worker = self._home.workers.get(message.uid)
        if message.pod is None:
            if worker is not None:
                self._gone(worker)
        elif is_mirror(message.pod):
            return  # the API's copy of a static pod that is here anyway
        elif worker is None:
            self._new(message.uid, message.pod, message.source)
        else:
            self._update(worker, message.pod, message.source)

    def take_set(self, message: m.DesiredSet) -> None:
        self.uids, self.ready = message.uids, message.ready or self.ready
        for worker in list(self._home.workers.values()) if self.ready else ():
            if worker.uid not in message.uids and (worker.wanted or worker.present):
                self._gone(worker)

    def _new(self, uid: str, pod: Pod, source: str) -> None:
        worker = self._home.add(uid, pod, source)
        worker.acted = self._removed.get(uid, 0.0)
        adopt(worker, pod, source)
        self._check_deletion(worker)

    def _update(self, worker: Worker, pod: Pod, source: str) -> None:
        worker.present = True
        if not worker.wanted and not pod["metadata"].get("deletionTimestamp"):
            worker.next = (pod, source)  # taken up again once the old one is gone
            return
        worker.next = None
        adopt(worker, pod, source)
        worker.source, worker.confirmed, worker.orphan = source, True, False
        if worker.admitted:
            pod = self._home.resizes.take(worker, pod)
        if podupdate.changed(worker.pod, pod):
            worker.pod = pod
            worker.holds.clear()
            if worker.stage in LIVE and worker.admitted:
                self._home.send(prepared(worker))
        self._check_deletion(worker)
        self._home.touch(worker)

    def _check_deletion(self, worker: Worker) -> None:
        """A deletion gives a grace, which may only shrink."""
        if not worker.deleted:
            return
        grace = worker.pod["metadata"].get("deletionGracePeriodSeconds")
        if grace is not None:
            self._home.shorten(worker, max(int(grace), 1))
        self._unwanted(worker)

    def _gone(self, worker: Worker) -> None:
        worker.next, worker.present = None, False
        self._unwanted(worker)

    def _unwanted(self, worker: Worker) -> None:
        worker.wanted = False
        worker.confirmed = True
        self._home.touch(worker)


def adopt(worker: Worker, pod: Pod, source: str) -> None:
    """Take from the API's status what only it knows: that of a pod whose record is missing, and what others wrote."""
    told = pod.get("status") or {}
    if source != API or not told:
        return
    worker.vouched = worker.vouched or podupdate.was_admitted(told)
    worker.status, worker.told = podupdate.adopt(worker.status, told), dict(told)
    worker.foreign = podupdate.foreign(told)
