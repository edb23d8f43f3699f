"""memory.min, memory.low and memory.high on cgroup v2 (Kubernetes 1.37, feature MemoryQoS): file → text."""

from __future__ import annotations

import math
from collections.abc import Iterable

from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.podspec import ContainerSpec, Pod
from kubelet_mp.model.qos import qos_class
from kubelet_mp.model.requests import container_limits, container_requests, pod_requests

MIN, LOW, HIGH = "memory.min", "memory.low", "memory.high"
TIERED = "TieredReservation"


def _on(node: NodeView) -> bool:
    return node.unified and node.memory_qos


def container_memory(pod: Pod, container: ContainerSpec, node: NodeView) -> dict[str, str]:
    """Of a container. With the feature off memory.high is lifted, in case it was set before."""
    if not node.unified:
        return {}
    if not node.memory_qos:
        return {HIGH: "max"}
    request = container_requests(container).get("memory", 0)
    high = memory_high(request, container_limits(container).get("memory", 0), node)
    return {MIN: "0", LOW: "0", **_reservation(pod, request, node), **({HIGH: str(high)} if high else {})}


def pod_memory(pod: Pod, node: NodeView) -> dict[str, str]:
    """Of a pod's cgroup."""
    return _reservation(pod, pod_requests(pod).get("memory", 0), node) if _on(node) else {}


def _reservation(pod: Pod, request: int, node: NodeView) -> dict[str, str]:
    if node.memory_reservation != TIERED or not request:
        return {}
    return {MIN if qos_class(pod) == "Guaranteed" else LOW: str(request)}


def burstable_memory(pods: Iterable[Pod], node: NodeView) -> dict[str, str]:
    """Of the cgroup of all Burstable pods."""
    return {LOW: str(_sum(pods, "Burstable", node))} if _on(node) else {}


def kubepods_memory(pods: Iterable[Pod], node: NodeView) -> dict[str, str]:
    """Of the cgroup of all pods."""
    if not _on(node):
        return {}
    listed = list(pods)
    low = _sum(listed, "Burstable", node)
    return {MIN: str(_sum(listed, "Guaranteed", node) + low), LOW: str(low)}


def _sum(pods: Iterable[Pod], qos: str, node: NodeView) -> int:
    if node.memory_reservation != TIERED:
        return 0
    return sum(pod_requests(p).get("memory", 0) for p in pods if qos_class(p) == qos)


def memory_high(request: int, limit: int, node: NodeView) -> int | None:
    """Bytes above which a container is throttled, a multiple of the page size; None when it is not to be."""
    factor = node.memory_throttling_factor
    if factor is None or (limit and request == limit):
        return None
    ceiling = limit or node.allocatable.get("memory", 0)
    high = math.floor((request + (ceiling - request) * factor) / node.page_size) * node.page_size
    return high if high > request else None
