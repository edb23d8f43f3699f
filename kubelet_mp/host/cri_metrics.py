"""Metric families of CRI calls, for every room that makes some (Kubernetes 1.37 pkg/kubelet/metrics)."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

_BUCKETS = tuple(0.005 * 2.5**i for i in range(14))


class RuntimeMetrics:
    """kubelet_runtime_operations_*; `observe` is what `cri.Runtime` wants, callable from any thread."""

    def __init__(self, registry: CollectorRegistry) -> None:
        label = ("operation_type",)
        self._total = Counter("kubelet_runtime_operations", "CRI calls made", label, registry=registry)
        self._errors = Counter("kubelet_runtime_operations_errors", "CRI calls that failed", label,
                               registry=registry)
        self._seconds = Histogram("kubelet_runtime_operations_duration_seconds", "Seconds of a CRI call", label,
                                  buckets=_BUCKETS, registry=registry)

    def observe(self, operation: str, seconds: float, ok: bool) -> None:
        """One call of `operation` (an operation_type) took `seconds` and succeeded or not."""
        self._total.labels(operation).inc()
        self._seconds.labels(operation).observe(seconds)
        if not ok:
            self._errors.labels(operation).inc()
