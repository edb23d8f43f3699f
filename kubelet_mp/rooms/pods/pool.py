"""Threads for passes: as many as there is work at once, gone after some idle seconds.

No fixed size: a pass may wait for minutes (a pull, a grace period), and must not hold up the others.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable

IDLE = 10.0  # s


class Pool:
    """`run` from any thread. A call must not raise: there is nobody to tell."""

    def __init__(self, name: str, idle: float = IDLE) -> None:
        self._name, self._idle_for = name, idle
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0

    def run(self, call: Callable[[], None]) -> None:
        with self._lock:
            spare = self._idle > 0
            if spare:
                self._idle -= 1
        if spare:
            self._work.put(call)
        else:
            threading.Thread(target=self._serve, args=(call,), name=self._name, daemon=True).start()

    def all(self, calls: list[Callable[[], None]]) -> None:
        """Run the calls side by side and wait for all of them; raises what the first failing one raised."""
        if not calls:
            return
        others = [self._start(call) for call in calls[1:]]
        errors = [_try(calls[0]), *(wait() for wait in others)]
        for error in errors:
            if error is not None:
                raise error

    def _start(self, call: Callable[[], None]) -> Callable[[], BaseException | None]:
        """Start the call; what is returned waits for its end."""
        box: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self.run(lambda: box.put(_try(call)))
        return box.get

    def _serve(self, call: Callable[[], None]) -> None:
        while True:
            call()
            with self._lock:
                self._idle += 1
            next_call = self._next()
            if next_call is None:
                return
            call = next_call

    def _next(self) -> Callable[[], None] | None:
        with contextlib.suppress(queue.Empty):
            return self._work.get(timeout=self._idle_for)
        with self._lock:
            # a call may have been promised to an idle thread between the timeout and here
            if self._idle > 0:
                self._idle -= 1
                return None
        return self._work.get()


def _try(call: Callable[[], None]) -> BaseException | None:
    try:
        call()
    except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
        return error
    return None
