"""From the supervisor."""

from __future__ import annotations

from dataclasses import dataclass

from kubelet_mp.model.plain import Plain
from kubelet_mp.wire.messages.base import Message


@dataclass(frozen=True, slots=True)
class RoomUp(Message):
    """`room` runs anew as `incarnation`: whoever feeds it sends it everything again."""

    room: str
    incarnation: int

    def key(self) -> str:
        return self.room


@dataclass(frozen=True, slots=True)
class RoomHealth(Plain):
    """One line of `Health`: `beat_age` and `up` in seconds."""

    room: str
    pid: int
    incarnation: int
    restarts: int
    beat_age: float
    up: float
    waiting: int  # messages kept in its mailbox
    last_exit: str = ""


@dataclass(frozen=True, slots=True)
class Health(Message):
    """The process table as the supervisor sees it, once a second to the http room."""

    rooms: tuple[RoomHealth, ...]
