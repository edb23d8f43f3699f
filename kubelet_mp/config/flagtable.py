"""The table of flags: those of the process (KubeletFlags) and those derived from KubeletConfiguration.

A configuration field has the flag named like it in kebab-case unless NO_FLAG or RENAMED says otherwise;
almost all of these are deprecated in favour of the file. Source: Kubernetes 1.37 cmd/kubelet/app/options.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_origin

from pydantic.fields import FieldInfo

from kubelet_mp.config.flagvalues import KINDS
from kubelet_mp.config.model import KubeletConfiguration
from kubelet_mp.config.types import Section, camel

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag. Exactly one of attr (of Settings) and path (into the v1beta1 document) is where it goes."""

    name: str
    kind: str
    help: str
    attr: str = ""
    path: Path = ()
    deprecated: bool = False
    shorthand: str = ""

    @property
    def optional_value(self) -> bool:
        """Whether the flag stands alone, its value only given with `=`."""
        return KINDS[self.kind].alone is not None


NO_FLAG = frozenset(
    [
        "pod_logs_dir",
        "tls_curve_preferences",
        "image_pull_credentials_verification_policy",
        "preloaded_images_verification_allowlist",
        "node_status_report_frequency",
        "node_lease_duration_seconds",
        "image_maximum_gc_age",
        "single_process_oom_kill",
        "max_parallel_image_pulls",
        "merge_default_eviction_settings",
        "iptables_masquerade_bit",
        "iptables_drop_bit",
        "memory_swap.swap_behavior",
        "container_log_max_workers",
        "container_log_monitor_interval",
        "config_map_and_secret_change_detection_strategy",
        "show_hidden_metrics_for_version",
        "default_pod_sysctls",
        "enable_system_log_handler",
        "enable_system_log_query",
        "enable_profiling_handler",
        "enable_debug_flags_handler",
        "shutdown_grace_period",
        "shutdown_grace_period_critical_pods",
        "shutdown_grace_period_by_pod_priority",
        "crash_loop_back_off.max_container_restart_period",
        "memory_throttling_factor",
        "memory_reservation_policy",
        "tracing",
        "user_namespaces.ids_per_pod",
        "logging.options",
    ]
)

RENAMED = {
    "static_pod_path": "pod-manifest-path",
    "static_pod_url": "manifest-url",
    "static_pod_url_header": "manifest-url-header",
    "server_tls_bootstrap": "rotate-server-certificates",
    "registry_pull_qps": "registry-qps",
    "event_record_qps": "event-qps",
    "image_minimum_gc_age": "minimum-image-ttl-duration",
    "image_gc_high_threshold_percent": "image-gc-high-threshold",
    "image_gc_low_threshold_percent": "image-gc-low-threshold",
    "enable_contention_profiling": "contention-profiling",
    "pod_pids_limit": "pod-max-pids",
    "fail_cgroup_v1": "fail-cgroupv1",
    "authentication.x509.client_ca_file": "client-ca-file",
    "authentication.anonymous.enabled": "anonymous-auth",
    "authentication.webhook.enabled": "authentication-token-webhook",
    "authentication.webhook.cache_ttl": "authentication-token-webhook-cache-ttl",
    "authorization.mode": "authorization-mode",
    "authorization.webhook.cache_authorized_ttl": "authorization-webhook-cache-authorized-ttl",
    "authorization.webhook.cache_unauthorized_ttl": "authorization-webhook-cache-unauthorized-ttl",
    "reserved_system_cpus": "reserved-cpus",
    "content_type": "kube-api-content-type",
    "run_once": "runonce",
    "logging.format": "logging-format",
    "logging.verbosity": "v",
    "logging.vmodule": "vmodule",
    "logging.flush_frequency": "log-flush-frequency",
}

_KIND_OF = {
    "eviction_hard": "less-than-map",
    "eviction_soft": "less-than-map",
    "feature_gates": "gates",
    "static_pod_url_header": "headers",
    "register_with_taints": "taints",
    "reserved_memory": "reserved-memory",
    "logging.vmodule": "vmodule",
}
_NOT_DEPRECATED = {"provider-id", "fail-cgroupv1", "v", "vmodule", "log-flush-frequency", "seccomp-default"}

_PROCESS = """
config string: KubeletConfiguration file (YAML or JSON)
config-dir string: directory of drop-in files NAME.conf, merged over --config in lexical order
kubeconfig string: how to reach the API server; without it the agent is standalone
bootstrap-kubeconfig string: credentials to request a client certificate with
hostname-override string: node name instead of the host's name
node-ip string: address of the node, or two of them (dual stack) with a comma between
cert-dir string: directory of client and serving certificates
root-dir string: directory of pods, volumes and state
cloud-provider string: empty, or external
node-labels map: labels of the node at registration, k=v,…
lock-file string: file to hold an exclusive lock on
exit-on-lock-contention bool: end when another process opens --lock-file
runtime-cgroups string: cgroup of the container runtime, for its statistics
image-credential-provider-config string: file or directory of credential plugin configurations
image-credential-provider-bin-dir string: directory of credential plugin programs
housekeeping-interval duration: time between samplings of container statistics
minimum-container-ttl-duration duration: age of a dead container before it is collected (deprecated)
maximum-dead-containers-per-container int32: dead instances kept of each container (deprecated)
maximum-dead-containers int32: dead containers kept on the node, -1 for no limit (deprecated)
experimental-mounter-path string: not supported, must be empty (deprecated)
experimental-allocatable-ignore-eviction bool: leave hard thresholds out of allocatable (deprecated)
cadvisor-port int32: port of the cAdvisor-compatible metrics, 0 for none (default 4194)
version version: print the version and end; =raw for all of it, =vX.Y.Z to report that one
help bool: print this text and end
"""


def _of_process() -> Iterator[Flag]:
    for line in _PROCESS.strip().splitlines():
        head, _, text = line.partition(": ")
        name, kind = head.split()
        yield Flag(
            name,
            kind,
            text,
            attr=name.replace("-", "_"),
            deprecated=text.endswith("(deprecated)"),
            shorthand="h" if name == "help" else "",
        )


def leaves(section: type[Section] = KubeletConfiguration, at: Path = ()) -> Iterator[tuple[Path, FieldInfo]]:
    """Every field that is not itself a required section, with its path of attribute names."""
    for name, info in section.model_fields.items():
        inner = info.annotation
        if isinstance(inner, type) and issubclass(inner, Section):
            yield from leaves(inner, (*at, name))
        else:
            yield (*at, name), info


def _kind(info: FieldInfo) -> str:
    """The kind of flag value that the annotation of a field asks for."""
    annotation: Any = info.annotation
    if get_origin(annotation) is tuple:
        return "list"
    if get_origin(annotation) is dict:
        return "map"
    if annotation is float:
        return "duration"
    if annotation is int:
        return "int64" if any(getattr(limit, "le", 0) > 2**31 for limit in info.metadata) else "int32"
    return "bool" if annotation is bool else "string"


def _derived() -> Iterator[Flag]:
    for attributes, info in leaves():
        key = ".".join(attributes)
        if key in NO_FLAG:
            continue
        name = RENAMED.get(key, key.replace("_", "-"))
        path = tuple(map(camel, attributes))
        yield Flag(
            name,
            _KIND_OF.get(key) or _kind(info),
            f"sets {'.'.join(path)}",
            path=path,
            deprecated=name not in _NOT_DEPRECATED,
            shorthand="v" if name == "v" else "",
        )


FLAGS: dict[str, Flag] = {flag.name: flag for flag in (*_of_process(), *_derived())}
SHORTHANDS: dict[str, Flag] = {flag.shorthand: flag for flag in FLAGS.values() if flag.shorthand}
