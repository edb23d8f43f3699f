"""A few threads that do slow work, one job per key at a time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from kubelet_mp import log

_log = log.get("housekeeping")


class Crew:
    """Threads are started with the first job. A job that raises is logged; the crew goes on."""

    def __init__(self, name: str, size: int) -> None:
        self._name, self._size = name, size
        self._jobs: queue.SimpleQueue[tuple[str, Callable[[], None]] | None] = queue.SimpleQueue()
        self._busy: set[str] = set()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def busy(self, key: str) -> bool:
        """Whether a job of that key waits or runs."""
        with self._lock:
            return key in self._busy

    def do(self, key: str, job: Callable[[], None]) -> None:
        with self._lock:
            self._busy.add(key)
        if len(self._threads) < self._size:
            thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._jobs.put((key, job))

    def close(self) -> None:
        """Have the threads end after their present job; they are not waited for."""
        for _ in self._threads:
            self._jobs.put(None)

    def _work(self) -> None:
        while (entry := self._jobs.get()) is not None:
            key, job = entry
            try:
                job()
            except Exception as error:  # noqa: BLE001 - the edge of the thread: one failed job must not end the others
                _log.exception("a housekeeping job failed", job=f"{self._name} {key}", err=str(error))
            finally:
                with self._lock:
                    self._busy.discard(key)
