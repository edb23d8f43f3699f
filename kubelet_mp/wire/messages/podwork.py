"""From pods: what is done with a pod."""

from __future__ import annotations

from dataclasses import dataclass

from kubelet_mp.wire.messages.base import Message, Pod, PodMessage


@dataclass(frozen=True, slots=True)
class PodAdmitted(PodMessage):
    """The pod was admitted (or an admitted pod changed): cgroups, volumes, probes and the rest prepare it.

    serial: comes back in `PodCgroupReady`, so that it is known for which of several orders that stands.
    """

    pod: Pod
    serial: int = 0


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
