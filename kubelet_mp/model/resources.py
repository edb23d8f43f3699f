"""Resource values for cgroups: what containers get through the CRI, and the cgroups above them.

Kubernetes 1.37 pkg/kubelet/cm and pkg/kubelet/kuberuntime. This is the module to import from; what it is
made of (requests, cpushares, oomscore, memoryqos, hugepages) is in modules of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubelet_mp.model.cpushares import MIN_SHARES, cpu_quota, cpu_shares, cpu_weight, shares_of_weight
from kubelet_mp.model.hugepages import limits_by_size, unlimited
from kubelet_mp.model.memoryqos import burstable_memory, container_memory, kubepods_memory, pod_memory
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.oomscore import oom_score_adj
from kubelet_mp.model.podspec import ContainerSpec, Pod
from kubelet_mp.model.qos import is_critical, qos_class
from kubelet_mp.model.requests import (
    Amounts,
    all_limited,
    container_limits,
    container_requests,
    pod_level_limits,
    pod_limits,
    pod_overhead,
    pod_requests,
)

__all__ = [
    "CgroupValues",
    "container_limits",
    "container_requests",
    "cpu_quota",
    "cpu_shares",
    "cpu_weight",
    "kubepods_values",
    "linux_resources",
    "oom_score_adj",
    "overhead_resources",
    "pod_cgroup_values",
    "pod_limits",
    "pod_requests",
    "qos_cgroup_values",
    "sandbox_resources",
    "shares_of_weight",
]

NO_QUOTA = -1


@dataclass(frozen=True, slots=True)
class CgroupValues:
    """What a cgroup should hold; None and absent keys mean: leave it alone.

    cpu_shares: cgroup v1 shares, 2 to 262144 (cpu_weight() for v2). cpu_quota: microseconds per cpu_period,
    -1 = no limit. memory_max: bytes. pids_max: processes, both only when limited.
    hugetlb: kernel page size ("2MB", "1GB") → bytes. unified: cgroup v2 file → text.
    """

    cpu_shares: int | None = None
    cpu_quota: int | None = None
    cpu_period: int | None = None
    memory_max: int | None = None
    pids_max: int | None = None
    hugetlb: Mapping[str, int] = field(default_factory=dict)
    unified: Mapping[str, str] = field(default_factory=dict)


# ---------------------------------------------------------------- above the containers


def pod_cgroup_values(pod: Pod, node: NodeView) -> CgroupValues:
    """The pod's own cgroup. A Burstable pod is only limited in what all of its containers are limited in."""
    requests, limits, qos = pod_requests(pod), pod_limits(pod), qos_class(pod)
    cpu = qos == "Guaranteed" or (qos == "Burstable" and all_limited(pod, "cpu"))
    memory = qos == "Guaranteed" or (qos == "Burstable" and all_limited(pod, "memory"))
    return CgroupValues(
        cpu_shares=MIN_SHARES if qos == "BestEffort" else cpu_shares(requests.get("cpu", 0)),
        cpu_quota=_quota(limits.get("cpu", 0), node) if cpu else None,
        cpu_period=node.cpu_period_us if cpu else None,
        memory_max=limits.get("memory") if memory else None,
        pids_max=node.pod_pids_limit if node.pod_pids_limit > 0 else None,
        hugetlb=limits_by_size(requests, node.hugepage_sizes),
        unified=pod_memory(pod, node),
    )


def _quota(millicores: int, node: NodeView) -> int | None:
    return cpu_quota(millicores, node.cpu_period_us) if node.cpu_cfs_quota else NO_QUOTA


def qos_cgroup_values(pods: Iterable[Pod], node: NodeView) -> dict[str, CgroupValues]:
    """{"Burstable": …, "BestEffort": …} for the given active pods (of all classes)."""
    listed = list(pods)
    burstable = sum(pod_requests(p).get("cpu", 0) for p in listed if qos_class(p) == "Burstable")
    hugetlb = unlimited(node.hugepage_sizes)
    return {
        "Burstable": CgroupValues(
            cpu_shares=cpu_shares(burstable), hugetlb=hugetlb, unified=burstable_memory(listed, node)
        ),
        "BestEffort": CgroupValues(cpu_shares=MIN_SHARES, hugetlb=hugetlb),
    }


def kubepods_values(node: NodeView, pods: Iterable[Pod] = ()) -> CgroupValues:
    """The cgroup above all pods: capacity less what is reserved, or all of it when `pods` is not enforced.

    pods: the active pods; they only matter to memoryReservationPolicy TieredReservation.
    """
    reserved = node.reserved if node.pods_enforced else {}
    left = {name: max(have - reserved.get(name, 0), 0) for name, have in node.capacity.items()}
    return CgroupValues(
        cpu_shares=cpu_shares(left["cpu"]) if "cpu" in left else None,
        memory_max=left.get("memory"),
        pids_max=left.get("pid"),
        hugetlb=limits_by_size(left, node.hugepage_sizes),
        unified=kubepods_memory(pods, node),
    )


# ---------------------------------------------------------------- LinuxContainerResources


def linux_resources(
    pod: Pod,
    container: ContainerSpec,
    node: NodeView,
    *,
    exclusive_cpus: bool = False,
    cpuset_cpus: str = "",
    cpuset_mems: str = "",
) -> dict[str, Any]:
    """linux.resources of a container, with the field names of the CRI; what is not set is left out.

    A limit that only the pod has holds for each container too. Exclusive CPUs run without CFS quota.
    """
    limits = {**pod_level_limits(pod), **_set_only(container_limits(container))}
    values = _basic(container_requests(container).get("cpu"), limits, node, quota=not exclusive_cpus)
    unified = {**_oom_group(node), **container_memory(pod, container, node)}
    memory_swap, swap_max = _swap(pod, container, values, node)
    values |= {
        "oom_score_adj": oom_score_adj(pod, container, node.capacity.get("memory", 0)),
        "hugepage_limits": _hugepage_limits(container, node),
        "unified": unified | ({"memory.swap.max": str(swap_max)} if swap_max is not None else {}),
        "memory_swap_limit_in_bytes": memory_swap,
        "cpuset_cpus": cpuset_cpus,
        "cpuset_mems": cpuset_mems,
    }
    return {name: value for name, value in values.items() if value not in (None, "", {}, [])}


def _set_only(amounts: Amounts) -> Amounts:
    return {name: value for name, value in amounts.items() if value}


def _basic(
    request: int | None, limits: Mapping[str, int], node: NodeView, *, quota: bool = True
) -> dict[str, Any]:
    """Shares, quota and memory limit; without a cpu request the limit stands for it."""
    cpu = limits.get("cpu", 0)
    values: dict[str, Any] = {"cpu_shares": cpu_shares(cpu if request is None else request)}
    if limits.get("memory"):
        values["memory_limit_in_bytes"] = limits["memory"]
    if node.cpu_cfs_quota:
        values |= {"cpu_period": node.cpu_period_us}
        values |= {"cpu_quota": cpu_quota(cpu, node.cpu_period_us) if quota else NO_QUOTA}
    return values


def _oom_group(node: NodeView) -> dict[str, str]:
    return {"memory.oom.group": "1"} if node.unified and not node.single_process_oom_kill else {}


def _hugepage_limits(container: ContainerSpec, node: NodeView) -> list[dict[str, Any]]:
    by_size = limits_by_size(container_limits(container), node.hugepage_sizes)
    return [{"page_size": size, "limit": limit} for size, limit in by_size.items()]


def _swap(
    pod: Pod, container: ContainerSpec, values: Mapping[str, Any], node: NodeView
) -> tuple[int | None, int | None]:
    """(memory+swap bytes for cgroup v1, memory.swap.max for v2)."""
    if not node.swap_controller:
        return None, None
    if not node.unified:
        return values.get("memory_limit_in_bytes"), None
    return None, swap_limit(pod, container, node)


def swap_limit(pod: Pod, container: ContainerSpec, node: NodeView) -> int:
    """Bytes of swap a container may use: its share of the node's swap by its memory request, or 0."""
    request = container_requests(container).get("memory", 0)
    limit = container_limits(container).get("memory", 0)
    memory = node.capacity.get("memory", 0)
    if node.swap_behavior != "LimitedSwap" or qos_class(pod) != "Burstable" or is_critical(pod):
        return 0
    if not request or request == limit or request > memory:
        return 0
    return request * node.swap_total // memory


def sandbox_resources(pod: Pod, node: NodeView) -> dict[str, Any]:
    """linux.resources of a sandbox: the whole pod without overhead."""
    request = pod_requests(pod, overhead=False).get("cpu")
    values = _basic(request, pod_limits(pod, overhead=False), node) | {"unified": _oom_group(node)}
    return {name: value for name, value in values.items() if value not in (None, {})}


def overhead_resources(pod: Pod, node: NodeView) -> dict[str, Any]:
    """linux.overhead of a sandbox; {} when the pod has none."""
    overhead = pod_overhead(pod)
    values = _basic(overhead.get("cpu", 0), overhead, node) if overhead else {}
    return {name: value for name, value in values.items() if value is not None}
