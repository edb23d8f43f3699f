"""Stopping pods so that a critical one finds room."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubelet_mp.model.admission import Preemption
from kubelet_mp.model.clock import rfc3339_now
from kubelet_mp.model.conditions import stamp
from kubelet_mp.model.preemption import CONDITION_MESSAGE, MESSAGE, REASON
from kubelet_mp.rooms.pods.env import Env
from kubelet_mp.rooms.pods.worker import LIVE, Worker


def make_room(worker: Worker, verdict: Preemption, workers: Mapping[str, Worker], env: Env,
              touch: Callable[[Worker], None]) -> None:
    """Mark the victims as failed, which stops them, and note in `worker` that it waits for their end."""
    uids = {victim["metadata"]["uid"] for victim in verdict.victims}
    worker.victims = frozenset(uids)
    signal = next(iter(verdict.missing), "")
    for uid in uids & workers.keys():
        _stop(workers[uid], env)
        env.metrics.preemptions.labels(signal).inc()
        touch(workers[uid])


def _stop(victim: Worker, env: Env) -> None:
    victim.override = ("Failed", REASON, MESSAGE)
    disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet",
                 "message": CONDITION_MESSAGE}
    known = victim.status.get("conditions") or []
    victim.status = {**victim.status, "conditions": stamp(victim.pod, [disrupted], known, rfc3339_now(env.clock))}
    env.event(victim.pod, "Warning", REASON, MESSAGE, "")


def still_stopping(worker: Worker, workers: Mapping[str, Worker]) -> int:
    """How many of the pods that make room for `worker` are not stopped yet."""
    return sum(1 for uid in worker.victims if uid in workers and workers[uid].stage in LIVE)
