"""The messages between rooms: frozen, slotted, plain data.

A *fact* says what a room knows (`RelistDone`), an *order* what another room shall do (`EnsurePodCgroup`).
`key()` names what the message is about: of two messages of one type with the same key only the newest is
kept for a room that is busy. A room that starts is told nothing by memory of the supervisor: each producer
sees `RoomUp` and sends its facts again to that room alone (`Room.replay`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubelet_mp.model.plain import Plain
from kubelet_mp.model.runtime import Image, PodRuntime, RuntimeState

Pod = dict[str, Any]  # a decoded, defaulted core/v1 Pod


@dataclass(frozen=True, slots=True)
class Message(Plain):
    """Base of all messages; `key` is "" where only one of the type matters."""

    def key(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class PodMessage(Message):
    """A message about one pod."""

    uid: str

    def key(self) -> str:
        return self.uid


# ---- from the supervisor -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RoomUp(Message):
    """`room` runs anew as `incarnation`: whoever feeds it sends it everything again."""

    room: str
    incarnation: int

    def key(self) -> str:
        return self.room


@dataclass(frozen=True, slots=True)
class RoomHealth(Plain):
    """One line of `Health`: `beat_age` and `up` in seconds."""

    room: str
    pid: int
    incarnation: int
    restarts: int
    beat_age: float
    up: float
    waiting: int  # messages kept in its mailbox
    last_exit: str = ""


@dataclass(frozen=True, slots=True)
class Health(Message):
    """The process table as the supervisor sees it, once a second to the http room."""

    rooms: tuple[RoomHealth, ...]


# ---- sources -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DesiredPod(PodMessage):
    """The newest desired state of a pod; `pod` None: no source wants it any more."""

    pod: Pod | None
    source: str  # file, http, api


@dataclass(frozen=True, slots=True)
class DesiredSet(Message):
    """All desired pod UIDs. `ready`: every configured source has reported at least once.

    It follows the `DesiredPod`s that it counts; a pod that is not in it is not wanted. Nothing may be
    cleaned up before `ready`.
    """

    uids: frozenset[str]
    ready: bool


@dataclass(frozen=True, slots=True)
class SourceProblem(Message):
    """A manifest that cannot be used, or (with `problem` "") can be used again.

    `origin` is the file path or URL; `other` names the second file of a duplicate.
    """

    origin: str
    problem: str
    other: str = ""
    pod: str = ""  # namespace/name where known

    def key(self) -> str:
        return self.origin


@dataclass(frozen=True, slots=True)
class MirrorPod(PodMessage):
    """The API server's copy of a static pod, as it is there; `mirror` None: it is gone.

    `uid` is the mirror's own, `name` the full name namespace/name, which is that of the static pod. A mirror is
    never a desired pod.
    """

    name: str
    mirror: Pod | None

    def key(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class MirrorSet(Message):
    """Full names of all mirror pods that the API server has of this node, after the `MirrorPod`s it counts.

    Sent only once the API server has been listed: before the first one, nobody knows which mirrors there are.
    """

    names: frozenset[str]


# ---- pleg ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PodRuntimeChanged(PodMessage):
    """The runtime's view of one pod changed, or was asked for (`PodRuntime.empty`: the pod is gone)."""

    runtime: PodRuntime


@dataclass(frozen=True, slots=True)
class RelistDone(Message):
    """A full listing, begun at monotonic `began`, saw these pod UIDs. `healthy`: it is not overdue.

    It follows the `PodRuntimeChanged` of every pod that the listing found changed, and is never sent before a
    listing has succeeded. While listings fail it is repeated with `problem` and the old `began`.
    """

    began: float
    uids: frozenset[str]
    healthy: bool = True
    problem: str = ""  # "PLEG is not healthy: …" text


@dataclass(frozen=True, slots=True)
class RuntimeStateChanged(Message):
    """Health and identity of the runtime (every 5 s where changed, and on replay)."""

    state: RuntimeState


@dataclass(frozen=True, slots=True)
class RelistPod(PodMessage):
    """Order to pleg: look at this pod now and send `PodRuntimeChanged` even if nothing changed."""


# ---- pods ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PodAdmitted(PodMessage):
    """The pod was admitted (or an admitted pod changed): cgroups, volumes, probes and the rest prepare it."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class PodStopping(PodMessage):
    """The pod's containers are being stopped: only its readiness is still of interest."""


@dataclass(frozen=True, slots=True)
class PodStopped(PodMessage):
    """No container of the pod runs any more and none will: free its volumes and cgroup.

    Sent again on every replay until `PodFreed` came from each room concerned.
    """

    pod: Pod | None  # None: the pod is an orphan, known by its traces only


@dataclass(frozen=True, slots=True)
class PodFinished(PodMessage):
    """Nothing of the pod runs, its last status was sent, and its volumes and cgroup are freed.

    To the reporter: a pod with a deletionTimestamp may now be deleted from the API server (once the API has its
    terminal phase). Sent again when the pod's object changed, and on replay.
    """

    pod: Pod


@dataclass(frozen=True, slots=True)
class PodForgotten(PodMessage):
    """The pod is finished with and its worker is gone; whoever keeps something of it drops it."""


@dataclass(frozen=True, slots=True)
class AdmittedSet(Message):
    """All pods that are admitted and not finished: whatever is not in it may be cleaned up (if `ready`)."""

    uids: frozenset[str]
    ready: bool


@dataclass(frozen=True, slots=True)
class PodStatus(PodMessage):
    """The pod with its computed status (`pod["status"]`), as /pods shows it and the API server will get it.

    `waiting_for` is the one thing that the pod waits for now ("" when nothing); `since` its monotonic time;
    `terminal`: no container runs and none will.
    """

    pod: Pod
    source: str
    waiting_for: str = ""
    since: float = 0.0
    terminal: bool = False


@dataclass(frozen=True, slots=True)
class StatusSet(Message):
    """All UIDs that still have a worker in pods, finished ones too: a `PodStatus` of another is to be dropped.

    Whatever the runtime holds of these pods is the pods room's to remove.
    """

    uids: frozenset[str]


# ---- cgroups and volumes -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PodCgroupReady(PodMessage):
    """The pod's cgroup stands with its values (`problem` ""), or why not. `parent` is the CRI cgroup_parent."""

    parent: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class PodVolumesReady(PodMessage):
    """The pod's volumes are set up (`problem` ""), or why not.

    `paths`: volume name → host path for the container mounts. `pending` names the volumes that are missing.
    `version` is the pod's metadata.generation or hash of its volumes that was set up.
    """

    paths: Mapping[str, str]
    problem: str = ""
    pending: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodFreed(PodMessage):
    """`room` (cgroups, volumes) has freed all it held for the pod, or says why not yet."""

    room: str
    problem: str = ""

    def key(self) -> str:
        return f"{self.uid}/{self.room}"


@dataclass(frozen=True, slots=True)
class NodeFacts(Message):
    """What the cgroups room knows of the machine. Memory in bytes, cpu in millicores.

    `allocatable` and `capacity` are resource name → integer in base units (cpu in millicores).
    """

    addresses: tuple[str, ...]
    hostname: str
    cgroup_version: int
    driver: str
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NodeObject(Message):
    """The newest core/v1 Node object of this node, from the API server."""

    node: dict[str, Any]


@dataclass(frozen=True, slots=True)
class NodeImages(Message):
    """All images in the runtime's store, where they changed and on replay; looked for every 10 s."""

    images: tuple[Image, ...]


# ---- probes --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProbeResult(PodMessage):
    """A changed probe verdict. `kind`: liveness, readiness, startup; `result`: success, failure, unknown."""

    container: str
    container_id: str
    kind: str
    result: str
    message: str = ""

    def key(self) -> str:
        return f"{self.uid}/{self.container}/{self.kind}"


@dataclass(frozen=True, slots=True)
class ProbeNow(PodMessage):
    """Order to probes: run the readiness probe of this container at once."""

    container: str

    def key(self) -> str:
        return f"{self.uid}/{self.container}"


# ---- everyone → reporter, http -------------------------------------------------------------------------


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
