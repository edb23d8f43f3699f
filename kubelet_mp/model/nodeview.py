"""NodeView: what a decision about one pod has to know of the node, frozen and picklable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from kubelet_mp.model.runtime import HandlerFeatures

EMPTY: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """Built from the settings and from what the node was seen to have; rebuilt when either changes.

    Resource maps (capacity, allocatable, reserved): resource name → whole units, but cpu in millicores;
    memory, ephemeral-storage and hugepages-<size> in bytes; pid in processes.

    reserved: systemReserved + kubeReserved, eviction thresholds not included.
    hugepage_sizes: bytes of each page size that the kernel offers.
    resolv_conf: text of the host resolver file; None when `resolvConf` is "" (pods get no resolver).
    hosts_file: text of the node's own /etc/hosts, for pods on the host network.
    cpu_period_us: CFS period in microseconds.
    swap_total: bytes of swap of the node. swap_controller: the kernel can limit swap by cgroup.
    pods_enforced: `pods` is in enforceNodeAllocatable.
    memory_throttling_factor: None when memory.high is not to be set.
    memory_reservation: "None" or "TieredReservation".
    page_size: bytes of a memory page. thermal_throttle_paths: /sys/.../thermal_throttle that exist.
    """

    node_name: str
    node_ips: tuple[str, ...] = ()
    root_dir: str = "/var/lib/kubelet"
    pod_logs_dir: str = "/var/log/pods"
    cluster_dns: tuple[str, ...] = ()
    cluster_domain: str = ""
    resolv_conf: str | None = ""
    hosts_file: str = ""

    capacity: Mapping[str, int] = field(default_factory=dict)
    allocatable: Mapping[str, int] = field(default_factory=dict)
    reserved: Mapping[str, int] = field(default_factory=dict)
    hugepage_sizes: tuple[int, ...] = ()
    page_size: int = 4096
    pods_enforced: bool = True

    cgroup_version: int = 2
    cgroup_driver: str = "cgroupfs"
    cgroup_root: str = ""
    cgroups_per_qos: bool = True
    cpu_cfs_quota: bool = True
    cpu_period_us: int = 100_000
    pod_pids_limit: int = -1
    single_process_oom_kill: bool = False

    memory_qos: bool = True
    memory_throttling_factor: float | None = None
    memory_reservation: str = "None"
    swap_behavior: str = "NoSwap"
    swap_total: int = 0
    swap_controller: bool = True

    seccomp_default: bool = False
    selinux: bool = False
    thermal_throttle_paths: tuple[str, ...] = ()
    ids_per_pod: int = 65536
    container_stop_signals: bool = False
    local_storage_isolation: bool = True
    handlers: tuple[HandlerFeatures, ...] = ()
    supplemental_groups_policy: bool = False

    @property
    def unified(self) -> bool:
        """Whether the node has cgroup v2."""
        return self.cgroup_version == 2

    @property
    def seccomp_root(self) -> str:
        return f"{self.root_dir}/seccomp"

    def handler(self, name: str) -> HandlerFeatures:
        """Features of a runtime handler; all absent when the runtime names none."""
        return next((h for h in self.handlers if h.name == name), HandlerFeatures(name))
