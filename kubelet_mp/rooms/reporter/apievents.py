"""The duty that writes events to the API server. A lost event never holds anything up.

Source: Kubernetes 1.37 k8s.io/client-go/tools/record (event.go): names, fields, what is tried again.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import replace
from typing import Any

from kubelet_mp.errors import ApiError
from kubelet_mp.model.clock import rfc3339
from kubelet_mp.rooms.reporter.correlate import Correlator, Series
from kubelet_mp.rooms.reporter.duty import DutyContext
from kubelet_mp.wire.messages import Event, Message, NodeObject

KEPT = 1000  # events that wait; the oldest is dropped for a newer one
FIRST, LAST = 0.5, 10.0  # s between tries while the API server is away
TRIES = 12  # of one event at a server that answers
COMPONENT = "kubelet"
_NODE_NAMESPACE = "default"
_NS = 1_000_000_000


class ApiEvents:
    """One thread writes one event after the other, eventRecordQPS at most."""

    def __init__(self, context: DutyContext) -> None:
        kubelet = context.settings.kubelet
        self._context = context
        self._waiting: deque[Event] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._dropped = 0
        self._node_uid = ""
        self._correlator = Correlator()
        self._bucket = Bucket(kubelet.event_record_qps, kubelet.event_burst)
        self._thread = threading.Thread(target=self._run, name="api-events", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def replay(self, room: str) -> None:
        """Events are not told twice."""

    def handle(self, message: Message) -> None:
        if isinstance(message, NodeObject):
            self._node_uid = str(message.node["metadata"].get("uid", ""))
        if not isinstance(message, Event):
            return
        with self._changed:
            if len(self._waiting) >= KEPT:
                self._waiting.popleft()
                self._dropped += 1
            self._waiting.append(self._addressed(message))
            self._changed.notify()

    def _addressed(self, event: Event) -> Event:
        """The node is called by its name until its uid is known."""
        return replace(event, uid=self._node_uid) if event.kind == "Node" and self._node_uid else event

    # ---- in the thread ----

    def _run(self) -> None:
        try:
            self._serve()
        except Exception as error:  # noqa: BLE001 - the edge of a thread: the room has to end with it
            self._context.fail(error)

    def _serve(self) -> None:
        while (event := self._next()) is not None:
            now = self._context.time.monotonic()
            series = self._correlator.take(event, now)
            if series is not None and self._pause(self._bucket.wait(now)):
                self._deliver(event, series)

    def _next(self) -> Event | None:
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait(60.0)
            if self._closed:
                return None
            lost, self._dropped = self._dropped, 0
            event = self._waiting.popleft()
        if lost:
            self._context.log.warning("events were not written to the API server in time and are lost", count=lost)
        return event

    def _pause(self, seconds: float) -> bool:
        """False when the duty is to end."""
        if seconds <= 0:
            return not self._closed
        with self._changed:
            return not self._changed.wait_for(lambda: self._closed, seconds)

    def _deliver(self, event: Event, series: Series) -> None:
        """Until it is written or refused; meanwhile newer events may push out older ones that wait.

        A server that is away is waited for; one that fails at this event, a few times.
        """
        delay, tries = FIRST, TRIES
        while True:
            try:
                self._write(event, series)
                return
            except ApiError as error:
                tries -= bool(error.status)
                if error.status and (not tries or (error.status < 500 and error.status != 429)):
                    self._context.log.v(3).info("the API server refuses an event", reason=event.reason,
                                                err=error.message)
                    return
                wait = max(delay, error.retry_after or 0.0)
            if not self._pause(wait):
                return
            delay = min(2 * delay, LAST)

    def _write(self, event: Event, series: Series) -> None:
        path = f"/api/v1/namespaces/{event.namespace or _NODE_NAMESPACE}/events"
        api = self._context.api()
        if series.name:
            change = {"count": series.count, "lastTimestamp": _time(series.last), "message": series.message}
            try:
                api.patch(f"{path}/{series.name}", change)
                return
            except ApiError as error:
                if not error.not_found:
                    raise
        name = f"{event.name}.{self._context.time.wall_time_ns():016x}"
        api.create(path, body(event, series, name, self._context.settings.node_name))
        series.name = name


def body(event: Event, series: Series, name: str, host: str) -> dict[str, Any]:
    """The core/v1 Event to create."""
    about = {"apiVersion": "v1", "kind": event.kind, "namespace": event.namespace, "name": event.name,
             "uid": event.uid, "resourceVersion": event.resource_version, "fieldPath": event.field_path}
    meta: dict[str, Any] = {"name": name, "namespace": event.namespace or _NODE_NAMESPACE}
    if event.annotations:
        meta["annotations"] = dict(event.annotations)
    return {
        "apiVersion": "v1", "kind": "Event", "metadata": meta,
        "involvedObject": {key: value for key, value in about.items() if value},
        "reason": event.reason, "message": series.message, "type": event.type, "count": series.count,
        "firstTimestamp": _time(series.first), "lastTimestamp": _time(series.last),
        "source": {"component": COMPONENT, "host": host},
        "reportingComponent": COMPONENT, "reportingInstance": host,
    }


def _time(seconds: float) -> str:
    return rfc3339(int(seconds * _NS))


class Bucket:
    """`rate` tokens a second, `burst` at most; 0 for no limit. `wait` is the caller's pause for the next one."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, max(burst, 1)
        self._tokens, self._at = float(self._burst), 0.0

    def wait(self, now: float) -> float:
        if self._rate <= 0:
            return 0.0
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate) - 1
        self._at = now
        return max(0.0, -self._tokens / self._rate)
