"""Small helpers for tests: waiting for a condition, and a clock that is moved by hand."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_STEP = 0.002  # s between two looks


def wait_until(condition: Callable[[], T], seconds: float = 5.0, what: str = "") -> T:
    """The first true value of `condition`; AssertionError naming `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {seconds} s in vain for {what or condition}"
        pause.wait(_STEP)


class FakeClock:
    """A model.clock.Clock that stands still until `advance`."""

    def __init__(self, monotonic: float = 1000.0, wall: float = 1_700_000_000.0) -> None:
        self._monotonic, self._wall = monotonic, wall

    def monotonic(self) -> float:
        return self._monotonic

    def wall_time(self) -> float:
        return self._wall

    def wall_time_ns(self) -> int:
        return int(self._wall * 1e9)

    def advance(self, seconds: float) -> None:
        self._monotonic += seconds
        self._wall += seconds
