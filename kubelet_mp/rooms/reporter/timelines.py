"""The duty that works without an API server: events into the log, and every pod's timeline to http."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubelet_mp import log
from kubelet_mp.rooms.reporter.duty import DutyContext
from kubelet_mp.rooms.reporter.story import Library
from kubelet_mp.rooms.reporter.transitions import Marks, changes, marks
from kubelet_mp.wire.messages import (
    Event,
    Message,
    PodForgotten,
    PodStatus,
    StatusSet,
    Timeline,
    TimelineEntry,
)

COALESCE = 0.1  # s that changes gather before a timeline is sent
_log = log.get("reporter")


class Timelines:
    def __init__(self, context: DutyContext) -> None:
        self._send, self._timers, self._time = context.send, context.timers, context.time
        self._library = Library()
        self._marks: dict[str, Marks] = {}
        self._changed: dict[str, None] = {}

    def start(self) -> None:
        """Nothing to open."""

    def close(self) -> None:
        """Nothing to close."""

    def handle(self, message: Message) -> None:
        if isinstance(message, Event):
            self._on_event(message)
        elif isinstance(message, PodStatus):
            self._on_status(message.uid, message.pod)
        elif isinstance(message, StatusSet):
            self._on_set(message.uids)
        elif isinstance(message, PodForgotten):
            self._forget(message.uid)

    def replay(self, room: str) -> None:
        if room == "http":
            for uid in self._library.uids():
                self._tell(uid, to="http")

    def _on_event(self, event: Event) -> None:
        tell = _log.warning if event.type == "Warning" else _log.info
        tell("Event", kind=event.kind, object=f"{event.namespace}/{event.name}".lstrip("/"), type=event.type,
             reason=event.reason, text=event.message, fieldPath=event.field_path)
        if event.kind == "Pod":
            entry = TimelineEntry(event.wall, event.wall, 1, event.type, event.reason, event.message,
                                  event.field_path)
            self._write(event.uid, event.namespace, event.name, entry)

    def _on_status(self, uid: str, pod: Mapping[str, Any]) -> None:
        new, meta = marks(pod), pod["metadata"]
        for entry in changes(self._marks.get(uid), new, self._time.wall_time()):
            self._write(uid, meta.get("namespace", ""), meta["name"], entry)
        self._marks[uid] = new

    def _on_set(self, uids: frozenset[str]) -> None:
        """Pods that no longer stand may go, but a pods room that has just restarted only seems to say so."""
        for uid in self._marks.keys() - uids:
            self._library.forget(uid)

    def _forget(self, uid: str) -> None:
        self._marks.pop(uid, None)
        self._library.forget(uid)

    def _write(self, uid: str, namespace: str, name: str, entry: TimelineEntry) -> None:
        ended = self._library.add(uid, namespace, name, entry)
        for one in ended:
            self._marks.pop(one, None)
        if not self._changed:
            self._timers.after(COALESCE, self._flush)
        self._changed.update(dict.fromkeys([uid, *ended]))

    def _flush(self) -> None:
        changed, self._changed = self._changed, {}
        for uid in changed:
            self._tell(uid)

    def _tell(self, uid: str, to: str = "") -> None:
        """Without entries: the story has ended."""
        story = self._library.get(uid)
        if story is None:
            self._send(Timeline(uid, "", "", ()), to=to)
        else:
            self._send(Timeline(uid, story.namespace, story.name, story.entries), to=to)
