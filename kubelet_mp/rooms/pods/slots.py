"""A bound on heavy runtime calls, granted to the pod that came first: one pod is finished before the next starts.

A slot held longer than `stale` seconds stops counting: a runtime that hangs in one call must not hold up
every other pod.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kubelet_mp.model import clock

STALE = 10.0  # s; a heavy call normally takes well below one
LOOK = 5.0  # s between two looks of those that wait, should a wake-up have been missed


class Cancelled(Exception):
    """The pod is wanted otherwise by now: whoever waits for it stops."""


@dataclass(order=True, slots=True)
class _Waiter:
    order: int
    serial: int
    called: threading.Condition = field(compare=False)


class Slots:
    """`limit` concurrent holders; of those that wait the lowest order goes first. Thread-safe.

    Each that waits is called by itself: with one call for all, a hundred threads would wake for every slot.
    """

    def __init__(self, limit: int, stale: float = STALE, now: Callable[[], float] = clock.monotonic) -> None:
        self.limit, self.stale, self._now = limit, stale, now
        self._lock = threading.Lock()
        self._given_back = threading.Condition(self._lock)
        self._waiting: list[_Waiter] = []  # in order
        self._held: dict[int, float] = {}
        self._serial = itertools.count()
        self._closed = False

    def acquire(self, order: int, cancel: threading.Event | None = None) -> int:
        """Wait for a slot; returns what `release` takes. Raises Cancelled when `cancel` is set meanwhile."""
        with self._lock:
            me = _Waiter(order, next(self._serial), threading.Condition(self._lock))
            bisect.insort(self._waiting, me)
            try:
                while not (self._waiting[0] is me and self._free()):
                    if cancel is not None and cancel.is_set():
                        raise Cancelled
                    me.called.wait(min(self.stale / 4, LOOK))
                self._held[me.serial] = self._now()
            finally:
                self._waiting.remove(me)
                self._call_first()
        return me.serial

    def release(self, ticket: int) -> None:
        with self._lock:
            self._held.pop(ticket, None)
            self._given_back.notify_all()
            self._call_first()

    def _call_first(self) -> None:
        if self._waiting and self._free():
            self._waiting[0].called.notify()

    def wake(self) -> None:
        """Have those that wait look at their `cancel`."""
        with self._lock:
            for waiter in self._waiting:
                waiter.called.notify()

    def drain(self, seconds: float) -> bool:
        """Grant nothing any more and wait until what is held is given back; False if it is not within `seconds`.

        A runtime gives up a call whose caller goes away, in the middle of setting up or tearing down a network.
        """
        with self._lock:
            self._closed = True
            return self._given_back.wait_for(lambda: not self._held, seconds)

    def ahead(self, order: int) -> int:
        """How many wait before that order."""
        with self._lock:
            return sum(1 for waiter in self._waiting if waiter.order < order)

    def _free(self) -> bool:
        now = self._now()
        return not self._closed and sum(1 for since in self._held.values() if now - since < self.stale) < self.limit


class Turn:
    """One pass's claim on a slot: taken before heavy calls, given back while the pass merely waits."""

    def __init__(self, slots: Slots, order: int, cancel: threading.Event | None = None) -> None:
        self._slots, self.order, self._cancel = slots, order, cancel
        self._ticket: int | None = None
        self.waiting = False

    def take(self) -> None:
        """Hold a slot from here on (nothing to do if one is held). Raises Cancelled."""
        if self._ticket is None:
            self.waiting = True
            try:
                self._ticket = self._slots.acquire(self.order, self._cancel)
            finally:
                self.waiting = False

    def give_back(self) -> None:
        ticket, self._ticket = self._ticket, None
        if ticket is not None:
            self._slots.release(ticket)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Without a slot inside; whoever needs one afterwards takes it again."""
        self.give_back()
        yield

    def ahead(self) -> int:
        return self._slots.ahead(self.order)
