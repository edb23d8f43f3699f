"""What a pass tells while it runs, brought to the worker on the main thread."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Protocol

from kubelet_mp.rooms.pods import resizing
from kubelet_mp.rooms.pods.env import Env
from kubelet_mp.rooms.pods.passes import JITTER
from kubelet_mp.rooms.pods.worker import Worker


class Desk(Protocol):
    """What the room does for this."""

    env: Env

    def post(self, call: Callable[[], None]) -> None: ...
    def touch(self, worker: Worker) -> None: ...


class Teller:
    """Hands what a pass reports to the main thread."""

    def __init__(self, desk: Desk, worker: Worker) -> None:
        self._desk, self._worker = desk, worker

    def reason(self, container: str, reason: tuple[str, str] | None, hold: float) -> None:
        self._desk.post(lambda: self._reason(container, reason, hold))

    def _reason(self, container: str, reason: tuple[str, str] | None, hold: float) -> None:
        worker = self._worker
        if reason is None:
            worker.reasons.pop(container, None)
            worker.holds.pop(container, None)
        else:
            worker.reasons[container] = reason
            stretch = 1.0 if reason[0].endswith("BackOff") else 1 + JITTER * random.random()
            worker.holds[container] = self._desk.env.clock.monotonic() + hold * stretch
        self._desk.touch(worker)

    def resized(self, container: str, container_id: str) -> None:
        self._desk.post(lambda: resizing.resized(self._worker, container, container_id))

    def sandbox(self, ips: tuple[str, ...]) -> None:
        self._desk.post(lambda: setattr(self._worker, "new_ips", ips))
