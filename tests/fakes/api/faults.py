"""What a test has the server do wrong, and how often."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from tests.fakes.api.store import Refused

RELEASE = 30.0  # s after which a hanging request goes on, so that no test leaves threads behind


@dataclass
class Fault:
    """For requests whose verb (get, list, watch, create, update, patch, delete; "" any) and path fit."""

    verb: str
    path: str  # a part of it
    times: int  # left; below 0: for ever
    refused: Refused | None = None
    delay: float = 0.0  # s
    hang: threading.Event | None = None
    drop: bool = False  # close the connection without an answer


@dataclass
class Faults:
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _list: list[Fault] = field(default_factory=list)

    def add(self, fault: Fault) -> None:
        with self._lock:
            self._list.append(fault)

    def clear(self) -> None:
        """All is well again; what hangs goes on."""
        with self._lock:
            gone, self._list = self._list, []
        for fault in gone:
            if fault.hang is not None:
                fault.hang.set()

    def take(self, verb: str, path: str) -> Fault | None:
        """The first that fits, once less from now on."""
        with self._lock:
            for fault in self._list:
                if fault.times and fault.verb in ("", verb) and fault.path in path:
                    fault.times -= 1
                    return fault
        return None
