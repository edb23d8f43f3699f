"""Admission of one pod beside the others, and the stage at which a recorded pod is taken up again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubelet_mp.model.admission import NodeOffer, Preemption, Rejection, judge
from kubelet_mp.rooms.pods.preempt import still_stopping
from kubelet_mp.rooms.pods.record import Record
from kubelet_mp.rooms.pods.worker import LIVE, Stage, Worker

Verdict = Rejection | Preemption | str | None


def occupied(worker: Worker, workers: Iterable[Worker]) -> bool:
    """An older pod of the same namespace and name is not gone yet.

    Static pods only: the API server has no two pods of one name, and a new one is not held up by what is left
    of one that was deleted by force.
    """
    return worker.static and any(
        other is not worker and other.full_name == worker.full_name and other.arrival < worker.arrival
        and other.stage not in (Stage.WAITING, Stage.REJECTED) and not other.orphan
        for other in workers
    )


def judge_worker(worker: Worker, workers: Mapping[str, Worker], offer: NodeOffer) -> Verdict:
    """None: admitted. A text: what has to happen before it can be judged."""
    if worker.vouched or not worker.runtime.empty:
        return None  # it was admitted before its record was lost
    stopping = still_stopping(worker, workers)
    if stopping:
        return f"{stopping} pods to stop that make room for it"
    return judge(worker.pod, [w.pod for w in workers.values() if w is not worker and _has_room(w)], offer)


def _has_room(other: Worker) -> bool:
    """It takes room of the node, or others are stopped so that it can."""
    return not other.orphan and (other.stage in LIVE or (other.stage is Stage.WAITING and bool(other.victims)))


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
