"""Whether a valid configuration can be honoured on this host: pure functions, each a list of ConfigError.

The facts are gathered by the caller and passed in. Source of the texts: Kubernetes 1.37 cmd/kubelet/app and
pkg/kubelet/cm.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from kubelet_mp.config.model import KubeletConfiguration
from kubelet_mp.config.settings import Settings
from kubelet_mp.errors import ConfigError

V1_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory")
"""Without these cgroup v1 hierarchies no limit can be kept."""


def swap(kubelet: KubeletConfiguration, swaps: Sequence[str]) -> list[ConfigError]:
    """swaps: the active swap areas, as /proc/swaps names them."""
    if not (kubelet.fail_swap_on and swaps):
        return []
    return [
        ConfigError(
            "running with swap on is not supported, please disable swap or set --fail-swap-on flag to false; "
            f"active: {', '.join(swaps)}",
            "swapoff -a (and take swap out of /etc/fstab), or failSwapOn: false",
        )
    ]


def cgroup_version(kubelet: KubeletConfiguration, version: int) -> list[ConfigError]:
    """version: 1, 2, or 0 when no cgroup filesystem is mounted."""
    if version == 0:
        return [ConfigError("no cgroup filesystem is mounted on /sys/fs/cgroup", "mount cgroup v2 there")]
    if version == 1 and kubelet.fail_cgroup_v1:
        return [
            ConfigError(
                "kubelet is configured to not run on a host using cgroup v1",
                "boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1), or set failCgroupV1: false",
            )
        ]
    return []


def cgroup_behaviour(kubelet: KubeletConfiguration, version: int) -> list[ConfigError]:
    """What only one of the two cgroup versions can do."""
    if version != 1:
        return []
    found = []
    if kubelet.memory_swap.swap_behavior == "LimitedSwap":
        found.append(
            ConfigError(
                "swapBehavior LimitedSwap is not supported on a host using cgroup v1",
                "set memorySwap.swapBehavior: NoSwap, or use cgroup v2",
            )
        )
    if kubelet.single_process_oom_kill is False:
        found.append(
            ConfigError(
                "invalid configuration: singleProcessOOMKill: must not be false on a host using cgroup v1",
                "leave singleProcessOOMKill out, or use cgroup v2",
            )
        )
    return found


def cgroup_controllers(
    kubelet: KubeletConfiguration, version: int, controllers: Collection[str], *, cfs_period: bool
) -> list[ConfigError]:
    """controllers: the mounted hierarchies; cfs_period: whether cpu.cfs_period_us exists (v1 only)."""
    if version != 1:
        return []
    found = []
    missing = [name for name in V1_CONTROLLERS if name not in controllers]
    if missing:
        found.append(
            ConfigError(
                f"Following Cgroup subsystem not mounted: {missing}",
                "mount them under /sys/fs/cgroup (some kernels need cgroup_enable=memory to boot with)",
            )
        )
    elif kubelet.cpu_cfs_quota and not cfs_period:
        found.append(
            ConfigError(
                "the kernel lacks CFS quota (no cpu.cfs_period_us)",
                "use a kernel with CONFIG_CFS_BANDWIDTH, or set cpuCFSQuota: false",
            )
        )
    return found


def driver(kubelet: KubeletConfiguration, runtime_driver: str | None) -> list[ConfigError]:
    """runtime_driver: what the runtime's RuntimeConfig answered, None when it cannot tell.

    A cgroupDriver that nobody set gives way to the runtime's.
    """
    wanted = kubelet.cgroup_driver
    if not runtime_driver or runtime_driver == wanted:
        return []
    if "cgroup_driver" not in kubelet.model_fields_set:
        return _driver_implemented(runtime_driver)
    option = "SystemdCgroup = " + ("true" if wanted == "systemd" else "false")
    return [
        ConfigError(
            f"cgroup drivers differ: cgroupDriver is {wanted!r}, the runtime uses {runtime_driver!r}",
            f"set cgroupDriver: {runtime_driver}, or reconfigure the runtime (containerd: {option})",
        )
    ]


def _driver_implemented(driver: str) -> list[ConfigError]:
    if driver == "cgroupfs":
        return []
    return [
        ConfigError(
            f"the container runtime uses the cgroup driver {driver!r}, which is not implemented yet",
            "configure the runtime for cgroupfs (containerd: SystemdCgroup = false)",
        )
    ]


def webhooks(settings: Settings) -> list[ConfigError]:
    """Standalone there is nobody to ask about tokens and permissions."""
    kubelet = settings.kubelet
    if not (settings.standalone and kubelet.enable_server):
        return []
    found = []
    if kubelet.authentication.webhook.enabled:
        found.append(
            ConfigError(
                "no client provided, cannot use webhook authentication",
                "set authentication.webhook.enabled: false, or give --kubeconfig",
            )
        )
    if kubelet.authorization.mode == "Webhook":
        found.append(
            ConfigError(
                "no client provided, cannot use webhook authorization",
                "set authorization.mode: AlwaysAllow, or give --kubeconfig",
            )
        )
    return found


def certificates(settings: Settings) -> list[ConfigError]:
    """Standalone there is nobody to sign a serving certificate."""
    kubelet = settings.kubelet
    if not (settings.standalone and kubelet.enable_server and kubelet.server_tls_bootstrap):
        return []
    return [
        ConfigError(
            "serverTLSBootstrap needs an API server, and there is none",
            "set serverTLSBootstrap: false, or give --kubeconfig",
        )
    ]


_Asked = Callable[[Settings], bool]

_REFUSED: tuple[tuple[str, str, _Asked], ...] = (
    (
        "cgroupDriver systemd",
        "set cgroupDriver: cgroupfs and configure the container runtime alike",
        lambda s: s.kubelet.cgroup_driver == "systemd",
    ),
    ("--exit-on-lock-contention", "leave it out", lambda s: s.exit_on_lock_contention),
    ("cgroupsPerQOS: false", "leave it out", lambda s: not s.kubelet.cgroups_per_qos),
)
"""Going on without these would be unsafe, or would do something else than what was asked for."""

_IGNORED: tuple[tuple[str, _Asked], ...] = (
    ("cpuManagerPolicy", lambda s: s.kubelet.cpu_manager_policy != "none"),
    ("memoryManagerPolicy", lambda s: s.kubelet.memory_manager_policy != "None"),
    ("topologyManagerPolicy", lambda s: s.kubelet.topology_manager_policy != "none"),
    ("memorySwap.swapBehavior LimitedSwap", lambda s: s.kubelet.memory_swap.swap_behavior == "LimitedSwap"),
    ("tlsCertFile together with serverTLSBootstrap",
     lambda s: s.kubelet.server_tls_bootstrap and bool(s.kubelet.tls_cert_file)),
    ("shutdownGracePeriod", lambda s: s.kubelet.shutdown_grace_period > 0),
    ("shutdownGracePeriodByPodPriority", lambda s: bool(s.kubelet.shutdown_grace_period_by_pod_priority)),
    ("evictionHard", lambda s: "eviction_hard" in s.kubelet.model_fields_set and bool(s.kubelet.eviction_hard)),
    ("evictionSoft", lambda s: bool(s.kubelet.eviction_soft)),
    ("imageMaximumGCAge", lambda s: s.kubelet.image_maximum_gc_age > 0),
    ("tlsCurvePreferences", lambda s: bool(s.kubelet.tls_curve_preferences)),
    ("tracing", lambda s: s.kubelet.tracing is not None),
    ("--image-credential-provider-config", lambda s: bool(s.image_credential_provider_config)),
)


def not_implemented(settings: Settings) -> list[ConfigError]:
    """What was asked for, is not implemented, and must not be passed over."""
    return [ConfigError(f"{what} is not implemented yet", fix) for what, fix, asked in _REFUSED if asked(settings)]


def without_effect(settings: Settings) -> list[str]:
    """What was asked for and has no effect here or yet, one warning each."""
    found = [f"{what} is not implemented yet and has no effect" for what, asked in _IGNORED if asked(settings)]
    if settings.standalone and settings.kubelet.rotate_certificates:
        found.append("rotateCertificates has no effect without an API server")
    return found


def at_start(
    settings: Settings,
    *,
    swaps: Sequence[str],
    version: int,
    controllers: Collection[str],
    cfs_period: bool,
) -> list[ConfigError]:
    """Everything that can be told before talking to the container runtime; empty when the agent may start."""
    kubelet = settings.kubelet
    return [
        *webhooks(settings),
        *certificates(settings),
        *not_implemented(settings),
        *swap(kubelet, swaps),
        *cgroup_version(kubelet, version),
        *cgroup_behaviour(kubelet, version),
        *cgroup_controllers(kubelet, version, controllers, cfs_period=cfs_period),
    ]


def raise_all(errors: Iterable[ConfigError]) -> None:
    """Raise one ConfigError for all of them, if there are any."""
    found = list(errors)
    if len(found) == 1:
        raise found[0]
    if found:
        raise ConfigError.aggregate("the agent cannot start with this configuration here", map(str, found))
