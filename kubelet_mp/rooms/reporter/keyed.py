"""Threads that bring one thing after another up to date: each key is asked for by one thread at a time."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from kubelet_mp.errors import ApiError
from kubelet_mp.model import clock

IDLE = 30.0  # s after which a thread without work ends
FIRST, LAST = 0.2, 10.0  # s between tries of a key that fails: doubled each time, times 1 to 1.5


class Keyed:
    """`sync(key)` does all that is to do for a key, however often it was asked for meanwhile.

    It may block and raise ApiError, upon which it is tried again, later each time; `failed(key, error, again)`
    tells of it, from that thread. Any other exception is handed to `crashed`.
    """

    def __init__(
        self, name: str, threads: int, sync: Callable[[str], None], *,
        failed: Callable[[str, ApiError, float], None], crashed: Callable[[Exception], None],
    ) -> None:
        self._name, self._size, self._sync = name, threads, sync
        self._failed, self._crashed = failed, crashed
        self._changed = threading.Condition()
        self._due: dict[str, float] = {}  # key → monotonic time, in order of the orders
        self._busy: set[str] = set()
        self._delay: dict[str, float] = {}
        self._threads = self._idle = 0
        self._closed = False

    def ask(self, key: str) -> None:
        """Have `key` brought up to date soon, even if a try is being waited for."""
        with self._changed:
            if self._closed:
                return
            self._due[key] = min(self._due.get(key, 0.0), 0.0)
            if len(self._due) > self._idle and self._threads < self._size:  # one that was woken is still idle
                self._threads += 1
                threading.Thread(target=self._serve, name=self._name, daemon=True).start()
            else:
                self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._due.clear()
            self._changed.notify_all()

    @property
    def waiting(self) -> int:
        """How many keys wait for their turn or for another try."""
        with self._changed:
            return len(self._due)

    # ---- in the threads ----

    def _serve(self) -> None:
        while (key := self._next()) is not None:
            try:
                self._one(key)
            except Exception as error:  # noqa: BLE001 - the edge of a thread: the room has to end with it
                self._crashed(error)
                return

    def _one(self, key: str) -> None:
        again: float | None = None
        try:
            self._sync(key)
        except ApiError as error:
            again = self._delays(key, error)
            self._failed(key, error, again)
        with self._changed:
            self._busy.discard(key)
            if again is None:
                self._delay.pop(key, None)
            elif not self._closed:
                self._due.setdefault(key, clock.monotonic() + again)
            self._changed.notify()

    def _delays(self, key: str, error: ApiError) -> float:
        with self._changed:
            delay = self._delay.get(key, FIRST)
            self._delay[key] = min(delay * 2, LAST)
        return max(delay * (1 + random.random() / 2), error.retry_after or 0.0)

    def _next(self) -> str | None:
        """The next key that is due; None when the thread is to end."""
        give_up = clock.monotonic() + IDLE
        with self._changed:
            while not self._closed:
                now = clock.monotonic()
                key = next((k for k, at in self._due.items() if at <= now and k not in self._busy), None)
                if key is not None:
                    del self._due[key]
                    self._busy.add(key)
                    return key
                if now >= give_up and not self._due:
                    break
                self._idle += 1
                self._changed.wait(self._patience(now))
                self._idle -= 1
            self._threads -= 1
        return None

    def _patience(self, now: float) -> float:
        times = [at for key, at in self._due.items() if key not in self._busy]
        return min([IDLE, *(max(at - now, 0.01) for at in times)])
