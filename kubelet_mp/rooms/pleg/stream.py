"""The thread that reads the runtime's event stream, and opens it again when it breaks."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubelet_mp.errors import RuntimeCallError, RuntimeUnimplemented
from kubelet_mp.model.runtime import ContainerEvent
from kubelet_mp.rooms.pleg.health import Pace

EMPTY_STREAMS = 3  # so many streams that end at once and without an error: events are switched off


@dataclass(frozen=True, slots=True)
class Hears:
    """What the reader tells, from its thread. `attempt` numbers the streams."""

    opened: Callable[[int], None]
    event: Callable[[int, ContainerEvent], None]
    broken: Callable[[int, str], None]
    absent: Callable[[str], None]  # the runtime has no events; the thread ends


class EventReader:
    """`start` it once; `stop` cancels the stream."""

    def __init__(self, runtime: Any, hears: Hears, pace: Pace) -> None:
        self._runtime, self._hears, self._pace = runtime, hears, pace
        self._stopping = threading.Event()
        self._stream: Any = None
        self._attempt = self._failures = self._empty = 0
        self._thread = threading.Thread(target=self._work, name="pleg-events", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._stream is not None:
            self._stream.cancel()

    def _work(self) -> None:
        while not self._stopping.is_set():
            why = self._read()
            if self._stopping.is_set():
                return
            if why is None or self._empty >= EMPTY_STREAMS:
                self._hears.absent("it has no GetContainerEvents" if why is None else "its events are switched off")
                return
            self._hears.broken(self._attempt, why)
            self._stopping.wait(self._next_pause())

    def _next_pause(self) -> float:
        self._failures += 1
        base = self._pace.stream_retry * 2.0 ** min(self._failures - 1, 20)
        return min(base, self._pace.stream_retry_max) * (1 + random.random() * 0.2)

    def _read(self) -> str | None:
        """Read one stream to its end; why it ended, None if the runtime has none."""
        self._attempt += 1
        before = self._empty
        try:
            self._stream = self._runtime.container_events()
            self._hears.opened(self._attempt)
            for event in self._stream:
                self._failures = self._empty = before = 0
                self._hears.event(self._attempt, event)
        except RuntimeUnimplemented:
            return None
        except RuntimeCallError as error:
            self._empty = 0
            return str(error)
        self._empty = before + 1
        return "the runtime ended the stream"
