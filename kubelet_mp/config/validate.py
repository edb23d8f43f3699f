"""What makes a KubeletConfiguration invalid: a pure list of (path of the field, problem).

Source: Kubernetes 1.37 pkg/kubelet/apis/config/validation. Rules about nodes' resources and eviction are in
validate_resources, rules about flags in validate_flags.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Iterator

from kubelet_mp.config import features
from kubelet_mp.config.model import KubeletConfiguration
from kubelet_mp.config.types import camel
from kubelet_mp.config.validate_resources import resource_problems

Problem = tuple[str, str]

_CHOICES: dict[str, tuple[str, ...]] = {
    "authorization.mode": ("AlwaysAllow", "Webhook"),
    "hairpin_mode": ("hairpin-veth", "promiscuous-bridge", "none"),
    "cgroup_driver": ("cgroupfs", "systemd"),
    "cpu_manager_policy": ("none", "static"),
    "memory_manager_policy": ("None", "Static"),
    "topology_manager_policy": ("none", "best-effort", "restricted", "single-numa-node"),
    "topology_manager_scope": ("container", "pod"),
    "memory_swap.swap_behavior": ("", "NoSwap", "LimitedSwap"),
    "memory_reservation_policy": ("None", "TieredReservation"),
    "config_map_and_secret_change_detection_strategy": ("Watch", "Cache", "Get"),
    "image_pull_credentials_verification_policy": (
        "NeverVerify",
        "NeverVerifyPreloadedImages",
        "NeverVerifyAllowlistedImages",
        "AlwaysVerify",
    ),
    "logging.format": ("text", "json"),
    "tls_min_version": ("", "VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"),
}

_BIG = 2**63 - 1
_RANGES: dict[str, tuple[float, float]] = {
    "port": (1, 65535),
    "read_only_port": (0, 65535),
    "healthz_port": (0, 65535),
    "oom_score_adj": (-1000, 1000),
    "registry_pull_qps": (0, _BIG),
    "registry_burst": (0, _BIG),
    "event_record_qps": (0, _BIG),
    "event_burst": (0, _BIG),
    "kube_api_qps": (0, _BIG),
    "kube_api_burst": (0, _BIG),
    "max_open_files": (0, _BIG),
    "max_pods": (0, _BIG),
    "pods_per_core": (0, _BIG),
    "node_lease_duration_seconds": (1, _BIG),
    "node_status_max_images": (-1, _BIG),
    "image_gc_high_threshold_percent": (0, 100),
    "image_gc_low_threshold_percent": (0, 100),
    "container_log_max_files": (2, _BIG),
    "container_log_max_workers": (1, _BIG),
    "eviction_max_pod_grace_period": (0, _BIG),
    "logging.verbosity": (0, _BIG),
}

_DURATIONS: dict[str, tuple[float, float, str]] = {
    "cpu_cfs_quota_period": (0.001, 1.0, "between 1ms and 1s"),
    "container_log_monitor_interval": (3.0, _BIG, "at least 3s"),
    "crash_loop_back_off.max_container_restart_period": (1.0, 300.0, "between 1s and 300s"),
    "image_maximum_gc_age": (0.0, _BIG, "not negative"),
    "sync_frequency": (0.0, _BIG, "not negative"),
    "file_check_frequency": (0.0, _BIG, "not negative"),
    "http_check_frequency": (0.0, _BIG, "not negative"),
    "runtime_request_timeout": (0.0, _BIG, "not negative"),
}

_ADDRESSES = ("address", "healthz_bind_address")
_SYSCTL = re.compile(r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?([./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*([./])?\*?")
_DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\.?")


def kubelet_problems(kubelet: KubeletConfiguration) -> list[Problem]:
    """Every problem of the configuration; empty when it is valid."""
    return [problem for check in _CHECKS for problem in check(kubelet)] + list(resource_problems(kubelet))


def get(kubelet: KubeletConfiguration, key: str) -> object:
    """The value at a dotted path of attributes."""
    value: object = kubelet
    for part in key.split("."):
        value = getattr(value, part)
    return value


def path_of(key: str) -> str:
    """The dotted path as it stands in the file."""
    return ".".join(map(camel, key.split(".")))


def _choices(kubelet: KubeletConfiguration) -> Iterator[Problem]:
    for key, allowed in _CHOICES.items():
        value = get(kubelet, key)
        if value not in allowed:
            yield path_of(key), f"{value!r} is not one of {', '.join(filter(None, allowed))}"


def _ranges(kubelet: KubeletConfiguration) -> Iterator[Problem]:
    for key, (low, high) in _RANGES.items():
        value = get(kubelet, key)
        if isinstance(value, int) and not low <= value <= high:
            span = f"between {low} and {high}, inclusive" if high != _BIG else f"at least {low}"
            yield path_of(key), f"must be {span}, is {value}"


def _durations(kubelet: KubeletConfiguration) -> Iterator[Problem]:
    for key, (low, high, span) in _DURATIONS.items():
        value = get(kubelet, key)
        if isinstance(value, float) and not low <= value <= high:
            yield path_of(key), f"must be {span}, is {value:g}s"


def _addresses(kubelet: KubeletConfiguration) -> Iterator[Problem]:
    for key in _ADDRESSES:
        if not _is_ip(str(get(kubelet, key))):
            yield path_of(key), f"{get(kubelet, key)!r} is not an IP address"
    for index, server in enumerate(kubelet.cluster_dns):
        if not _is_ip(server):
            yield f"clusterDNS[{index}]", f"{server!r} is not an IP address"
    if kubelet.cluster_domain and not _DNS_NAME.fullmatch(kubelet.cluster_domain):
        yield "clusterDomain", f"{kubelet.cluster_domain!r} is not a DNS name in lower case"
    for part in filter(None, kubelet.pod_cidr.split(",")):
        try:
            ipaddress.ip_network(part, strict=False)
        except ValueError:
            yield "podCIDR", f"{part!r} is not a network like 10.22.0.0/16"


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _tls(kubelet: KubeletConfiguration) -> Iterator[Problem]:
    if bool(kubelet.tls_cert_file) != bool(kubelet.tls_private_key_file):
        missing = "tlsPrivateKeyFile" if kubelet.tls_cert_file else "tlsCertFile"
        yield missing, "tlsCertFile and tlsPrivateKeyFile must be given together"
    if kubelet.server_tls_bootstrap and not _on(kubelet, "RotateKubeletServerCertificate"):
        yield "serverTLSBootstrap", "needs the feature gate RotateKubeletServerCertificate"


def _on(kubelet: KubeletConfiguration, gate: str) -> bool:
    return kubelet.feature_gates.get(gate, features.default_enabled(gate))


def _gates(kubelet: KubeletConfiguration) -> Iterator[Problem]:
    for gate in features.unknown(kubelet.feature_gates):
        yield f"featureGates.{gate}", "unrecognized feature gate"
    if kubelet.default_pod_sysctls and not _on(kubelet, "DefaultPodSysctls"):
        yield "defaultPodSysctls", "needs the feature gate DefaultPodSysctls"
    if kubelet.qos_reserved and not _on(kubelet, "QOSReserved"):
        yield "qosReserved", "needs the feature gate QOSReserved"


def _images(kubelet: KubeletConfiguration) -> Iterator[Problem]:
    if kubelet.image_gc_low_threshold_percent >= kubelet.image_gc_high_threshold_percent:
        yield "imageGCLowThresholdPercent", "must be lower than imageGCHighThresholdPercent"
    if 0 < kubelet.image_maximum_gc_age <= kubelet.image_minimum_gc_age:
        yield "imageMaximumGCAge", "must be greater than imageMinimumGCAge"
    parallel = kubelet.max_parallel_image_pulls
    if parallel is not None and parallel < 1:
        yield "maxParallelImagePulls", f"must be a positive number, is {parallel}"
    if parallel is not None and parallel > 1 and kubelet.serialize_image_pulls:
        yield "maxParallelImagePulls", "cannot be larger than 1 unless serializeImagePulls is false"
    policy = kubelet.image_pull_credentials_verification_policy
    if kubelet.preloaded_images_verification_allowlist and policy != "NeverVerifyAllowlistedImages":
        yield "preloadedImagesVerificationAllowlist", "only goes with the policy NeverVerifyAllowlistedImages"


def _logs(kubelet: KubeletConfiguration) -> Iterator[Problem]:
    directory = kubelet.pod_logs_dir
    if not directory.startswith("/"):
        yield "podLogsDir", f"must be an absolute path, is {directory!r}"
    elif os.path.normpath(directory) != directory:
        yield "podLogsDir", f"must be a clean path, write it {os.path.normpath(directory)}"
    if not directory.isascii():
        yield "podLogsDir", "must contain ASCII characters only"
    if kubelet.enable_system_log_query and not kubelet.enable_system_log_handler:
        yield "enableSystemLogQuery", "needs enableSystemLogHandler"
    if kubelet.enable_system_log_query and not _on(kubelet, "NodeLogQuery"):
        yield "enableSystemLogQuery", "needs the feature gate NodeLogQuery"
    if kubelet.tracing and not 0 <= (kubelet.tracing.sampling_rate_per_million or 0) <= 1_000_000:
        yield "tracing.samplingRatePerMillion", "must be between 0 and 1000000"


def _pods(kubelet: KubeletConfiguration) -> Iterator[Problem]:
    if kubelet.run_once:
        yield "runOnce", "is not supported any more"
    if not kubelet.container_runtime_endpoint:
        yield "containerRuntimeEndpoint", "the container runtime endpoint is empty"
    for index, pattern in enumerate(kubelet.allowed_unsafe_sysctls):
        if not _SYSCTL.fullmatch(pattern):
            yield (
                f"allowedUnsafeSysctls[{index}]",
                f"{pattern!r} is neither a sysctl nor a prefix ending in *",
            )
    ids = kubelet.user_namespaces.ids_per_pod
    if ids < 65536 or ids % 65536 or ids >= 2**32:
        yield "userNamespaces.idsPerPod", f"must be a multiple of 65536 below 2^32, is {ids}"
    if kubelet.register_with_taints and not kubelet.register_node:
        yield "registerWithTaints", "needs registerNode"
    for index, taint in enumerate(kubelet.register_with_taints):
        if not taint.key or taint.effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            yield (
                f"registerWithTaints[{index}]",
                "needs a key and the effect NoSchedule, PreferNoSchedule or NoExecute",
            )


def _shutdown(kubelet: KubeletConfiguration) -> Iterator[Problem]:
    total, critical = kubelet.shutdown_grace_period, kubelet.shutdown_grace_period_critical_pods
    if critical > total:
        yield "shutdownGracePeriodCriticalPods", "must not exceed shutdownGracePeriod"
    for name, period in (("shutdownGracePeriod", total), ("shutdownGracePeriodCriticalPods", critical)):
        if period < 0 or 0 < period < 1:
            yield name, "must be either zero or at least 1s"
    if (total or critical) and not _on(kubelet, "GracefulNodeShutdown"):
        yield "shutdownGracePeriod", "needs the feature gate GracefulNodeShutdown"
    by_priority = kubelet.shutdown_grace_period_by_pod_priority
    if by_priority and (total or critical):
        yield "shutdownGracePeriodByPodPriority", "cannot be used together with shutdownGracePeriod"
    if by_priority and not _on(kubelet, "GracefulNodeShutdownBasedOnPodPriority"):
        yield (
            "shutdownGracePeriodByPodPriority",
            "needs the feature gate GracefulNodeShutdownBasedOnPodPriority",
        )


_CHECKS: tuple[Callable[[KubeletConfiguration], Iterator[Problem]], ...] = (
    _choices,
    _ranges,
    _durations,
    _addresses,
    _tls,
    _gates,
    _images,
    _logs,
    _pods,
    _shutdown,
)
