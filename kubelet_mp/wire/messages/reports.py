"""From everyone to reporter and http: events, timelines, metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubelet_mp.model.plain import Plain
from kubelet_mp.wire.messages.base import Message, PodMessage


@dataclass(frozen=True, slots=True)
class Event(Message):
    """A Kubernetes event. `kind` Pod or Node; `field_path` like spec.containers{web}; `wall` epoch seconds.

    `resource_version`: that of the object when it happened, "" for one that has none.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    type: str  # Normal, Warning
    reason: str
    message: str
    wall: float
    field_path: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    serial: int = 0  # makes the key unique: events are never merged on the way
    resource_version: str = ""

    def key(self) -> str:
        return f"{self.uid}/{self.reason}/{self.serial}/{self.wall}"


@dataclass(frozen=True, slots=True)
class TimelineEntry(Plain):
    """One line of a pod's timeline: `count` repeats between `first` and `last` (epoch seconds)."""

    first: float
    last: float
    count: int
    type: str
    reason: str
    message: str
    field_path: str = ""


@dataclass(frozen=True, slots=True)
class Timeline(PodMessage):
    """The bounded, aggregated history of one pod, kept by the reporter and shown by http."""

    namespace: str
    name: str
    entries: tuple[TimelineEntry, ...]


@dataclass(frozen=True, slots=True)
class Metrics(Message):
    """A room's metric families as the Prometheus text of its registry, newest wins."""

    room: str
    text: str

    def key(self) -> str:
        return self.room
