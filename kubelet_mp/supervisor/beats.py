"""Heartbeats: one double per room in shared anonymous memory. Aligned 8-byte stores need no lock."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence


class Beats:
    """Made before any fork; every child inherits the same pages."""

    def __init__(self, rooms: Sequence[str]) -> None:
        self._index = {room: i for i, room in enumerate(rooms)}
        self._view = memoryview(mmap.mmap(-1, 8 * max(1, len(rooms)))).cast("d")

    def last(self, room: str) -> float:
        """Monotonic time of the room's last heartbeat."""
        return self._view[self._index[room]]

    def set(self, room: str, when: float) -> None:
        self._view[self._index[room]] = when

    def beater(self, room: str, now: Callable[[], float]) -> Callable[[], None]:
        index, view = self._index[room], self._view

        def beat() -> None:
            view[index] = now()

        return beat
