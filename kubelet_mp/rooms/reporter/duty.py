"""What a duty of the reporter is, and what it is given to work with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from kubelet_mp.config import Settings
from kubelet_mp.log import Logger
from kubelet_mp.model.clock import SYSTEM, Clock
from kubelet_mp.rooms.timers import Timers
from kubelet_mp.wire.messages import Message


class Api(Protocol):
    """What a duty uses of host.kubeapi.KubeApi; each call blocks for up to `timeout` s and may raise ApiError."""

    def get(self, path: str, *, timeout: float = 0.0, **params: Any) -> dict[str, Any]: ...

    def create(self, path: str, body: Any, *, timeout: float = 0.0, **params: Any) -> dict[str, Any]: ...

    def update(self, path: str, body: Any, *, timeout: float = 0.0, **params: Any) -> dict[str, Any]: ...

    def patch(
        self, path: str, body: Any, *, kind: str = "strategic", timeout: float = 0.0, **params: Any
    ) -> dict[str, Any]: ...

    def delete(self, path: str, body: Any = None, *, timeout: float = 0.0, **params: Any) -> dict[str, Any]: ...


class Send(Protocol):
    """Send a message to `to`, or wherever its kind is routed; from any thread."""

    def __call__(self, message: Message, to: str = "") -> None: ...


class PodEvent(Protocol):
    """Send a Kubernetes event about `pod`; `type_` Normal or Warning; from any thread."""

    def __call__(
        self, pod: Mapping[str, Any], type_: str, reason: str, message: str, field_path: str = ""
    ) -> None: ...


class NodeEvent(Protocol):
    """Send a Kubernetes event about this node; `type_` Normal or Warning; from any thread."""

    def __call__(self, type_: str, reason: str, message: str) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DutyContext:
    """`timers` are of the main thread; `post` has the main thread run a call soon, `fail`
    has it raise what a thread ran into; `send`, `post`, `log`, `api`
    and the events may be used from any thread.

    api: the client of the API server, made by the first call that succeeds; raises ApiError while there are no
    credentials yet, and standalone. It never blocks for long itself, but its methods do: they are never called
    on the main thread.
    """

    settings: Settings
    send: Send
    timers: Timers
    post: Callable[[Callable[[], None]], None]
    fail: Callable[[BaseException], None]
    log: Logger
    api: Callable[[], Api]
    pod_event: PodEvent
    node_event: NodeEvent
    time: Clock = SYSTEM


class Duty(Protocol):
    """One thing that the reporter does with the messages that it gets. All calls come on the main thread."""

    def start(self) -> None:
        """Once, before the first message."""

    def handle(self, message: Message) -> None:
        """Take one message; never wait for anything."""

    def replay(self, room: str) -> None:
        """`room` has started: send it again what it has from this duty."""

    def close(self) -> None:
        """Have the duty's threads end soon; wait for none longer than a second."""


MakeDuty = Callable[[DutyContext], Duty]
