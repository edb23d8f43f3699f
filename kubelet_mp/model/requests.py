"""Requests and limits of containers and pods (Kubernetes 1.37 component-helpers/resource).

Amounts are whole units per resource name; cpu is in millicores. Input is the plain pod; a quantity that
cannot be parsed raises ValueError (validation has refused such pods long before).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubelet_mp.model import quantity
from kubelet_mp.model.podspec import (
    ContainerSpec,
    Pod,
    init_containers,
    is_sidecar,
    lasting_containers,
    regular_containers,
    spec,
)

Amounts = dict[str, int]
HUGEPAGES = "hugepages-"


def amount(name: str, text: str | int | float) -> int:
    """A quantity of the resource `name` in this module's units, rounded up."""
    return quantity.milli_value(text) if name == "cpu" else quantity.value(text)


def amounts(resource_list: Mapping[str, Any] | None) -> Amounts:
    """A ResourceList in this module's units."""
    return {name: amount(name, text) for name, text in (resource_list or {}).items()}


def add(left: Mapping[str, int], right: Mapping[str, int]) -> Amounts:
    return {name: left.get(name, 0) + right.get(name, 0) for name in {**left, **right}}


def larger(left: Mapping[str, int], right: Mapping[str, int]) -> Amounts:
    """The larger of the two for each name."""
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in {**left, **right}}


def container_limits(container: ContainerSpec) -> Amounts:
    return amounts((container.get("resources") or {}).get("limits"))


def container_requests(container: ContainerSpec) -> Amounts:
    """The requests; a limit without a request is the request too."""
    return {**container_limits(container), **amounts((container.get("resources") or {}).get("requests"))}


def aggregate_requests(pod: Pod) -> Amounts:
    """What the containers ask for at the pod's most demanding moment."""
    return _aggregate(pod, container_requests)


def aggregate_limits(pod: Pod) -> Amounts:
    return _aggregate(pod, container_limits)


def _aggregate(pod: Pod, of: Callable[[ContainerSpec], Amounts]) -> Amounts:
    """Regular containers and sidecars run together; each init container runs with the sidecars before it."""
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in init_containers(pod):
        with_it = add(sidecars, of(container))
        starting = larger(starting, with_it)
        sidecars = with_it if is_sidecar(pod, container) else sidecars
    running = sidecars
    for container in regular_containers(pod):
        running = add(running, of(container))
    return larger(running, starting)


def _supported_at_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith(HUGEPAGES)


def _pod_level(pod: Pod, kind: str) -> Amounts:
    listed = amounts((spec(pod).get("resources") or {}).get(kind))
    return {name: value for name, value in listed.items() if _supported_at_pod_level(name)}


def pod_level_limits(pod: Pod) -> Amounts:
    return _pod_level(pod, "limits")


def pod_level_requests(pod: Pod) -> Amounts:
    """Pod-level requests; a limit without one is as much as the containers ask for, or else the limit."""
    limits = pod_level_limits(pod)
    asked = aggregate_requests(pod) if limits else {}
    return {name: asked.get(name, limit) for name, limit in limits.items()} | _pod_level(pod, "requests")


def has_pod_level(pod: Pod) -> bool:
    """Whether the pod itself, beside its containers, has requests or limits."""
    return bool(pod_level_limits(pod) or _pod_level(pod, "requests"))


def pod_overhead(pod: Pod) -> Amounts:
    """What the RuntimeClass adds for the sandbox itself."""
    return amounts(spec(pod).get("overhead"))


def pod_requests(pod: Pod, *, overhead: bool = True) -> Amounts:
    """What the pod asks of the node; pod-level requests replace the sum of its containers."""
    total = {**aggregate_requests(pod), **pod_level_requests(pod)}
    return add(total, pod_overhead(pod)) if overhead else total


def pod_limits(pod: Pod, *, overhead: bool = True) -> Amounts:
    """The pod's limits; overhead only widens a limit that is there.

    A name is present as soon as one container has such a limit; see all_limited() for whether the sum
    may be enforced.
    """
    total = {**aggregate_limits(pod), **pod_level_limits(pod)}
    extra = pod_overhead(pod) if overhead else {}
    return {name: value + extra.get(name, 0) for name, value in total.items()}


def all_limited(pod: Pod, name: str) -> bool:
    """Whether the pod, or every init and regular container of it, has a limit of `name`."""
    if pod_level_limits(pod).get(name, 0) > 0:
        return True
    return all(container_limits(c).get(name, 0) > 0 for c in lasting_containers(pod))
