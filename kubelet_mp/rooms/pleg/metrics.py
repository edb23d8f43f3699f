"""Metric families of the PLEG and of its CRI calls (Kubernetes 1.37 pkg/kubelet/metrics)."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest

from kubelet_mp.host.cri_metrics import RuntimeMetrics

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class PlegMetrics:
    """Thread-safe, as prometheus_client is."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.runtime = RuntimeMetrics(self._registry)
        self.relist = self._histogram("relist_duration_seconds", "Seconds of a listing of everything")
        self.interval = self._histogram("relist_interval_seconds", "Seconds between the begins of two listings")
        self.pod_relist = self._histogram("pod_relist_duration_seconds", "Seconds of a look at one pod")
        self.last_seen = Gauge("kubelet_pleg_last_seen_seconds", "When a listing last succeeded, epoch seconds",
                               registry=self._registry)
        Gauge("kubelet_pleg_discard_events", "Events dropped for want of room: there is no bound, so none",
              registry=self._registry)

    def _histogram(self, name: str, text: str) -> Histogram:
        return Histogram(f"kubelet_pleg_{name}", text, buckets=_BUCKETS, registry=self._registry)

    def text(self) -> str:
        return generate_latest(self._registry).decode()
