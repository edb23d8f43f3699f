"""The reporter room: hands every message to each of its duties."""

from __future__ import annotations

from collections.abc import Sequence

from kubelet_mp.rooms.base import Room, RoomContext
from kubelet_mp.rooms.reporter.duty import Duty, MakeDuty
from kubelet_mp.rooms.reporter.timelines import Timelines
from kubelet_mp.wire.messages import Message


class ReporterRoom(Room):
    name = "reporter"

    def __init__(self, context: RoomContext, make: Sequence[MakeDuty] = (Timelines,)) -> None:
        super().__init__(context)
        self.duties: list[Duty] = [one(self.send, self.timers) for one in make]

    def start(self) -> None:
        for duty in self.duties:
            duty.start()

    def handle(self, message: Message) -> None:
        for duty in self.duties:
            duty.handle(message)

    def replay(self, room: str) -> None:
        for duty in self.duties:
            duty.replay(room)

    def close(self) -> None:
        for duty in self.duties:
            duty.close()
