"""The pod conditions that the kubelet owns (Kubernetes 1.37 pkg/kubelet/status/generate.go)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kubelet_mp.model.phase import Statuses, kind, last_exit
from kubelet_mp.model.podspec import Pod, init_containers, metadata, regular_containers, spec
from kubelet_mp.model.resize import IN_PROGRESS, PENDING
from kubelet_mp.model.restartpolicy import is_sidecar

Condition = dict[str, Any]
PASSING = (PENDING, IN_PROGRESS)
OWNED = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled", "DisruptionTarget")


def conditions(
    pod: Pod, phase: str, statuses: Statuses, *, sandbox_problem: str, previous: Sequence[Mapping[str, Any]], now: str,
    passing: Sequence[Mapping[str, Any]] = (),
) -> list[Condition]:
    """All conditions: ours computed anew, others kept. A transition time moves only with its status.

    passing: those of PASSING that hold now; they go when they do not.
    sandbox_problem: why a new sandbox is needed, "" if one is ready with an IP. now: RFC 3339.
    """
    containers_ready = _containers_ready(pod, phase, statuses)
    ours = [
        _sandbox(sandbox_problem),
        _initialized(pod, phase, statuses),
        _ready(pod, containers_ready, previous),
        containers_ready,
        _condition("PodScheduled", True),
        *map(dict, passing),
    ]
    kept = stamp(pod, ours, previous, now)
    names = {condition["type"] for condition in passing}
    return [condition for condition in kept if condition["type"] in names or condition["type"] not in PASSING]


def stamp(
    pod: Pod, new: Iterable[Condition], previous: Sequence[Mapping[str, Any]], now: str
) -> list[Condition]:
    """Give `new` conditions their times and generation; keep those of `previous` that they do not replace."""
    old = {str(c["type"]): c for c in previous}
    fresh = [_timed(condition, old.get(condition["type"]), now, metadata(pod).get("generation")) for condition in new]
    names = {condition["type"] for condition in fresh}
    return fresh + [dict(condition) for name, condition in old.items() if name not in names]


def _timed(condition: Condition, old: Mapping[str, Any] | None, now: str, generation: Any) -> Condition:
    same = old is not None and old.get("status") == condition["status"]
    timed = {"lastProbeTime": None, **condition,
             "lastTransitionTime": old["lastTransitionTime"] if same and old and "lastTransitionTime" in old else now}
    if generation:
        timed["observedGeneration"] = generation
    return timed


def _condition(type_: str, holds: bool, reason: str = "", message: str = "") -> Condition:
    condition: Condition = {"type": type_, "status": "True" if holds else "False"}
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message
    return condition


def _sandbox(problem: str) -> Condition:
    name = "PodReadyToStartContainers"
    return _condition(name, False, "PodSandboxNotReady", problem) if problem else _condition(name, True)


def _names(label: str, names: Sequence[str]) -> str:
    return f"containers with {label} status: [{' '.join(names)}]" if names else ""


def _join(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _initialized(pod: Pod, phase: str, statuses: Statuses) -> Condition:
    name = "Initialized"
    unknown, incomplete = [], []
    for container in init_containers(pod):
        status = statuses.get(container["name"])
        if status is None:
            unknown.append(container["name"])
        elif not (status.get("started") if is_sidecar(container) else status.get("ready")):
            incomplete.append(container["name"])
    if phase == "Succeeded" and not unknown:
        return _condition(name, True, "PodCompleted")
    if phase == "Failed" and not unknown and incomplete and _regular_started(pod, statuses):
        return _condition(name, True)
    message = _join(_names("unknown", unknown), _names("incomplete", incomplete))
    if not message or _regular_started(pod, statuses):
        return _condition(name, True)
    return _condition(name, False, "ContainersNotInitialized", message)


def _regular_started(pod: Pod, statuses: Statuses) -> bool:
    """Has any regular container ever been started?"""
    for container in regular_containers(pod):
        status = statuses.get(container["name"])
        if status is not None and (kind(status) == "running" or last_exit(status) is not None):
            return True
    return False


def _containers_ready(pod: Pod, phase: str, statuses: Statuses) -> Condition:
    name = "ContainersReady"
    if not statuses:
        return _condition(name, False, "UnknownContainerStatuses")
    judged = [c for c in init_containers(pod) if is_sidecar(c)] + list(regular_containers(pod))
    unknown = [c["name"] for c in judged if c["name"] not in statuses]
    unready = [c["name"] for c in judged if c["name"] in statuses and not statuses[c["name"]].get("ready")]
    if phase == "Succeeded" and not unknown:
        return _condition(name, False, "PodCompleted")
    if phase == "Failed" and not unknown:
        return _condition(name, False, "PodFailed")
    message = _join(_names("unknown", unknown), _names("unready", unready))
    return _condition(name, False, "ContainersNotReady", message) if message else _condition(name, True)


def _ready(pod: Pod, containers_ready: Condition, previous: Sequence[Mapping[str, Any]]) -> Condition:
    if containers_ready["status"] != "True":
        return {**containers_ready, "type": "Ready"}
    problems = [text for gate in spec(pod).get("readinessGates") or () if (text := _gate(gate, previous))]
    return _condition("Ready", False, "ReadinessGatesNotReady", _join(*problems)) if problems else _condition(
        "Ready", True)


def _gate(gate: Mapping[str, Any], previous: Sequence[Mapping[str, Any]]) -> str:
    name = gate.get("conditionType", "")
    found = next((c for c in previous if c.get("type") == name), None)
    if found is None:
        return f'corresponding condition of pod readiness gate "{name}" does not exist.'
    if found.get("status") != "True":
        return f'the status of pod readiness gate "{name}" is not "True", but {found.get("status")}'
    return ""
