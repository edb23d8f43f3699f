"""A thread that does the same thing again and again, with pauses of its own choice."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

FIRST, LAST = 0.2, 7.0  # s between tries of what fails: doubled each time, times 1 to 1.25


class Loop:
    """`turn()` gives the seconds until the next one. What it raises is handed to `crashed` and ends the thread."""

    def __init__(self, name: str, turn: Callable[[], float], crashed: Callable[[Exception], None]) -> None:
        self._turn, self._crashed = turn, crashed
        self._woken, self._closed = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Have the next turn begin at once, or right after the present one."""
        self._woken.set()

    def close(self) -> None:
        """The present turn is the last one; it is not waited for."""
        self._closed.set()
        self._woken.set()

    @property
    def closed(self) -> bool:
        return self._closed.is_set()

    def _work(self) -> None:
        try:
            while not self.closed:
                self._woken.clear()
                pause = self._turn()
                self._woken.wait(pause)
        except Exception as error:  # noqa: BLE001 - the edge of a thread: the room has to end with it
            self._crashed(error)


class Steps:
    """The pauses between tries of what keeps failing."""

    def __init__(self, last: float = LAST) -> None:
        self._last = last
        self._next = FIRST

    def next(self, at_least: float | None = None) -> float:
        """`at_least`: what the server asked for."""
        step, self._next = self._next, min(self._next * 2, self._last)
        return max(min(step, self._last) * random.uniform(1, 1.25), at_least or 0.0)

    def reset(self) -> None:
        self._next = FIRST
