"""What changed between two looks at the runtime. Pure.

Sandboxes are treated as containers: ready is running, not ready is exited.
Source: Kubernetes 1.37 pkg/kubelet/pleg/generic.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from kubelet_mp.model.runtime import (
    Container,
    ContainerBrief,
    ContainerEvent,
    PodRuntime,
    Sandbox,
    SandboxBrief,
    State,
    newest_first,
)


class Kind(StrEnum):
    STARTED = "ContainerStarted"
    DIED = "ContainerDied"
    CHANGED = "ContainerChanged"
    REMOVED = "ContainerRemoved"


class Change(NamedTuple):
    """What happened to a container or sandbox."""

    id: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class PodBriefs:
    """What a listing tells of one pod, ordered by id so that two can be compared."""

    sandboxes: tuple[SandboxBrief, ...] = ()
    containers: tuple[ContainerBrief, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.sandboxes or self.containers)

    def states(self) -> dict[str, State]:
        """State by id, sandboxes included."""
        boxes = {box.id: State.RUNNING if box.ready else State.EXITED for box in self.sandboxes}
        return boxes | {container.id: container.state for container in self.containers}


NOTHING = PodBriefs()


def group(sandboxes: Iterable[SandboxBrief], containers: Iterable[ContainerBrief]) -> dict[str, PodBriefs]:
    """The listing by pod UID; what no kubelet made (no UID) is left out."""
    boxes: dict[str, list[SandboxBrief]] = {}
    own: dict[str, list[ContainerBrief]] = {}
    for box in sandboxes:
        boxes.setdefault(box.uid, []).append(box)
    for container in containers:
        own.setdefault(container.uid, []).append(container)
    uids = (boxes.keys() | own.keys()) - {""}
    return {uid: PodBriefs(tuple(sorted(boxes.get(uid, ()))), tuple(sorted(own.get(uid, ())))) for uid in uids}


def changes(old: PodBriefs, new: PodBriefs) -> list[Change]:
    """What happened to the containers and sandboxes of one pod between two listings."""
    before, after = old.states(), new.states()
    return [Change(id_, kind) for id_ in {**before, **after} for kind in _kinds(before.get(id_), after.get(id_))]


def _kinds(old: State | None, new: State | None) -> Sequence[Kind]:
    if old == new:
        return ()
    if new is None:
        return (Kind.REMOVED,) if old is State.EXITED else (Kind.DIED, Kind.REMOVED)
    if new is State.RUNNING:
        return (Kind.STARTED,)
    return (Kind.DIED,) if new is State.EXITED else (Kind.CHANGED,)


def covers(known: PodBriefs, event: ContainerEvent) -> bool:
    """Whether what is known of the pod already tells what the event says: no look is needed for it.

    A creation is never news: whoever created the container asks for a look, and the next listing tells.
    """
    state = known.states().get(event.container_id)
    if event.kind == "created":
        return True
    if event.kind == "started":
        return state in (State.RUNNING, State.EXITED)
    if event.kind == "stopped":
        return state is State.EXITED
    return event.kind == "deleted" and state is None


def known_sandbox(brief: SandboxBrief, known: PodRuntime) -> Sandbox | None:
    """The status where no call is needed: a ready sandbox does not change but by being stopped."""
    old = next((box for box in known.sandboxes if box.id == brief.id), None)
    if old is None or (brief.ready and not (old.ready and (old.ips or old.host_network))):
        return None
    return old if old.ready == brief.ready else replace(old, ready=False, ips=())


def known_container(brief: ContainerBrief, known: PodRuntime, fresh: bool) -> Container | None:
    """The status where no call is needed: what has exited stays as it is; so does, unless `fresh`, what runs."""
    old = next((one for one in known.containers if one.id == brief.id), None)
    settled = (State.EXITED,) if fresh else (State.EXITED, State.RUNNING)
    return old if old is not None and brief.state in settled and old.state is brief.state else None


def assemble(
    uid: str, sandboxes: Iterable[Sandbox], containers: Iterable[Container], known: PodRuntime, observed: float
) -> PodRuntime:
    """The snapshot, newest first. IPs are the newest ready sandbox's; without a ready one the old ones stay."""
    boxes = tuple(sorted(sandboxes, key=lambda box: (-box.created_at, box.id)))
    ready = next((box for box in boxes if box.ready), None)
    name, namespace = (boxes[0].name, boxes[0].namespace) if boxes else (known.name, known.namespace)
    ips = ready.ips if ready else known.ips
    return PodRuntime(uid, name, namespace, boxes, newest_first(containers), ips, observed)


def same(one: PodRuntime, other: PodRuntime) -> bool:
    """Whether two snapshots tell the same, whenever they were taken."""
    return replace(one, observed=0.0) == replace(other, observed=0.0)


@dataclass(slots=True)
class Record:
    """What is known of one pod; `flagged`: the last look failed, look again at the next listing."""

    briefs: PodBriefs
    runtime: PodRuntime
    flagged: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of a look; `runtime.error` is set where it failed, and then `briefs` is not to be kept."""

    briefs: PodBriefs
    runtime: PodRuntime


class Ledger:
    """The records of all pods that the runtime holds."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}

    def briefs(self, uid: str) -> PodBriefs:
        record = self.records.get(uid)
        return record.briefs if record else NOTHING

    def runtime(self, uid: str) -> PodRuntime:
        record = self.records.get(uid)
        return record.runtime if record else PodRuntime(uid)

    def owner(self, id_: str) -> str:
        """The pod that a container or sandbox belongs to, "" if unknown."""
        return next((uid for uid, record in self.records.items() if id_ in record.briefs.states()), "")

    @property
    def flagged(self) -> bool:
        return any(record.flagged for record in self.records.values())

    def news(self, listing: Mapping[str, PodBriefs], began: float) -> list[str]:
        """The pods to look at after a listing begun at `began`; those looked at since are left out."""
        return [uid for uid in {**self.records, **listing} if self._is_news(uid, listing.get(uid, NOTHING), began)]

    def _is_news(self, uid: str, briefs: PodBriefs, began: float) -> bool:
        record = self.records.get(uid)
        if record is None:
            return True
        return record.runtime.observed < began and (record.flagged or record.briefs != briefs)

    def take(self, seen: Seen) -> PodRuntime | None:
        """Enter a look. The snapshot where it tells something new; None also for one older than the record."""
        new = seen.runtime
        old = self.runtime(new.uid)
        if old.observed > new.observed:
            return None
        if new.error:
            self.records[new.uid] = Record(self.briefs(new.uid), new, flagged=True)
        elif new.empty:
            self.records.pop(new.uid, None)
        else:
            self.records[new.uid] = Record(seen.briefs, new)
        return None if same(old, new) else new
