"""Metric families of the pods room (Kubernetes 1.37 pkg/kubelet/metrics), in a registry of its own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_START = (0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800,
          2700, 3600)
_DEFAULT = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class PodMetrics:
    """Thread-safe, as prometheus_client is."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def histogram(name: str, text: str, labels: tuple[str, ...] = (), buckets: tuple[float, ...] = _DEFAULT
                      ) -> Histogram:
            return Histogram(f"kubelet_{name}", text, labels, buckets=buckets, registry=self.registry)

        def counter(name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
            return Counter(f"kubelet_{name}", text, labels, registry=self.registry)

        def gauge(name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
            return Gauge(f"kubelet_{name}", text, labels, registry=self.registry)

        self.pod_start = histogram("pod_start_duration_seconds",
                                   "Seconds from the kubelet seeing a pod for the first time to it running")
        self.pod_start_sli = histogram("pod_start_sli_duration_seconds",
                                       "Seconds to start a pod, image pulls and init containers excluded",
                                       buckets=_START)
        self.worker = histogram("pod_worker_duration_seconds", "Seconds of one pass of a pod worker",
                                ("operation_type",))
        self.worker_start = histogram("pod_worker_start_duration_seconds",
                                      "Seconds from the kubelet seeing a pod to its worker starting")
        self.pull = histogram("image_pull_duration_seconds", "Seconds to pull an image",
                              ("image_size_in_bytes",), (1, 5, 10, 20, 30, 60, 180, 300, 600, 900, 1200, 1800))
        self.sandbox = histogram("run_podsandbox_duration_seconds", "Seconds of RunPodSandbox",
                                 ("runtime_handler",))
        self.sandbox_errors = counter("run_podsandbox_errors", "Failed RunPodSandbox calls",
                                      ("runtime_handler",))
        self.started_pods = counter("started_pods", "Pods of which a sandbox was to be started")
        self.started_pods_errors = counter("started_pods_errors", "Pods whose start failed")
        self.started_containers = counter("started_containers", "Containers to be started",
                                          ("container_type",))
        self.started_containers_errors = counter("started_containers_errors", "Failed container starts",
                                                 ("container_type", "code"))
        self.rejections = counter("admission_rejections", "Pods rejected", ("reason",))
        self.preemptions = counter("preemptions", "Pods stopped to make room for critical ones",
                                   ("preemption_signal",))
        self.restarted_pods = counter("restarted_pods", "Pods whose UID was taken up anew", ("static",))
        self.orphans = counter("orphaned_runtime_pods", "Pods found in the runtime that nobody wants")
        self.running_pods = gauge("running_pods", "Pods that have a running sandbox")
        self.running_containers = gauge("running_containers", "Containers by state", ("container_state",))
        self.desired_pods = gauge("desired_pods", "Pods that the sources want", ("static",))
        self.active_pods = gauge("active_pods", "Pods that are admitted and not finished", ("static",))
        self.working_pods = gauge("working_pods", "Pods that have a worker", ("lifecycle", "config", "static"))

    def text(self) -> str:
        return generate_latest(self.registry).decode()


def size_bucket(size: int) -> str:
    """The label of an image's size, as upstream groups them."""
    mib = size / (1024 * 1024)
    for limit, label in ((10, "0-10MB"), (100, "10MB-100MB"), (500, "100MB-500MB"), (1024, "500MB-1GB"),
                         (5120, "1GB-5GB"), (10240, "5GB-10GB"), (20480, "10GB-20GB"), (30720, "20GB-30GB"),
                         (40960, "30GB-40GB"), (61440, "40GB-60GB"), (102400, "60GB-100GB")):
        if mib < limit:
            return label
    return "GT100GB"
