"""What passes act through, and how they tell the main thread what happened."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kubelet_mp.config import Settings
from kubelet_mp.host.poddirs import PodDirs
from kubelet_mp.model.clock import Clock
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.runtime import Container, Image, Sandbox
from kubelet_mp.rooms.pods.content import PodContent
from kubelet_mp.rooms.pods.metrics import PodMetrics
from kubelet_mp.rooms.pods.pool import Pool
from kubelet_mp.rooms.pods.runtimeclass import RuntimeClasses
from kubelet_mp.rooms.pods.slots import Slots, Turn

Pod = dict[str, Any]
EventSink = Callable[[Pod, str, str, str, str], None]  # pod, Normal or Warning, reason, message, field path


class RuntimeCalls(Protocol):
    """The part of `host.cri.Runtime` that this room uses; each raises RuntimeCallError."""

    def run_sandbox(self, config: Mapping[str, Any], handler: str = "") -> str: ...
    def stop_sandbox(self, sandbox_id: str) -> None: ...
    def remove_sandbox(self, sandbox_id: str) -> None: ...
    def sandbox_status(self, sandbox_id: str) -> Sandbox: ...
    def create_container(
        self, sandbox_id: str, config: Mapping[str, Any], sandbox_config: Mapping[str, Any]
    ) -> str: ...
    def start_container(self, container_id: str) -> None: ...
    def stop_container(self, container_id: str, grace: int) -> None: ...
    def remove_container(self, container_id: str) -> None: ...
    def container_status(self, container_id: str) -> Container: ...
    def image_status(self, image: str, annotations: Mapping[str, str] | None = None) -> Image | None: ...


@dataclass(slots=True)
class Env:
    """Shared by all passes of the room; everything in it may be used from any thread."""

    settings: Settings
    clock: Clock
    runtime: Any  # RuntimeCalls, exec_sync and pull_image
    images: Any  # images.Images
    dirs: PodDirs
    pool: Pool
    starts: Slots  # heavy calls
    stops: Slots  # StopContainer, which mostly waits: a wide bound
    event: EventSink
    metrics: PodMetrics
    node: NodeView
    api: Any  # lateapi.LateApi, None standalone
    classes: RuntimeClasses
    content: PodContent | None = None  # None standalone


@dataclass(slots=True)
class Outcome:
    """What a pass came to. `acted`: monotonic end of its last changing call, 0 without one.

    `problem`: why it has to be tried again, `retry` seconds from now (None: as soon as anything changes).
    """

    acted: float = 0.0
    problem: str = ""
    retry: float | None = None
    started: int = 0


class Told(Protocol):
    """How a running pass reports; each call is handed to the main thread in order."""

    def reason(self, container: str, reason: tuple[str, str] | None, hold: float) -> None:
        """The waiting reason of a container (None: it was started); not before `hold` s it is tried again."""

    def sandbox(self, ips: tuple[str, ...]) -> None:
        """The new sandbox is up."""

    def resized(self, container: str, container_id: str) -> None:
        """The instance runs with the resources of the spec now."""


@dataclass(slots=True)
class Work:
    """State of one pass while it runs; `waiting` is for people and read by the main thread."""

    env: Env
    pod: Pod
    turn: Turn
    told: Told
    cancel: threading.Event = field(default_factory=threading.Event)
    waiting: str = ""
    outcome: Outcome = field(default_factory=Outcome)

    @property
    def name(self) -> str:
        return str(self.pod["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.pod["metadata"].get("namespace", "default"))

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])

    def acted(self) -> None:
        self.outcome.acted = self.env.clock.monotonic()

    def event(self, type_: str, reason: str, message: str, field_path: str = "") -> None:
        self.env.event(self.pod, type_, reason, message, field_path)

    @contextlib.contextmanager
    def calling(self, method: str, what: str) -> Iterator[None]:
        """While the runtime is at a call that may take long: say so to whoever asks what the pod waits for."""
        self.waiting = f"the runtime to {what} ({method})"
        try:
            yield
        finally:
            self.waiting = ""

    def describe_wait(self) -> str:
        if self.turn.waiting:
            return f"a start slot ({self.turn.ahead()} pods ahead)"
        return self.waiting


def field_path(pod: Pod, name: str) -> str:
    """The fieldPath of a container in an event's involvedObject."""
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        if any(c["name"] == name for c in (pod.get("spec") or {}).get(kind) or []):
            return f"spec.{kind}{{{name}}}"
    return f"spec.containers{{{name}}}"
