"""Timers of a room's main thread, on a clock that is passed in."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(order=True, slots=True)
class Timer:
    due: float
    serial: int
    call: Callable[[], None] = field(compare=False)
    period: float = field(default=0.0, compare=False)
    jitter: float = field(default=0.0, compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        self.cancelled = True


class Timers:
    """`after` and `every` in seconds of `now()`; `run_due` from one thread only."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._heap: list[Timer] = []
        self._serial = itertools.count()

    def after(self, seconds: float, call: Callable[[], None]) -> Timer:
        return self._push(Timer(self._now() + seconds, next(self._serial), call))

    def every(
        self, period: float, call: Callable[[], None], *, jitter: float = 0.0, first: float | None = None
    ) -> Timer:
        """Call each `period` s, stretched by a random factor of at most 1 + `jitter`; first after `first` s."""
        due = self._now() + (period if first is None else first)
        return self._push(Timer(due, next(self._serial), call, period, jitter))

    def next_in(self) -> float | None:
        """Seconds until the next timer is due (0 if overdue), None without timers."""
        while self._heap and self._heap[0].cancelled:
            heapq.heappop(self._heap)
        return max(0.0, self._heap[0].due - self._now()) if self._heap else None

    def run_due(self) -> None:
        """Run what is due now. A periodic timer is set again before its call, which may cancel it."""
        now = self._now()
        while self._heap and self._heap[0].due <= now:
            timer = heapq.heappop(self._heap)
            if timer.cancelled:
                continue
            if timer.period:
                timer.due = now + timer.period * (1 + random.random() * timer.jitter)
                heapq.heappush(self._heap, timer)
            timer.call()

    def _push(self, timer: Timer) -> Timer:
        heapq.heappush(self._heap, timer)
        return timer
