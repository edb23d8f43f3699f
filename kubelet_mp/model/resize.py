"""In-place resize (KEP-1287): what a pod asks for, what it has been given, and what its containers run with. Pure.

Source: Kubernetes 1.37 pkg/kubelet/allocation; pod-lifecycle.md §11.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kubelet_mp.model.podspec import (
    ContainerSpec,
    Pod,
    init_containers,
    lasting_containers,
    metadata,
    regular_containers,
    spec,
)
from kubelet_mp.model.qos import priority, qos_class
from kubelet_mp.model.requests import Amounts, amounts, larger, pod_requests

POD = ""
"""The name under which the pod's own resources stand beside those of its containers."""
PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
DEFERRED, INFEASIBLE, ERROR = "Deferred", "Infeasible", "Error"
RESIZABLE = ("cpu", "memory")
Resources = Mapping[str, Any]  # core/v1 ResourceRequirements
Allocation = dict[str, Resources]  # container name, or POD → its resources


def allocation(pod: Pod) -> Allocation:
    """The resources that the spec names."""
    found: Allocation = {c["name"]: c.get("resources") or {} for c in lasting_containers(pod)}
    return {**found, POD: spec(pod)["resources"]} if spec(pod).get("resources") else found


def allocated(pod: Pod, given: Mapping[str, Resources]) -> dict[str, Any]:
    """The pod with these resources instead of those of its spec."""
    body = dict(spec(pod))
    for key in ("initContainers", "containers"):
        if body.get(key):
            body[key] = [{**c, "resources": given.get(c["name"], c.get("resources") or {})} for c in body[key]]
    if POD in given:
        body["resources"] = given[POD]
    return {**pod, "spec": body}


def changed(old: Mapping[str, Resources], new: Mapping[str, Resources]) -> set[str]:
    """The names whose cpu or memory differ as quantities."""
    return {name for name in {*old, *new} if _amounts(old.get(name)) != _amounts(new.get(name))}


def _amounts(resources: Resources | None) -> tuple[Amounts, Amounts]:
    """(requests, limits) of what can be resized."""
    return tuple(  # type: ignore[return-value]
        {name: value for name, value in amounts((resources or {}).get(kind)).items() if name in RESIZABLE}
        for kind in ("requests", "limits"))


def needs_restart(container: ContainerSpec, old: Resources, new: Resources) -> bool:
    """Whether the container's resizePolicy wants it started anew for this change."""
    policies = {p["resourceName"]: p.get("restartPolicy") for p in container.get("resizePolicy") or ()}
    before, after = _amounts(old), _amounts(new)
    moved = {n for n in RESIZABLE for i in (0, 1) if before[i].get(n) != after[i].get(n)}
    return any(policies.get(name) == "RestartContainer" for name in moved)


def wider(pod: Pod, old: Mapping[str, Resources]) -> dict[str, Any]:
    """The pod while its containers go over from `old` to what its spec has: each limit is the larger of the two.

    Its cgroup is made so before the first container is resized, and as the spec has it after the last. Requests stay
    the old ones, so that the QoS class cannot change in between.
    """
    return allocated(pod, {name: _wider(old.get(name, new), new) for name, new in allocation(pod).items()})


def _wider(old: Resources, new: Resources) -> Resources:
    before, after = _amounts(old)[1], _amounts(new)[1]
    both = larger(before, after)
    limits = {name: value for name, value in both.items() if name in before and name in after}
    kept = {name: value for name, value in (new.get("limits") or {}).items() if name not in RESIZABLE}
    texts = {name: f"{value}m" if name == "cpu" else str(value) for name, value in limits.items()}
    return {**old, "limits": {**kept, **texts}}


def memory_limit(resources: Resources | None) -> int | None:
    """Bytes, None for no limit."""
    return _amounts(resources)[1].get("memory")


def memory_request(container: ContainerSpec) -> int | None:
    """Bytes, None for none."""
    return _amounts(container.get("resources"))[0].get("memory")


def rank(pod: Pod, given: Mapping[str, Resources], since: str) -> tuple[Any, ...]:
    """The order in which pending resizes are tried, smallest first. since: when it became pending, "" if just now."""
    now, wanted = pod_requests(allocated(pod, given)), pod_requests(pod)
    grows = any(wanted.get(name, 0) > now.get(name, 0) for name in RESIZABLE)
    return grows, -priority(pod), qos_class(pod) != "Guaranteed", since == "", since


def summary(head: str, pod: Pod, problem: str = "") -> str:
    """The text of an event about a resize: what the spec asks for, as JSON."""
    told: dict[str, Any] = {}
    for key, containers in (("initContainers", init_containers(pod)), ("containers", regular_containers(pod))):
        if containers:
            told[key] = [{"name": c["name"], "resources": c.get("resources") or {}} for c in containers]
    told["generation"] = metadata(pod).get("generation") or 0
    return f"{head}: {json.dumps({**told, **({'error': problem} if problem else {})}, separators=(',', ':'))}"
