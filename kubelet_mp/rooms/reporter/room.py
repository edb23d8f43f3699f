"""The reporter room: hands every message to each of its duties."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kubelet_mp.model import clock
from kubelet_mp.rooms.base import Room, RoomContext
from kubelet_mp.rooms.lateapi import LateApi, client_for
from kubelet_mp.rooms.reporter.duties import duties
from kubelet_mp.rooms.reporter.duty import Api, Duty, DutyContext, MakeDuty
from kubelet_mp.wire.messages import Event, Message, NodeObject


class ReporterRoom(Room):
    """`make`: the duties, those that the settings call for by default; `make_api`: the client of the API server."""

    name = "reporter"

    def __init__(
        self, context: RoomContext, make: Sequence[MakeDuty] | None = None, make_api: Callable[[], Api] | None = None
    ) -> None:
        super().__init__(context)
        given = DutyContext(
            settings=self.settings, send=self.tell, timers=self.timers, post=self.post, log=self.log,
            fail=self.fail,
            api=LateApi(make_api or (lambda: client_for(self.settings, self.name))), pod_event=self.pod_event,
            node_event=self.node_event)
        self.duties: list[Duty] = [one(given) for one in (duties(self.settings) if make is None else make)]

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

    def tell(self, message: Message, to: str = "") -> None:
        """Send a message; the Node as it now is goes to the other duties too: no room is sent its own messages."""
        self.send(message, to)
        if isinstance(message, NodeObject) and not to:
            self.post(lambda: self.handle(message))

    # ---- events of this room's own: no room is sent its own messages, so its duties get them at once ----

    def pod_event(
        self, pod: Mapping[str, Any], type_: str, reason: str, message: str, field_path: str = ""
    ) -> None:
        meta = pod["metadata"]
        self._tell(Event("Pod", meta.get("namespace", ""), meta["name"], meta["uid"], type_, reason, message,
                         clock.wall_time(), field_path, serial=next(self._seq),
                         resource_version=str(meta.get("resourceVersion", ""))))

    def node_event(self, type_: str, reason: str, message: str) -> None:
        name = self.settings.node_name
        self._tell(Event("Node", "", name, name, type_, reason, message, clock.wall_time(), serial=next(self._seq)))

    def _tell(self, event: Event) -> None:
        self.post(lambda: self.handle(event))
