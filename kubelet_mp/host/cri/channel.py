"""One gRPC channel to a runtime, opened with the first call, and the two ways to call over it."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import grpc._channel  # the first channel imports it: with all else before the fork, it is shared by the rooms
from cri_api.v1 import api_pb2 as pb
from grpc.experimental import ChannelOptions

from kubelet_mp.errors import RuntimeCallError
from kubelet_mp.host.cri.failures import NotCRI, failure, not_cri
from kubelet_mp.model import clock
from kubelet_mp.model.runtime import ContainerEvent

__all__ = ["Channel", "EventStream", "NotCRI", "Observe"]

Observe = Callable[[str, float, bool], None]
"""Told of every call: operation_type of the metrics, seconds, whether it succeeded."""

_OPTIONS = (
    ("grpc.default_authority", "localhost"),
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 3000),
    ("grpc.min_reconnect_backoff_ms", 5000),  # what a single attempt may take
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    (ChannelOptions.SingleThreadedUnaryStream, 1),  # no extra thread for the event stream
)
_CANCEL_LOOK = 0.1  # s between two looks at the cancel event of a long call
_EVENT_KINDS = {
    pb.CONTAINER_CREATED_EVENT: "created",
    pb.CONTAINER_STARTED_EVENT: "started",
    pb.CONTAINER_STOPPED_EVENT: "stopped",
    pb.CONTAINER_DELETED_EVENT: "deleted",
}


def target(endpoint: str) -> str:
    """The gRPC name of an endpoint: unix:///path, /path and tcp://host:port are understood."""
    if endpoint.startswith("/"):
        return f"unix:{endpoint}"
    if endpoint.startswith("unix://"):
        return f"unix:{endpoint.removeprefix('unix://')}"
    return endpoint.removeprefix("tcp://")


def check_socket(endpoint: str) -> None:
    """Raises NotCRI where the endpoint names a file that can never be a socket of a runtime."""
    name = target(endpoint)
    if not name.startswith("unix:"):
        return
    try:
        mode = os.stat(name.removeprefix("unix:")).st_mode
    except OSError:
        return  # not there yet, or not to be seen: the call will tell
    if not stat.S_ISSOCK(mode):
        raise not_cri(endpoint, "the path is not a socket")


class Channel:
    """Thread-safe. Nothing is opened before the first call: that must come after the last fork."""

    def __init__(self, endpoint: str, stub: Callable[[Any], Any], observe: Observe) -> None:
        self.endpoint = endpoint
        self._make_stub, self._observe = stub, observe
        self._lock = threading.Lock()
        self._channel: Any = None
        self._stub: Any = None

    def _method(self, name: str) -> Any:
        with self._lock:
            if self._channel is None:
                self._channel = grpc.insecure_channel(target(self.endpoint), options=_OPTIONS)
                self._stub = self._make_stub(self._channel)
            return getattr(self._stub, name)

    def call(
        self, name: str, operation: str, request: Any, timeout: float | None,
        cancel: threading.Event | None = None,
    ) -> Any:
        """The answer of one RPC. `cancel`, once set, ends it. Raises RuntimeCallError."""
        begun, done = clock.monotonic(), False
        try:
            method = self._method(name)
            answer = _until(method.future(request, timeout=timeout), cancel) if cancel else method(
                request, timeout=timeout)
            done = True
            return answer
        except grpc.FutureCancelledError:
            raise RuntimeCallError("the call was cancelled", method=name, code="CANCELLED") from None
        except grpc.RpcError as error:
            raise failure(name, self.endpoint, error) from None
        except ValueError:  # grpc's answer to a call on a closed channel
            raise RuntimeCallError("the channel is closed", method=name, code="CANCELLED") from None
        finally:
            self._observe(operation, clock.monotonic() - begun, done)

    def events(self) -> EventStream:
        return EventStream(self, self._method("GetContainerEvents")(pb.GetEventsRequest()))

    def close(self) -> None:
        """Ends the calls under way; those that come later fail."""
        with self._lock:
            if self._channel is not None:
                self._channel.close()


def _until(future: Any, cancel: threading.Event) -> Any:
    while True:
        try:
            return future.result(timeout=_CANCEL_LOOK)
        except grpc.FutureTimeoutError:
            if cancel.is_set():
                future.cancel()


class EventStream(Iterator[ContainerEvent]):
    """GetContainerEvents. `next` raises RuntimeCallError when the stream fails, StopIteration at its end."""

    def __init__(self, channel: Channel, call: Any) -> None:
        self._channel, self._call = channel, call  # a channel that nobody holds closes its streams

    def __next__(self) -> ContainerEvent:
        try:
            event = next(self._call)
        except grpc.RpcError as error:
            raise failure("GetContainerEvents", self._channel.endpoint, error) from None
        return ContainerEvent(event.container_id, _EVENT_KINDS.get(event.container_event_type, ""),
                              event.pod_sandbox_status.metadata.uid)

    def cancel(self) -> None:
        """From any thread: a waiting `next` ends with a RuntimeCallError."""
        self._call.cancel()
