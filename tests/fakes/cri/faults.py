"""Injected faults: errors, delays and hangs by RPC name."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grpc

When = Callable[[Any], bool]
Act = Callable[[grpc.ServicerContext], None]


def _always(request: Any) -> bool:
    return True


class Hang:
    """A call that stays unanswered until `release`, or until the client gives up."""

    def __init__(self) -> None:
        self._released, self._reached = threading.Event(), threading.Event()

    def release(self) -> None:
        self._released.set()

    def reached(self, seconds: float = 5.0) -> None:
        """Wait until a call hangs here."""
        assert self._reached.wait(seconds), "no call came to hang"

    def wait(self, context: grpc.ServicerContext) -> None:
        self._reached.set()
        context.add_callback(self._released.set) if context.is_active() else self._released.set()
        self._released.wait()


@dataclass
class _Fault:
    when: When
    left: int | None  # None: for ever
    act: Act


@dataclass
class Faults:
    """What is to go wrong, looked at before each call."""

    _by_name: dict[str, list[_Fault]] = field(default_factory=dict)
    _hangs: list[Hang] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closing: threading.Event = field(default_factory=threading.Event)

    def fail(
        self, name: str, code: str, message: str = "injected", times: int | None = 1, when: When = _always
    ) -> None:
        status = grpc.StatusCode[code]
        self._add(name, when, times, lambda context: context.abort(status, message))

    def delay(self, name: str, seconds: float, times: int | None = None, when: When = _always) -> None:
        def act(context: grpc.ServicerContext) -> None:
            self._closing.wait(seconds)

        self._add(name, when, times, act)

    def hang(self, name: str, when: When = _always, times: int | None = None) -> Hang:
        hang = Hang()
        self._hangs.append(hang)
        self._add(name, when, times, hang.wait)
        return hang

    def heal(self, name: str = "") -> None:
        """Forget the faults of one RPC, or all; hanging calls go on."""
        with self._lock:
            self._by_name = {key: value for key, value in self._by_name.items() if name and key != name}
        if not name:
            self.release_all()

    def release_all(self) -> None:
        for hang in self._hangs:
            hang.release()

    def opening(self) -> None:
        self._closing.clear()

    def closing(self) -> None:
        self._closing.set()
        self.release_all()

    def apply(self, name: str, request: Any, context: grpc.ServicerContext) -> None:
        for fault in self._due(name, request):
            fault.act(context)

    def _add(self, name: str, when: When, times: int | None, act: Act) -> None:
        with self._lock:
            self._by_name.setdefault(name, []).append(_Fault(when, times, act))

    def _due(self, name: str, request: Any) -> list[_Fault]:
        with self._lock:
            due = [f for f in self._by_name.get(name, []) if f.left != 0 and f.when(request)]
            for fault in due:
                fault.left = None if fault.left is None else fault.left - 1
        return due
