"""What every room is: a main thread that takes messages, runs timers and beats; and the edge of its errors.

A room subclass says what it does on start, on a message, and what it knows (`replay`). All of that runs on
the main thread, so a room's state needs no locks; slow work goes to threads that come back with `post`.
"""

from __future__ import annotations

import itertools
import os
import queue
import selectors
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from kubelet_mp import log
from kubelet_mp.config import Settings
from kubelet_mp.errors import StartError
from kubelet_mp.model import clock
from kubelet_mp.rooms.timers import Timers
from kubelet_mp.wire.envelope import credit, seal
from kubelet_mp.wire.link import ChildEnd, LinkBroken
from kubelet_mp.wire.messages import Event, Message, Metrics, RoomUp

MAX_WAIT = 1.0  # s between two heartbeats at most
EXIT_BOOT = 78  # the room cannot start, and trying again would not help (EX_CONFIG)
EXIT_ORPHAN = 75
METRICS_PERIOD = 5.0


@dataclass(frozen=True)
class RoomContext:
    """What a room is born with. `beat` records a heartbeat; `parent` is the supervisor's pid."""

    settings: Settings
    link: ChildEnd
    incarnation: int
    beat: Callable[[], None]
    parent: int


class Room:
    """Subclasses set `name` and override `start`, `handle`, `replay`, `close`; perhaps `metrics_text`."""

    name: ClassVar[str] = ""

    def __init__(self, context: RoomContext) -> None:
        self.context = context
        self.settings = context.settings
        self.log = log.get(self.name)
        self.timers = Timers(clock.monotonic)
        self.stopping = threading.Event()
        self._seq = itertools.count(1)
        self._posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._last_metrics = ""

    # ---- for subclasses ----

    def start(self) -> None:
        """Open channels and read the source of truth. Raise StartError if no later try could succeed."""

    def handle(self, message: Message) -> None:
        """Take one message. An exception is logged and the room ends: it will rebuild its state."""

    def replay(self, room: str) -> None:
        """`room` has just started: send it (`to=room`) every fact that it gets from this room."""

    def close(self) -> None:
        """Close channels; at most a second or two."""

    def metrics_text(self) -> str:
        """The Prometheus text of this room's registry; sent to http when it changed."""
        return ""

    # ---- services, callable from any thread ----

    def send(self, message: Message, to: str = "") -> None:
        """Send a message to `to`, or wherever its kind is routed."""
        self.context.link.put(
            seal(message, room=self.name, incarnation=self.context.incarnation, seq=next(self._seq),
                 sent=clock.monotonic(), to=to)
        )

    def post(self, call: Callable[[], None]) -> None:
        """Have the main thread run `call` soon."""
        self._posted.put(call)
        self.wake()

    def fail(self, error: BaseException) -> None:
        """Have the main thread raise what another thread ran into: the room ends by it, and is forked anew."""

        def again() -> None:
            raise error

        self.post(again)

    def wake(self) -> None:
        try:
            os.write(self._wake_write, b"x")
        except BlockingIOError:
            return  # the pipe is full: the main thread will wake anyway

    def pod_event(self, pod: Mapping[str, Any], type_: str, reason: str, message: str, field_path: str = "") -> None:
        """Send a Kubernetes event about `pod` (type_ Normal or Warning)."""
        meta = pod["metadata"]
        self.send(Event("Pod", meta.get("namespace", ""), meta["name"], meta["uid"], type_, reason, message,
                        clock.wall_time(), field_path, serial=next(self._seq),
                        resource_version=str(meta.get("resourceVersion", ""))))

    # ---- the main thread ----

    def run(self) -> int:
        """Work until told to stop. Returns the exit code."""
        signal.signal(signal.SIGTERM, self._on_term)
        try:
            self.context.beat()
            self.start()
            self._serve()
        except StartError as error:
            self.log.error("cannot start", err=str(error))
            return EXIT_BOOT
        except LinkBroken as error:
            self.log.error("the link to the supervisor broke", err=str(error))
            return EXIT_ORPHAN
        except Exception as error:  # the edge of the room: it ends, and is forked anew with a clean state
            self.log.exception("room failed", err=f"{type(error).__name__}: {error}")
            return 1
        finally:
            self.stopping.set()
            self.close()
        return 0

    def _on_term(self, signum: int, frame: object) -> None:
        self.stopping.set()
        self.wake()

    def _serve(self) -> None:
        self.timers.every(METRICS_PERIOD, self._send_metrics, jitter=0.2, first=0.5)
        with selectors.PollSelector() as selector:
            selector.register(self.context.link.read_fd, selectors.EVENT_READ, self._take_batch)
            selector.register(self._wake_read, selectors.EVENT_READ, self._drain_wake)
            self._ask()
            while not self.stopping.is_set():
                self._turn(selector)

    def _turn(self, selector: selectors.BaseSelector) -> None:
        wait = self.timers.next_in()
        ready = selector.select(MAX_WAIT if wait is None else min(wait, MAX_WAIT))
        self.context.beat()
        if os.getppid() != self.context.parent:
            raise LinkBroken("the supervisor is gone")
        for key, _ in ready:
            key.data()
        self._run_posted()
        self.timers.run_due()

    def _take_batch(self) -> None:
        for envelope in self.context.link.get():
            message = envelope.open()
            if isinstance(message, RoomUp):
                self._room_up(message.room)
            else:
                self.handle(message)
            self.context.beat()
        self._ask()

    def _room_up(self, room: str) -> None:
        if room == "http":
            self._last_metrics = ""  # it has lost them: send them again with the next round
        self.replay(room)

    def _ask(self) -> None:
        self.context.link.put(credit(self.name, self.context.incarnation, next(self._seq), clock.monotonic()))

    def _drain_wake(self) -> None:
        try:
            os.read(self._wake_read, 65536)
        except BlockingIOError:
            return

    def _run_posted(self) -> None:
        for _ in range(self._posted.qsize()):
            self._posted.get_nowait()()

    def _send_metrics(self) -> None:
        text = self.metrics_text()
        if text and text != self._last_metrics:
            self._last_metrics = text
            self.send(Metrics(self.name, text))
