"""One pod on the main thread: what is wanted, what the runtime says, and how far it has come. No effects here."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kubelet_mp.model.backoff import Backoff
from kubelet_mp.model.containerhash import container_hash
from kubelet_mp.model.phase import TERMINAL
from kubelet_mp.model.qos import is_static
from kubelet_mp.model.runtime import Container, PodRuntime, State
from kubelet_mp.rooms.pods.passes import Pass
from kubelet_mp.wire.messages import PodCgroupReady, PodVolumesReady

Pod = dict[str, Any]
ORPHAN_GRACE = 1  # s for a pod that only the runtime knows
NEVER = float("inf")


class Stage(StrEnum):
    """How far a pod has come; it only moves forward, but for a rejected one that is asked for again."""

    WAITING = "waiting"  # not admitted yet
    REJECTED = "rejected"
    ACTIVE = "active"  # admitted: kept as its spec says
    STOPPING = "stopping"  # its containers are being stopped
    STOPPED = "stopped"  # none runs, and none will
    REMOVING = "removing"  # its objects and directories are being removed


LIVE = (Stage.ACTIVE, Stage.STOPPING)


@dataclass(slots=True)
class Worker:
    """State of one pod UID. Times are monotonic seconds.

    arrival: rank by which older pods are told from newer. order: rank for slots (a stop queues up anew).
    confirmed: a source spoke of it since this room started. present: a source still has it.
    wanted: it is to run. orphan: known from the runtime only. grace: seconds that beat the spec's.
    victims: UIDs of pods that were stopped to make room for this one. foreign: status fields of other owners.
    told: the status as the API server last told it.
    wish: the pod's object, where it asks for other resources than the pod has been given. resize_pending: why it does
    not get them, (Deferred or Infeasible, text). resize: the resizing.Resize under way.
    vouched: the API server knew it as admitted when the agent started.
    holds: container → time before which it is not started again. override: (phase, reason, message).
    """

    uid: str
    pod: Pod
    source: str
    arrival: int
    order: int
    runtime: PodRuntime
    backoff: Backoff
    stage: Stage = Stage.WAITING
    confirmed: bool = True
    wanted: bool = True
    present: bool = True
    orphan: bool = False
    admitted: bool = False
    vouched: bool = False
    grace: int | None = None
    seen: float = 0.0
    acted: float = 0.0
    asked: float = -1.0  # when pleg was last asked for a snapshot
    retry_at: float = 0.0
    problem: str = ""
    cgroup: PodCgroupReady | None = None
    volumes: PodVolumesReady | None = None
    probes: dict[tuple[str, str], str] = field(default_factory=dict)
    reasons: dict[str, tuple[str, str]] = field(default_factory=dict)
    holds: dict[str, float] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)  # container id → monotonic time of its end
    messages: dict[str, str] = field(default_factory=dict)  # container id → termination message
    status: dict[str, Any] = field(default_factory=dict)
    override: tuple[str, str, str] | None = None
    victims: frozenset[str] = frozenset()
    node_look: str = ""  # "", asked, done: the look at the Node before a rejection
    foreign: dict[str, Any] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)
    wish: Pod | None = None
    resize_pending: tuple[str, str] | None = None
    resize: Any = None
    finish_told: Any = None  # the pod as in the last PodFinished
    freed: set[str] = field(default_factory=set)
    unseen: str = ""  # why the runtime could not tell its state, at the last look
    unseen_told: float = -NEVER
    running: Pass | None = None
    next: tuple[Pod, str] | None = None
    waiting_for: str = ""
    waiting_kind: str = ""
    since: float = 0.0
    wake_at: float = NEVER
    sent: Any = None  # (pod, status, terminal) as sent last
    sent_wait: str = ""
    ran: bool = False  # its first Running was counted
    new_ips: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return str(self.pod["metadata"].get("name", ""))

    @property
    def full_name(self) -> tuple[str, str]:
        return (str(self.pod["metadata"].get("namespace", "default")), self.name)

    @property
    def static(self) -> bool:
        return is_static(self.pod)

    @property
    def deleted(self) -> bool:
        return bool(self.pod["metadata"].get("deletionTimestamp"))

    @property
    def created(self) -> str:
        """The creation time of an API pod; static pods are older than all, whatever their file says."""
        return "" if self.static else str(self.pod["metadata"].get("creationTimestamp") or "")

    @property
    def fresh(self) -> bool:
        """The snapshot was begun after the last change we made."""
        return self.runtime.observed > self.acted

    @property
    def finished(self) -> bool:
        return self.status.get("phase") in TERMINAL

    @property
    def up(self) -> bool:
        """Something of it runs, or may."""
        return bool(self.runtime.ready_sandboxes) or any(
            c.state in (State.RUNNING, State.UNKNOWN) for c in self.runtime.containers
        )

    def wait(self, kind: str, text: str, now: float) -> None:
        """Note the one thing it waits for; `since` moves only when the kind changes."""
        if kind != self.waiting_kind:
            self.waiting_kind, self.since = kind, now
        self.waiting_for = text

    def wake_by(self, when: float) -> None:
        self.wake_at = min(self.wake_at, when)

    def verdict(self, container: Container, kind: str) -> str:
        return self.probes.get((container.id, kind), "")

    def take_runtime(self, runtime: PodRuntime, now: float, wall_ns: int) -> None:
        """Take a snapshot if it is newer, and date the ends of containers on our own clock."""
        if runtime.observed < self.runtime.observed:
            return
        self.runtime, self.unseen = runtime, ""
        known = {c.id for c in runtime.containers}
        self.ends = {id_: at for id_, at in self.ends.items() if id_ in known}
        self.messages = {id_: text for id_, text in self.messages.items() if id_ in known}
        self.probes = {key: value for key, value in self.probes.items() if key[0] in known}
        for container in runtime.containers:
            if container.state is State.EXITED and container.id not in self.ends:
                ago = (wall_ns - container.finished_at) / 1e9
                self.ends[container.id] = now - max(ago, 0.0)

    def last_exited(self, name: str) -> Container | None:
        return next((c for c in self.runtime.instances(name) if c.state is State.EXITED), None)

    def known_status(self, name: str) -> dict[str, Any] | None:
        """The last status of a container that ever ran."""
        for kind in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
            for status in self.status.get(kind) or ():
                if status.get("name") == name and (status.get("containerID") or status.get("lastState")):
                    return dict(status)
        return None

    def mark(self) -> tuple[Any, ...]:
        """What of it shows in the status, beside the runtime's view."""
        return self.stage, dict(self.reasons), self.override, self.resize_pending, self.resize is None

    def volumes_ready(self) -> bool:
        return self.volumes is not None and not self.volumes.problem and not self.volumes.pending

    def cgroup_ready(self) -> bool:
        return self.cgroup is not None and not self.cgroup.problem


def backoff_key(pod: Pod, container: dict[str, Any]) -> str:
    """A changed image or changed resources begin a new count."""
    return f"{container['name']}/{container_hash(container)}/{container.get('resources') or {}}"


def crash_text(pod: Pod, container: str, delay: str) -> str:
    """The message of CrashLoopBackOff; `delay` as a Go duration."""
    meta = pod["metadata"]
    where = f"{meta['name']}_{meta.get('namespace', 'default')}({meta['uid']})"
    return f"back-off {delay} restarting failed container={container} pod={where}"
