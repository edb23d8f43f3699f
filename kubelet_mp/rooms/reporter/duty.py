"""What a duty of the reporter is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kubelet_mp.rooms.timers import Timers
from kubelet_mp.wire.messages import Message

Send = Callable[..., None]  # send(message, to="")


class Duty(Protocol):
    """One thing that the reporter does with the messages that it gets. All calls come on the main thread."""

    def start(self) -> None:
        """Once, before the first message."""

    def handle(self, message: Message) -> None: ...

    def replay(self, room: str) -> None:
        """`room` has started: send it again what it has from this duty."""

    def close(self) -> None: ...


MakeDuty = Callable[[Send, Timers], Duty]
