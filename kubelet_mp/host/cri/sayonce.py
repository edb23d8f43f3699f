"""Logging of errors that come again and again: the same one at most once a minute."""

from __future__ import annotations

import threading

from kubelet_mp import log
from kubelet_mp.errors import RuntimeCallError
from kubelet_mp.model import clock

PERIOD = 60.0  # s
_MOST = 256  # texts remembered

_log = log.get()


class SayOnce:
    """Thread-safe."""

    def __init__(self, now: clock.Clock = clock.SYSTEM) -> None:
        self._clock = now
        self._lock = threading.Lock()
        self._said: dict[tuple[str, str], float] = {}

    def error(self, error: RuntimeCallError) -> bool:
        """Log it unless the same was logged within PERIOD; whether it was."""
        if not self._due((error.method, error.message)):
            return False
        _log.error("CRI call failed", method=error.method, err=str(error))
        return True

    def _due(self, key: tuple[str, str]) -> bool:
        now = self._clock.monotonic()
        with self._lock:
            if now - self._said.get(key, -PERIOD) < PERIOD:
                return False
            if len(self._said) >= _MOST:
                self._said.clear()
            self._said[key] = now
            return True
