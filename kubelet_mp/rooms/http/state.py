"""What the room knows: the newest report of each other room, only as far as it is shown.

Pods are kept as JSON text, a tenth of the size of decoded objects. Written by the room's main thread, read
by the threads that serve.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kubelet_mp.model import clock
from kubelet_mp.model.runtime import RuntimeState
from kubelet_mp.rooms.http.exposition import Ledger
from kubelet_mp.wire.messages import (
    Health,
    Message,
    Metrics,
    NodeFacts,
    PodStatus,
    RelistDone,
    RoomHealth,
    RuntimeStateChanged,
    SourceProblem,
    StatusSet,
    Timeline,
)


@dataclass(frozen=True, slots=True)
class PodView:
    """One pod as last reported; `since` monotonic seconds, `body` the pod as JSON."""

    uid: str
    namespace: str
    name: str
    source: str
    waiting_for: str
    since: float
    terminal: bool
    body: bytes

    def pod(self) -> dict[str, Any]:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class TimelineView:
    """The story of one pod; `body` is the JSON list of its entries."""

    uid: str
    namespace: str
    name: str
    last: float
    body: bytes


def encode(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


class State:
    """`apply` takes each message; everything else reads."""

    def __init__(self, now: Callable[[], float] = clock.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._pods: dict[str, PodView] = {}
        self._timelines: dict[str, TimelineView] = {}
        self._problems: dict[str, SourceProblem] = {}
        self._rooms: tuple[RoomHealth, ...] = ()
        self._rooms_at = now()
        self.ledger = Ledger()
        self.runtime = RuntimeState()
        self.relist: RelistDone | None = None
        self.facts: NodeFacts | None = None
        self._takers: dict[type[Message], Callable[[Any], None]] = {
            PodStatus: self._take_status,
            StatusSet: self._take_set,
            Timeline: self._take_timeline,
            SourceProblem: self._take_problem,
            Health: self._take_health,
            Metrics: lambda m: self.ledger.update(m.room, m.text),
            RuntimeStateChanged: lambda m: setattr(self, "runtime", m.state),
            RelistDone: lambda m: setattr(self, "relist", m),
            NodeFacts: lambda m: setattr(self, "facts", m),
        }

    def apply(self, message: Message) -> None:
        taker = self._takers.get(type(message))
        if taker is None:
            return
        with self._lock:
            taker(message)

    def _take_status(self, message: PodStatus) -> None:
        meta = message.pod["metadata"]
        self._pods[message.uid] = PodView(
            message.uid, meta.get("namespace", ""), meta["name"], message.source, message.waiting_for,
            message.since, message.terminal, encode(message.pod),
        )

    def _take_set(self, message: StatusSet) -> None:
        for uid in self._pods.keys() - message.uids:
            del self._pods[uid]

    def _take_timeline(self, message: Timeline) -> None:
        if not message.entries:
            self._timelines.pop(message.uid, None)
            return
        rows = [
            {"first": e.first, "last": e.last, "count": e.count, "type": e.type, "reason": e.reason,
             "message": e.message, "fieldPath": e.field_path}
            for e in message.entries
        ]
        last = max(e.last for e in message.entries)
        self._timelines[message.uid] = TimelineView(message.uid, message.namespace, message.name, last, encode(rows))

    def _take_problem(self, message: SourceProblem) -> None:
        if message.problem:
            self._problems[message.origin] = message
        else:
            self._problems.pop(message.origin, None)

    def _take_health(self, message: Health) -> None:
        self._rooms, self._rooms_at = message.rooms, self._now()

    # ---- reading, from any thread ----

    def pods(self) -> list[PodView]:
        """All pods by namespace and name."""
        with self._lock:
            views = list(self._pods.values())
        return sorted(views, key=lambda view: (view.namespace, view.name, view.uid))

    def pod(self, namespace: str, name: str) -> PodView | None:
        """The pod of that name; of several (an old one still ending) the one that is not finished."""
        views = [view for view in self.pods() if (view.namespace, view.name) == (namespace, name)]
        return min(views, key=lambda view: view.terminal, default=None)

    def by_uid(self, uid: str) -> PodView | None:
        with self._lock:
            return self._pods.get(uid)

    def timelines(self, namespace: str = "", name: str = "") -> list[TimelineView]:
        """Stories, the one with the newest entry last; of one pod name if given."""
        with self._lock:
            views: Iterable[TimelineView] = list(self._timelines.values())
        if name:
            views = [view for view in views if (view.namespace, view.name) == (namespace, name)]
        return sorted(views, key=lambda view: view.last)

    def problems(self) -> list[SourceProblem]:
        with self._lock:
            return sorted(self._problems.values(), key=lambda problem: problem.origin)

    def rooms(self) -> tuple[tuple[RoomHealth, ...], float]:
        """(the process table, its age in seconds)."""
        with self._lock:
            return self._rooms, self._now() - self._rooms_at

    def silence(self, room: str) -> float:
        """Seconds since the last heartbeat of a room that we know of."""
        rooms, age = self.rooms()
        return age + next((entry.beat_age for entry in rooms if entry.room == room), 0.0)
