"""Run a room without a supervisor: `FakeLink` stands for its ChildEnd, `RoomRunner` turns it in a thread.

    with RoomRunner(PodsRoom, settings) as room:          # start(), then turns until the end of the block
        room.give(DesiredPod(...))                        # what the supervisor would deliver
        sent = room.wait_for(PodStatus, lambda m: m.uid == "u1")
        room.link.clear()

Everything that the room sent is in `room.link.messages` (opened, oldest first), with its addressee in
`room.link.sent`. An exception of the room ends its thread and is raised again at the end of the block;
`room.failure()` gives it earlier.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from kubelet_mp.config import Settings
from kubelet_mp.model import clock
from kubelet_mp.rooms.base import Room, RoomContext
from kubelet_mp.wire.envelope import CREDIT, Envelope, seal
from kubelet_mp.wire.messages import Message, RoomUp
from tests.support import wait_until

M = TypeVar("M", bound=Message)


class FakeLink:
    """A ChildEnd with nobody behind it: `put` keeps the opened messages, `give` fills the next batch."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self._lock = threading.Lock()
        self._inbox: list[Envelope] = []
        self.read_fd = self._read
        self.sent: list[tuple[str, Message]] = []  # (addressee or "", message)
        self.credits = 0

    # ---- what a room calls ----

    def put(self, envelope: Envelope, timeout: float = 30.0) -> None:
        with self._lock:
            if envelope.kind == CREDIT:
                self.credits += 1
            else:
                self.sent.append((envelope.to, envelope.open()))

    def get(self) -> list[Envelope]:
        os.read(self._read, 1)
        with self._lock:
            batch, self._inbox = self._inbox, []
        return batch

    def close(self) -> None:
        for fd in (self._read, self._write):
            with contextlib.suppress(OSError):
                os.close(fd)

    # ---- what a test calls ----

    def give(self, *messages: Message) -> None:
        """Deliver these in one batch."""
        with self._lock:
            first = not self._inbox
            for message in messages:
                self._inbox.append(seal(message, room="test", incarnation=1, seq=0, sent=clock.monotonic()))
            if first:
                os.write(self._write, b"x")

    @property
    def messages(self) -> list[Message]:
        with self._lock:
            return [message for _, message in self.sent]

    def of(self, kind: type[M], to: str | None = None) -> list[M]:
        """The sent messages of one type, oldest first; `to`: only those addressed so."""
        with self._lock:
            return [m for addressee, m in self.sent if isinstance(m, kind) and to in (None, addressee)]

    def clear(self) -> None:
        with self._lock:
            self.sent.clear()


class RoomRunner:
    """Runs `start` and then the turns of a room in a thread of the test; see the module's docstring.

    `extra` goes to the room's constructor (clocks, roots, fakes).
    """

    def __init__(self, room: type[Room], settings: Settings | None = None, **extra: Any) -> None:
        self.link = FakeLink()
        self.beats = 0
        link: Any = self.link
        context = RoomContext(settings or Settings(node_name="node"), link, 1, self._beat, os.getppid())
        self.room: Any = room(context, **extra)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name=f"room-{room.name}", daemon=True)

    def _beat(self) -> None:
        self.beats += 1

    def _work(self) -> None:
        try:
            self.room.start()
            self._turns()
        except BaseException as error:  # noqa: BLE001 - whatever ends the room is the test's to see
            self._failure = error

    def _turns(self) -> None:
        room = self.room
        with selectors.PollSelector() as selector:
            selector.register(self.link.read_fd, selectors.EVENT_READ, room._take_batch)
            selector.register(room._wake_read, selectors.EVENT_READ, room._drain_wake)
            room._ask()
            while not room.stopping.is_set():
                room._turn(selector)

    # ---- for tests ----

    def give(self, *messages: Message) -> None:
        self.link.give(*messages)

    def come_up(self, room: str, incarnation: int = 1) -> None:
        """Another room starts: this one replays its facts to it."""
        self.link.give(RoomUp(room, incarnation))

    def wait_for(self, kind: type[M], match: Callable[[M], bool] = lambda _: True, seconds: float = 5.0) -> M:
        """The newest message of that type that matches, as soon as there is one."""

        def newest() -> M | None:
            if self._failure is not None:
                raise AssertionError(f"the room failed: {self._failure!r}") from self._failure
            return next((m for m in reversed(self.link.of(kind)) if match(m)), None)

        found = wait_until(newest, seconds, f"a {kind.__name__}")
        assert found is not None
        return found

    def run_here(self, call: Callable[[], Any], seconds: float = 5.0) -> Any:
        """Run `call` on the room's main thread and give its result."""
        box: list[Any] = []
        self.room.post(lambda: box.append(call()))
        wait_until(lambda: box, seconds, "the room to run a call")
        return box[0]

    def failure(self) -> BaseException | None:
        return self._failure

    def ended(self) -> bool:
        return not self._thread.is_alive()

    def __enter__(self) -> RoomRunner:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.room.stopping.set()
        self.room.wake()
        self._thread.join(10)
        self.room.close()
        self.link.close()
        if error is None and self._failure is not None:
            raise self._failure
