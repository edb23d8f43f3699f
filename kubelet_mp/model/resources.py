"""Values of the cgroups above the containers (Kubernetes 1.37 pkg/kubelet/cm)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubelet_mp.model.nodeview import NodeView

Pod = Mapping[str, Any]


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


def pod_cgroup_values(pod: Pod, node: NodeView) -> CgroupValues:
    """The pod's own cgroup."""
    raise NotImplementedError


def qos_cgroup_values(pods: Iterable[Pod], node: NodeView) -> dict[str, CgroupValues]:
    """{"Burstable": …, "BestEffort": …} for the given active pods."""
    raise NotImplementedError


def kubepods_values(node: NodeView, pods: Iterable[Pod] = ()) -> CgroupValues:
    """The cgroup above all pods."""
    raise NotImplementedError
