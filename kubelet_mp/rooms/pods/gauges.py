"""Gauges of pods and containers, from the workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from kubelet_mp.rooms.pods.metrics import PodMetrics
from kubelet_mp.rooms.pods.worker import LIVE, Stage, Worker

_LIFECYCLE = {Stage.STOPPING: "terminating", Stage.STOPPED: "terminated", Stage.REMOVING: "terminated"}


def show(metrics: PodMetrics, workers: Collection[Worker]) -> None:
    """Set them all anew."""
    metrics.running_pods.set(sum(1 for w in workers if w.runtime.ready_sandboxes))
    states = Counter(str(c.state) for w in workers for c in w.runtime.containers)
    for state in ("created", "running", "exited", "unknown"):
        metrics.running_containers.labels(state).set(states[state])
    for static in (True, False):
        label = "true" if static else ""
        mine = [w for w in workers if w.static == static]
        metrics.desired_pods.labels(label).set(sum(1 for w in mine if w.wanted))
        metrics.active_pods.labels(label).set(sum(1 for w in mine if w.stage in LIVE))
        _working(metrics, mine, label)


def _working(metrics: PodMetrics, workers: list[Worker], static: str) -> None:
    counts = Counter((_LIFECYCLE.get(w.stage, "sync"), "runtime_only" if w.orphan else "desired") for w in workers)
    for lifecycle in ("sync", "terminating", "terminated"):
        for config in ("desired", "runtime_only"):
            metrics.working_pods.labels(lifecycle, config, static).set(counts[(lifecycle, config)])
