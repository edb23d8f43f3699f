"""Capacity, reservations and allocatable of the node, from its sizes and its configuration. Pure.

Resource maps: name → whole units, cpu in millicores. Kubernetes 1.37 pkg/kubelet/cm/node_container_manager.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubelet_mp.config import Settings
from kubelet_mp.errors import StartError
from kubelet_mp.host.procfs import Machine
from kubelet_mp.model import quantity
from kubelet_mp.model.cpushares import cpu_shares
from kubelet_mp.model.hugepages import limits_by_size
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.requests import HUGEPAGES, Amounts, add, amounts
from kubelet_mp.model.resources import CgroupValues

PID = "pid"  # reserved and limited like a resource, but no part of the node's status
STORAGE = "ephemeral-storage"
_EVICTION = {"memory.available": "memory", "nodefs.available": STORAGE}


def capacity(machine: Machine, root_size: int, settings: Settings) -> Amounts:
    """What the node has. `root_size`: bytes of the filesystem that holds the root directory."""
    config = settings.kubelet
    pods = config.max_pods
    if config.pods_per_core > 0:
        pods = min(pods, config.pods_per_core * machine.cpus)
    have = {"cpu": 1000 * machine.cpus, "memory": machine.memory, "pods": pods, PID: machine.max_pids}
    if config.local_storage_capacity_isolation:
        have[STORAGE] = root_size
    for size, total in machine.huge_pages.items():
        have[HUGEPAGES + str(quantity.from_value(size, "BinarySI"))] = total
    return have


def system_reserved(settings: Settings) -> Amounts:
    """systemReserved; its cpu is the number of reservedSystemCPUs where these are given."""
    reserved = amounts(settings.kubelet.system_reserved)
    cpus = cpu_count(settings.kubelet.reserved_system_cpus)
    return {**reserved, "cpu": 1000 * cpus} if cpus else reserved


def kube_reserved(settings: Settings) -> Amounts:
    """kubeReserved; without cpu where reservedSystemCPUs are given."""
    reserved = amounts(settings.kubelet.kube_reserved)
    if cpu_count(settings.kubelet.reserved_system_cpus):
        reserved.pop("cpu", None)
    return reserved


def cpu_count(cpuset: str) -> int:
    """How many CPUs a list like "0-3,8" names. Raises StartError."""
    found: set[int] = set()
    for part in filter(None, (piece.strip() for piece in cpuset.split(","))):
        first, dash, last = part.partition("-")
        try:
            found.update(range(int(first), int(last if dash else first) + 1))
        except ValueError:
            raise StartError(f"reservedSystemCPUs: {part!r} is not a CPU or a range of CPUs",
                             'write it like "0-1,4"') from None
    return len(found)


def reserved(settings: Settings) -> Amounts:
    """systemReserved + kubeReserved."""
    return add(system_reserved(settings), kube_reserved(settings))


def eviction_reserved(have: Mapping[str, int], hard: Mapping[str, str]) -> Amounts:
    """What the hard eviction thresholds keep from the pods."""
    return {
        _EVICTION[signal]: _threshold(text, have.get(_EVICTION[signal], 0))
        for signal, text in hard.items()
        if signal in _EVICTION
    }


def _threshold(text: str, of: int) -> int:
    """A quantity, or a percentage of `of`; 0% and 100% switch a threshold off."""
    if not text.endswith("%"):
        return quantity.value(text)
    percent = quantity.parse(text[:-1]).milli_value()
    return 0 if percent in (0, 100_000) else of * percent // 100_000


def allocatable(have: Mapping[str, int], settings: Settings) -> Amounts:
    """What pods may ask for altogether. Raises StartError when more is reserved than there is."""
    taken = add(reserved(settings), eviction_reserved(have, settings.kubelet.eviction_hard))
    huge = sum(total for name, total in have.items() if name.startswith(HUGEPAGES))
    left = {}
    for name, total in have.items():
        if taken.get(name, 0) > total:
            raise StartError(
                f"resource {name} has a reservation of {taken[name]} but capacity of {total}",
                "lower systemReserved, kubeReserved or evictionHard for it",
            )
        left[name] = max(total - taken.get(name, 0) - (huge if name == "memory" else 0), 0)
    return left


def node_view(
    settings: Settings, machine: Machine, have: Mapping[str, int], *, version: int, driver: str
) -> NodeView:
    """The view of the node that cgroup values are computed from."""
    config = settings.kubelet
    return NodeView(
        node_name=settings.node_name,
        root_dir=settings.root_dir,
        capacity=have,
        allocatable=allocatable(have, settings),
        reserved=reserved(settings),
        hugepage_sizes=tuple(sorted(machine.huge_pages)),
        pods_enforced="pods" in config.enforce_node_allocatable,
        cgroup_version=version,
        cgroup_driver=driver,
        cgroup_root=config.cgroup_root,
        cgroups_per_qos=config.cgroups_per_qos,
        cpu_cfs_quota=config.cpu_cfs_quota,
        cpu_period_us=round(config.cpu_cfs_quota_period * 1_000_000),
        pod_pids_limit=config.pod_pids_limit,
        memory_qos=settings.feature("MemoryQoS"),
        memory_throttling_factor=config.memory_throttling_factor,
        memory_reservation=config.memory_reservation_policy,
        swap_total=machine.swap,
    )


def public(have: Mapping[str, int]) -> Amounts:
    """Without what is no part of the node's status."""
    return {name: total for name, total in have.items() if name != PID}


def reserved_values(taken: Mapping[str, int], whole: bool, page_sizes: Iterable[int]) -> CgroupValues:
    """The cgroup of daemons that `taken` is reserved for; only its cpu unless `whole`."""
    shares = cpu_shares(taken["cpu"]) if "cpu" in taken else None
    if not whole:
        return CgroupValues(cpu_shares=shares)
    return CgroupValues(cpu_shares=shares, memory_max=taken.get("memory"), pids_max=taken.get(PID),
                        hugetlb=limits_by_size(taken, page_sizes))
