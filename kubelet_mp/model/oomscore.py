"""oom_score_adj of containers (Kubernetes 1.37 pkg/kubelet/qos)."""

from __future__ import annotations

from kubelet_mp.model.podspec import ContainerSpec, Pod, init_containers, is_sidecar, regular_containers
from kubelet_mp.model.qos import is_node_critical, qos_class
from kubelet_mp.model.requests import aggregate_requests, container_requests, pod_level_requests

KUBELET = -999
GUARANTEED = -997
BEST_EFFORT = 1000
LOWEST_BURSTABLE = BEST_EFFORT + GUARANTEED


def oom_score_adj(pod: Pod, container: ContainerSpec, memory_capacity: int) -> int:
    """-997 to 1000; the higher, the sooner the kernel kills it. memory_capacity: bytes of the node."""
    qos = qos_class(pod)
    if qos == "Guaranteed" or is_node_critical(pod):
        return GUARANTEED
    if qos == "BestEffort":
        return BEST_EFFORT
    score = _score(pod, _memory(container), memory_capacity)
    if is_sidecar(pod, container):
        smallest = min(map(_memory, regular_containers(pod)), default=0)
        score = min(score, _score(pod, smallest, memory_capacity))
    return min(max(score, LOWEST_BURSTABLE), BEST_EFFORT - 1)


def _memory(container: ContainerSpec) -> int:
    return container_requests(container).get("memory", 0)


def _score(pod: Pod, request: int, capacity: int) -> int:
    return BEST_EFFORT - 1000 * (request + _share_of_rest(pod)) // max(capacity, 1)


def _share_of_rest(pod: Pod) -> int:
    """The part of a pod-level request that no container claims, divided among all of them."""
    whole = pod_level_requests(pod).get("memory", 0)
    count = len(regular_containers(pod)) + len(init_containers(pod))
    return max(whole - aggregate_requests(pod).get("memory", 0), 0) // count if whole and count else 0
