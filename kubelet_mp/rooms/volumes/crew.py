"""A few threads for set-ups that ask the API server: a burst of pods must not become a burst of connections."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

SIZE = 8
IDLE = 10.0  # s after which a thread without work ends


class Crew:
    """`run` is for one thread; calls must not raise, and begin in the order they came."""

    def __init__(self, size: int = SIZE, idle: float = IDLE) -> None:
        self._size, self._idle = size, idle
        self._lock = threading.Lock()
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._threads = self._open = 0  # open: calls that were given and have not ended

    def run(self, call: Callable[[], None]) -> None:
        with self._lock:
            self._open += 1
            self._work.put(call)
            more = self._threads < min(self._open, self._size)
            self._threads += more
        if more:
            threading.Thread(target=self._serve, name="volumes-api", daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                call = self._work.get(timeout=self._idle)
            except queue.Empty:
                if self._leave():
                    return
                continue
            call()
            with self._lock:
                self._open -= 1

    def _leave(self) -> bool:
        with self._lock:
            if not self._work.empty():
                return False
            self._threads -= 1
            return True
