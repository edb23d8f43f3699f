"""What the container runtime says of pods, as plain frozen data.

`host.cri` makes these from CRI answers; rooms decide on them. Times from the runtime are nanoseconds since
the epoch (0 = never), `observed` is the node's monotonic clock in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from kubelet_mp.model.plain import Plain

POD_NAME = "io.kubernetes.pod.name"
POD_NAMESPACE = "io.kubernetes.pod.namespace"
POD_UID = "io.kubernetes.pod.uid"
CONTAINER_NAME = "io.kubernetes.container.name"
CONTAINER_HASH = "io.kubernetes.container.hash"
RESTART_COUNT = "io.kubernetes.container.restartCount"
TERMINATION_PATH = "io.kubernetes.container.terminationMessagePath"
TERMINATION_POLICY = "io.kubernetes.container.terminationMessagePolicy"
POD_GRACE = "io.kubernetes.pod.terminationGracePeriod"
POD_DELETION_GRACE = "io.kubernetes.pod.deletionGracePeriod"
PRE_STOP = "io.kubernetes.container.preStopHandler"
PORTS = "io.kubernetes.container.ports"


class State(StrEnum):
    """CRI container states."""

    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Mount(Plain):
    """A mount of a container as the runtime reports it."""

    container_path: str
    host_path: str
    readonly: bool = False
    propagation: str = "private"
    recursive_read_only: bool = False


@dataclass(frozen=True, slots=True)
class Container(Plain):
    """One instance of a container (CRI ContainerStatus)."""

    id: str
    name: str
    attempt: int
    state: State
    sandbox_id: str
    pod_uid: str
    created_at: int
    started_at: int = 0
    finished_at: int = 0
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    image: str = ""  # image.image of the status: what the runtime calls it
    image_ref: str = ""  # becomes status.imageID
    image_id: str = ""
    log_path: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    resources: Mapping[str, int | str] = field(default_factory=dict)  # linux resources, CRI field names
    user: Mapping[str, object] | None = None  # {"uid": int, "gid": int, "supplementalGroups": [int]}

    @property
    def running(self) -> bool:
        return self.state is State.RUNNING

    @property
    def hash(self) -> str:
        return self.annotations.get(CONTAINER_HASH, "")

    @property
    def restart_count(self) -> int:
        """The restart count the kubelet wrote on it; the CRI attempt where the annotation is missing."""
        text = self.annotations.get(RESTART_COUNT, "")
        return int(text) if text.isdigit() else self.attempt


@dataclass(frozen=True, slots=True)
class Sandbox(Plain):
    """One pod sandbox (CRI PodSandboxStatus)."""

    id: str
    name: str
    namespace: str
    uid: str
    attempt: int
    ready: bool
    created_at: int
    ips: tuple[str, ...] = ()
    host_network: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    runtime_handler: str = ""


@dataclass(frozen=True, slots=True)
class PodRuntime(Plain):
    """Everything the runtime holds of one pod, newest first, as seen at one moment.

    `observed` is the monotonic time at which the listing *began*: a reader that acted at time t may trust
    only a snapshot with `observed` > t. `error` is set when the runtime could not be asked.
    """

    uid: str
    name: str = ""
    namespace: str = ""
    sandboxes: tuple[Sandbox, ...] = ()
    containers: tuple[Container, ...] = ()
    ips: tuple[str, ...] = ()
    observed: float = 0.0
    error: str = ""

    @property
    def ready_sandboxes(self) -> tuple[Sandbox, ...]:
        return tuple(s for s in self.sandboxes if s.ready)

    @property
    def running_containers(self) -> tuple[Container, ...]:
        return tuple(c for c in self.containers if c.state is State.RUNNING)

    @property
    def empty(self) -> bool:
        return not self.sandboxes and not self.containers

    def instances(self, name: str) -> tuple[Container, ...]:
        """All instances of the container `name`, newest first."""
        return tuple(c for c in self.containers if c.name == name)

    def latest(self, name: str) -> Container | None:
        return next((c for c in self.containers if c.name == name), None)


class SandboxBrief(NamedTuple):
    """What a listing tells of a sandbox; `ready` False: it was stopped; `uid` "" where no kubelet made it."""

    id: str
    uid: str
    name: str
    namespace: str
    attempt: int
    ready: bool
    created_at: int


class ContainerBrief(NamedTuple):
    """What a listing tells of a container; `uid` is its pod's, "" where no kubelet made it."""

    id: str
    uid: str
    sandbox_id: str
    name: str
    attempt: int
    state: State
    created_at: int
    image: str = ""
    image_id: str = ""


class RuntimeIdentity(NamedTuple):
    """The answer to CRI Version."""

    name: str
    version: str
    api_version: str


class ContainerEvent(NamedTuple):
    """One event of the runtime's stream; `kind`: created, started, stopped, deleted.

    `container_id` may be a sandbox's. `uid` is "" where the runtime did not say whose it is.
    """

    container_id: str
    kind: str
    uid: str


class ExecResult(NamedTuple):
    """How a command in a container ended."""

    stdout: bytes
    stderr: bytes
    exit_code: int


class FilesystemUse(NamedTuple):
    """What the runtime uses of one filesystem: bytes, inodes; `at` nanoseconds since the epoch."""

    mountpoint: str
    used_bytes: int
    inodes: int
    at: int


class ContainerUse(NamedTuple):
    """CRI ContainerStats of one container; None where the runtime gives no value.

    cpu: nanoseconds of CPU used so far; memory in bytes; *_at nanoseconds since the epoch.
    """

    id: str
    uid: str
    name: str
    attempt: int
    cpu_at: int
    cpu: int | None
    memory_at: int
    working_set: int | None
    usage: int | None
    rss: int | None
    writable_at: int
    writable_bytes: int | None
    writable_inodes: int | None


def newest_first(containers: Iterable[Container]) -> tuple[Container, ...]:
    return tuple(sorted(containers, key=lambda c: (c.created_at, c.id), reverse=True))


@dataclass(frozen=True, slots=True)
class HandlerFeatures(Plain):
    """Features of one runtime handler (CRI Status.runtime_handlers)."""

    name: str
    recursive_read_only_mounts: bool = False
    user_namespaces: bool = False


@dataclass(frozen=True, slots=True)
class RuntimeState(Plain):
    """The runtime's own health and identity (CRI Version and Status)."""

    ready: bool = False
    network_ready: bool = False
    message: str = ""  # why it is not ready, "" when it is
    network_message: str = ""
    name: str = ""
    version: str = ""
    handlers: tuple[HandlerFeatures, ...] = ()
    supplemental_groups_policy: bool = False
    events: bool = False  # GetContainerEvents is there and streaming
    driver: str | None = None  # cgroup driver it uses (RuntimeConfig); "" if it cannot tell, None while unknown
    observed: float = 0.0


@dataclass(frozen=True, slots=True)
class Image(Plain):
    """One image in the runtime's store; `size` in bytes, `uid`/`username` from the image's config."""

    id: str
    tags: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    size: int = 0
    uid: int | None = None
    username: str = ""
    pinned: bool = False
