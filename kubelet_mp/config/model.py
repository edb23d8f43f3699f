"""KubeletConfiguration (kubelet.config.k8s.io/v1beta1): every field with its default.

Durations are seconds, quantities and percentages stay text. The defaults are the secure ones that hold with a
--config file; decode.legacy_defaults() gives those without a file. Source: Kubernetes 1.37
k8s.io/kubelet/config/v1beta1 and pkg/kubelet/apis/config/v1beta1/defaults.go.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from kubelet_mp.config.types import (
    Bool,
    Duration,
    Filled,
    Float,
    Int32,
    Int64,
    Section,
    Str,
    TimeOrDuration,
)

API_VERSION = "kubelet.config.k8s.io/v1beta1"
KIND = "KubeletConfiguration"

EVICTION_HARD_DEFAULT = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}
"""Hard thresholds of a --config file that gives none; without a file there are none at all."""


class X509Authentication(Section):
    client_ca_file: Str = ""


class AnonymousAuthentication(Section):
    enabled: Bool = False


class WebhookAuthentication(Section):
    enabled: Bool = True
    cache_ttl: Filled[Duration] = 120.0


class Authentication(Section):
    x509: X509Authentication = X509Authentication()
    webhook: WebhookAuthentication = WebhookAuthentication()
    anonymous: AnonymousAuthentication = AnonymousAuthentication()


class WebhookAuthorization(Section):
    cache_authorized_ttl: Filled[Duration] = 300.0
    cache_unauthorized_ttl: Filled[Duration] = 30.0


class Authorization(Section):
    mode: Filled[Str] = "Webhook"
    webhook: WebhookAuthorization = WebhookAuthorization()


class MemorySwap(Section):
    swap_behavior: Str = ""


class CrashLoopBackOff(Section):
    max_container_restart_period: Duration = 300.0


class UserNamespaces(Section):
    ids_per_pod: Int64 = 65536


class Tracing(Section):
    endpoint: Str | None = None
    sampling_rate_per_million: Int32 | None = None


class VModuleItem(Section):
    file_pattern: Str = ""
    verbosity: Int32 = 0


class Logging(Section):
    format: Filled[Str] = "text"
    flush_frequency: Filled[TimeOrDuration] = 5.0
    verbosity: Int32 = 0
    vmodule: tuple[VModuleItem, ...] = ()
    options: dict[str, Any] = Field(default_factory=dict)


class MemoryReservation(Section):
    numa_node: Int32 = 0
    limits: dict[str, Str] = Field(default_factory=dict)


class ShutdownGracePeriodByPodPriority(Section):
    priority: Int32 = 0
    shutdown_grace_period_seconds: Int64 = 0


class Taint(Section):
    key: Str = ""
    value: Str = ""
    effect: Str = ""


class KubeletConfiguration(Section):
    """The configuration of one node. Fields are grouped as in the reference documentation."""

    # servers
    enable_server: Bool = True
    address: Filled[Str] = "0.0.0.0"
    port: Filled[Int32] = 10250
    read_only_port: Int32 = 0
    healthz_port: Int32 = 10248
    healthz_bind_address: Filled[Str] = "127.0.0.1"
    tls_cert_file: Str = ""
    tls_private_key_file: Str = ""
    tls_cipher_suites: tuple[Str, ...] = ()
    tls_min_version: Str = ""
    tls_curve_preferences: tuple[Int32, ...] = ()
    rotate_certificates: Bool = False
    server_tls_bootstrap: Bool = False
    authentication: Authentication = Authentication()
    authorization: Authorization = Authorization()
    enable_debugging_handlers: Bool = True
    enable_contention_profiling: Bool = False
    enable_profiling_handler: Bool = True
    enable_debug_flags_handler: Bool = True
    enable_system_log_handler: Bool = True
    enable_system_log_query: Bool = False
    streaming_connection_idle_timeout: Filled[Duration] = 14400.0
    # static pods and their logs
    static_pod_path: Str = ""
    static_pod_url: Str = ""
    static_pod_url_header: dict[str, tuple[Str, ...]] = Field(default_factory=dict)
    sync_frequency: Filled[Duration] = 60.0
    file_check_frequency: Filled[Duration] = 20.0
    http_check_frequency: Filled[Duration] = 20.0
    pod_logs_dir: Filled[Str] = "/var/log/pods"
    container_log_max_size: Filled[Str] = "10Mi"
    container_log_max_files: Int32 = 5
    container_log_max_workers: Int32 = 1
    container_log_monitor_interval: Duration = 10.0
    # images
    registry_pull_qps: Int32 = 5
    registry_burst: Filled[Int32] = 10
    serialize_image_pulls: Bool = True
    max_parallel_image_pulls: Int32 | None = None
    image_pull_credentials_verification_policy: Filled[Str] = "NeverVerifyPreloadedImages"
    preloaded_images_verification_allowlist: tuple[Str, ...] = ()
    image_minimum_gc_age: Filled[Duration] = 120.0
    image_maximum_gc_age: Duration = 0.0
    image_gc_high_threshold_percent: Int32 = 85
    image_gc_low_threshold_percent: Int32 = 80
    # node object, API server
    event_record_qps: Int32 = 50
    event_burst: Filled[Int32] = 100
    node_status_update_frequency: Filled[Duration] = 10.0
    node_status_report_frequency: Filled[Duration] = 300.0
    node_lease_duration_seconds: Filled[Int32] = 40
    node_status_max_images: Int32 = 50
    register_node: Bool = True
    register_with_taints: tuple[Taint, ...] = ()
    provider_id: Str = ""
    content_type: Filled[Str] = "application/vnd.kubernetes.protobuf"
    kube_api_qps: Int32 = 50
    kube_api_burst: Filled[Int32] = 100
    config_map_and_secret_change_detection_strategy: Filled[Str] = "Watch"
    enable_controller_attach_detach: Bool = True
    # pods
    cluster_domain: Str = ""
    cluster_dns: tuple[Str, ...] = ()
    resolv_conf: Str = "/etc/resolv.conf"
    max_pods: Filled[Int32] = 110
    pods_per_core: Int32 = 0
    pod_cidr: Str = ""
    pod_pids_limit: Int64 = -1
    run_once: Bool = False
    hairpin_mode: Filled[Str] = "promiscuous-bridge"
    allowed_unsafe_sysctls: tuple[Str, ...] = ()
    default_pod_sysctls: dict[str, Str] = Field(default_factory=dict)
    seccomp_default: Bool = False
    crash_loop_back_off: CrashLoopBackOff = CrashLoopBackOff()
    user_namespaces: UserNamespaces = UserNamespaces()
    volume_plugin_dir: Filled[Str] = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"
    volume_stats_agg_period: Filled[Duration] = 60.0
    local_storage_capacity_isolation: Bool = True
    # container runtime
    container_runtime_endpoint: Filled[Str] = "unix:///run/containerd/containerd.sock"
    image_service_endpoint: Str = ""
    runtime_request_timeout: Filled[Duration] = 120.0
    # cgroups and reservations
    kubelet_cgroups: Str = ""
    system_cgroups: Str = ""
    cgroup_root: Str = ""
    cgroups_per_qos: Bool = True
    cgroup_driver: Filled[Str] = "cgroupfs"
    single_process_oom_kill: Bool | None = None
    cpu_cfs_quota: Bool = True
    cpu_cfs_quota_period: Duration = 0.1
    qos_reserved: dict[str, Str] = Field(default_factory=dict)
    system_reserved: dict[str, Str] = Field(default_factory=dict)
    kube_reserved: dict[str, Str] = Field(default_factory=dict)
    system_reserved_cgroup: Str = ""
    kube_reserved_cgroup: Str = ""
    reserved_system_cpus: Str = ""
    enforce_node_allocatable: tuple[Str, ...] = ("pods",)
    memory_throttling_factor: Float | None = None
    memory_reservation_policy: Filled[Str] = "None"
    memory_swap: MemorySwap = MemorySwap()
    # resource managers
    cpu_manager_policy: Filled[Str] = "none"
    cpu_manager_policy_options: dict[str, Str] = Field(default_factory=dict)
    cpu_manager_reconcile_period: Filled[Duration] = 10.0
    memory_manager_policy: Filled[Str] = "None"
    reserved_memory: tuple[MemoryReservation, ...] = ()
    topology_manager_policy: Filled[Str] = "none"
    topology_manager_scope: Filled[Str] = "container"
    topology_manager_policy_options: dict[str, Str] = Field(default_factory=dict)
    # eviction
    eviction_hard: dict[str, Str] = Field(default_factory=dict)
    eviction_soft: dict[str, Str] = Field(default_factory=dict)
    eviction_soft_grace_period: dict[str, Str] = Field(default_factory=dict)
    eviction_pressure_transition_period: Filled[Duration] = 300.0
    eviction_max_pod_grace_period: Int32 = 0
    eviction_minimum_reclaim: dict[str, Str] = Field(default_factory=dict)
    merge_default_eviction_settings: Bool = False
    kernel_memcg_notification: Bool = False
    # the kubelet itself and its host
    oom_score_adj: Int32 = -999
    max_open_files: Filled[Int64] = 1000000
    protect_kernel_defaults: Bool = False
    make_iptables_util_chains: Bool = True
    iptables_masquerade_bit: Int32 = 14
    iptables_drop_bit: Int32 = 15
    feature_gates: dict[str, Bool] = Field(default_factory=dict)
    fail_swap_on: Bool = True
    fail_cgroup_v1: Bool = True
    # shutdown
    shutdown_grace_period: Duration = 0.0
    shutdown_grace_period_critical_pods: Duration = 0.0
    shutdown_grace_period_by_pod_priority: tuple[ShutdownGracePeriodByPodPriority, ...] = ()
    # observability
    tracing: Tracing | None = None
    logging: Logging = Logging()
    show_hidden_metrics_for_version: Str = ""

    @property
    def image_endpoint(self) -> str:
        """The CRI endpoint for images: imageServiceEndpoint, or else containerRuntimeEndpoint."""
        return self.image_service_endpoint or self.container_runtime_endpoint

    def as_v1beta1(self) -> dict[str, Any]:
        """The plain v1beta1 document with every field, as it would stand in a file."""
        body = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {"apiVersion": API_VERSION, "kind": KIND, **body}
