"""One timer for the whole room: it rings when the first of many things is due."""

from __future__ import annotations

from collections.abc import Callable

from kubelet_mp.rooms.timers import Timer, Timers


class Alarm:
    """`set` replaces the time at which `ring` is called, in seconds of `now()`; infinity: never."""

    def __init__(self, timers: Timers, now: Callable[[], float], ring: Callable[[], None]) -> None:
        self._timers, self._now, self._ring = timers, now, ring
        self._timer: Timer | None = None
        self._when = float("inf")

    def set(self, when: float) -> None:
        if when == self._when:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._when = None, when
        if when < float("inf"):
            self._timer = self._timers.after(max(when - self._now(), 0.0), self._go)

    def _go(self) -> None:
        self._timer, self._when = None, float("inf")
        self._ring()
