"""QoS class, priority and criticality of a pod (Kubernetes 1.37 pkg/apis/core/v1/helper/qos)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubelet_mp.model.cgroupnames import QosClass
from kubelet_mp.model.podspec import (
    MIRROR,
    SOURCE,
    Pod,
    annotations_of,
    lasting_containers,
    spec,
)
from kubelet_mp.model.requests import (
    Amounts,
    add,
    container_limits,
    container_requests,
    has_pod_level,
    pod_level_limits,
    pod_level_requests,
)

SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
NODE_CRITICAL_CLASS = "system-node-critical"
COMPUTE = ("cpu", "memory")


def qos_class(pod: Pod) -> QosClass:
    """Guaranteed, Burstable or BestEffort, from cpu and memory alone.

    Pod-level resources, where the pod has any, are judged instead of those of its containers.
    """
    if has_pod_level(pod):
        parts = [(pod_level_requests(pod), pod_level_limits(pod))]
    else:
        parts = [(container_requests(c), container_limits(c)) for c in lasting_containers(pod)]
    return _classify(parts)


def _classify(parts: list[tuple[Amounts, Amounts]]) -> QosClass:
    requests = _compute_sum(request for request, _ in parts)
    limits = _compute_sum(limit for _, limit in parts)
    if not requests and not limits:
        return "BestEffort"
    complete = all(limit.get(name, 0) > 0 for _, limit in parts for name in COMPUTE)
    return "Guaranteed" if complete and requests == limits else "Burstable"


def _compute_sum(maps: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for amounts in maps:
        total = add(total, {name: amounts[name] for name in COMPUTE if amounts.get(name, 0) > 0})
    return total


def is_static(pod: Pod) -> bool:
    """Whether the pod came from a file or a URL rather than the API server."""
    return annotations_of(pod).get(SOURCE, "api") != "api"


def is_mirror(pod: Pod) -> bool:
    """Whether it is the API server's copy of a static pod."""
    return MIRROR in annotations_of(pod)


def priority(pod: Pod) -> int:
    """spec.priority; 0 when none is given."""
    return spec(pod).get("priority") or 0


def is_critical(pod: Pod) -> bool:
    """Whether the pod may preempt others and is never evicted: static, mirror, or of system priority."""
    return is_static(pod) or is_mirror(pod) or priority(pod) >= SYSTEM_CRITICAL_PRIORITY


def is_node_critical(pod: Pod) -> bool:
    return is_critical(pod) and spec(pod).get("priorityClassName") == NODE_CRITICAL_CLASS
