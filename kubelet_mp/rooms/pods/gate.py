"""Admission of one pod beside the others, and the stage at which a recorded pod is taken up again."""

from __future__ import annotations

from collections.abc import Iterable

from kubelet_mp.config import Settings
from kubelet_mp.model.admission import Rejection, judge
from kubelet_mp.model.runtime import RuntimeState
from kubelet_mp.rooms.pods.node import offer_of
from kubelet_mp.rooms.pods.record import Record
from kubelet_mp.rooms.pods.worker import LIVE, Stage, Worker
from kubelet_mp.wire.messages import NodeFacts


def occupied(worker: Worker, workers: Iterable[Worker]) -> bool:
    """An older pod of the same namespace and name is not gone yet."""
    return any(
        other is not worker and other.full_name == worker.full_name and other.arrival < worker.arrival
        and other.stage not in (Stage.WAITING, Stage.REJECTED) and not other.orphan
        for other in workers
    )


def judge_worker(
    worker: Worker, workers: Iterable[Worker], settings: Settings, facts: NodeFacts | None,
    state: RuntimeState | None
) -> Rejection | str | None:
    """None: admitted. A text: what is missing before it can be judged."""
    if facts is None:
        return "the node's facts"
    if worker.up:
        return None  # it runs, so it was admitted before its record was lost
    others = [w.pod for w in workers if w.stage in LIVE and w is not worker and not w.orphan]
    return judge(worker.pod, others, offer_of(settings, facts, state))


def stage_of(kept: Record) -> Stage:
    if kept.stopped:
        return Stage.STOPPED
    return Stage.ACTIVE if kept.admitted else Stage.WAITING


def override_of(kept: Record) -> tuple[str, str, str] | None:
    """A pod that was ended by the kubelet (deadline, eviction) stays ended."""
    phase, reason = kept.status.get("phase"), kept.status.get("reason")
    if phase != "Failed" or not reason or kept.stopped:
        return None
    return phase, reason, kept.status.get("message", "")
