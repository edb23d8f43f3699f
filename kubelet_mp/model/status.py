"""The status of a pod: phase, conditions, container states, addresses, as /pods shows it and the API gets it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubelet_mp.model.conditions import conditions, stamp
from kubelet_mp.model.containerstatus import (
    LOST_EXIT,
    LOST_STOPPING,
    UNKNOWN,
    StatusInputs,
    container_statuses,
    ephemeral_statuses,
)
from kubelet_mp.model.phase import TERMINAL, kind, last_exit, phase
from kubelet_mp.model.podspec import Pod, host_network, metadata, spec
from kubelet_mp.model.qos import qos_class
from kubelet_mp.model.resize import POD
from kubelet_mp.model.runtime import PodRuntime

Status = dict[str, Any]
MESSAGE_BUDGET = 12 * 1024  # bytes of termination messages a pod, shared by its containers

__all__ = ["StatusInputs", "compute_status", "finish_status"]


def compute_status(pod: Pod, runtime: PodRuntime, inputs: StatusInputs) -> Status:
    """core/v1 PodStatus. Pure: the same arguments give the same status."""
    init, regular = container_statuses(pod, runtime, inputs)
    by_name = {str(status["name"]): status for status in init + regular}
    status: Status = {"phase": _phase(pod, by_name, inputs)}
    _explain(status, inputs)
    previous_conditions = inputs.previous.get("conditions") or []
    status["conditions"] = conditions(
        pod, status["phase"], by_name if regular else {}, sandbox_problem=inputs.sandbox_problem,
        previous=previous_conditions, now=inputs.now, passing=inputs.resize)
    _addresses(pod, status, runtime, inputs)
    status["startTime"] = inputs.previous.get("startTime") or inputs.now
    status["qosClass"] = qos_class(pod)
    if init:
        status["initContainerStatuses"] = init
    if regular:
        status["containerStatuses"] = regular
    _whole_resources(pod, status, inputs)
    ephemeral = ephemeral_statuses(pod, runtime, inputs)
    if ephemeral:
        status["ephemeralContainerStatuses"] = ephemeral
    if metadata(pod).get("generation"):
        status["observedGeneration"] = metadata(pod)["generation"]
    _cut_messages(init + regular + ephemeral)
    return status


def _whole_resources(pod: Pod, status: Status, inputs: StatusInputs) -> None:
    """Of a pod with resources of its own: what it was given, and what it has."""
    given = spec(pod).get("resources")
    if given:
        status["resources"] = dict(inputs.lagging.get(POD, given))
        if given.get("requests"):
            status["allocatedResources"] = given["requests"]


def _phase(pod: Pod, statuses: Mapping[str, Status], inputs: StatusInputs) -> str:
    """A terminal phase never reverts."""
    known = inputs.previous.get("phase")
    if known in TERMINAL:
        return str(known)
    return inputs.override[0] if inputs.override else phase(pod, statuses, terminal=inputs.terminal)


def _explain(status: Status, inputs: StatusInputs) -> None:
    if inputs.override:
        reason, message = inputs.override[1:]
    elif inputs.previous.get("phase") == status["phase"]:
        reason, message = inputs.previous.get("reason", ""), inputs.previous.get("message", "")
    else:
        return
    status.update({k: v for k, v in (("reason", reason), ("message", message)) if v})


def _addresses(pod: Pod, status: Status, runtime: PodRuntime, inputs: StatusInputs) -> None:
    if inputs.with_api and inputs.node_ips:
        status["hostIP"] = inputs.node_ips[0]
        status["hostIPs"] = [{"ip": ip} for ip in inputs.node_ips]
    ips = list(inputs.node_ips) if host_network(pod) else list(runtime.ips)
    chosen = _one_per_family(ips) or [entry["ip"] for entry in inputs.previous.get("podIPs") or ()]
    if chosen and (not host_network(pod) or runtime.sandboxes or inputs.previous.get("podIPs")):
        status["podIP"] = chosen[0]
        status["podIPs"] = [{"ip": ip} for ip in chosen]


def _one_per_family(ips: list[str]) -> list[str]:
    first = ips[:1]
    other = [ip for ip in ips[1:] if (":" in ip) != (":" in ips[0])]
    return first + other[:1]


def _cut_messages(statuses: list[Status]) -> None:
    budget = MESSAGE_BUDGET // max(1, len(statuses))
    for status in statuses:
        for state in (status["state"], status["lastState"]):
            ended = state.get("terminated")
            if ended and len(ended.get("message", "").encode()) > budget:
                ended["message"] = ended["message"].encode()[:budget].decode("utf-8", "ignore")


def finish_status(pod: Pod, status: Status, now: str) -> Status:
    """The last status of a pod whose worker is done: nothing of it runs, so nothing may be shown as running.

    A container not known to have ended is 137 ContainerStatusUnknown (regular ones only if the pod was
    initialised; trailing init containers that never started stay as they are).
    """
    done = {**status}
    initialized = any(last_exit(s) is not None or kind(s) == "running" for s in status.get("containerStatuses") or ())
    init = [dict(s) for s in status.get("initContainerStatuses") or ()]
    started = [i for i, s in enumerate(init) if last_exit(s) is not None or kind(s) == "running"]
    for i in range(len(init) if initialized else (max(started) + 1 if started else 0)):
        init[i] = _ended(init[i])
    regular = [_ended(dict(s)) if initialized or not init else dict(s) for s in status.get("containerStatuses") or ()]
    if init:
        done["initContainerStatuses"] = init
    if regular:
        done["containerStatuses"] = regular
    if status.get("ephemeralContainerStatuses"):
        done["ephemeralContainerStatuses"] = [_cut_short(dict(s)) for s in status["ephemeralContainerStatuses"]]
    if done.get("phase") not in TERMINAL:
        codes = [last_exit(s) for s in regular]
        done["phase"] = "Succeeded" if codes and all(code == 0 for code in codes) else "Failed"
    reason = "PodCompleted" if done["phase"] == "Succeeded" else "PodFailed"
    over = [{"type": name, "status": "False", "reason": reason} for name in ("Ready", "ContainersReady")]
    kept = {c["type"]: c for c in stamp(pod, over, status.get("conditions") or [], now)}
    done["conditions"] = [kept[c["type"]] for c in status.get("conditions") or ()] or list(kept.values())
    return done


def _cut_short(status: Status) -> Status:
    """An ephemeral container that ran; one that never started stays as it is."""
    return _ended(status) if kind(status) == "running" else status


def _ended(status: Status) -> Status:
    """One that has not ended by itself; of others nothing changes: a completed init container stays ready."""
    if kind(status) != "terminated":
        lost = {"exitCode": LOST_EXIT, "reason": UNKNOWN, "message": LOST_STOPPING, "startedAt": None,
                "finishedAt": None}
        status |= {"state": {"terminated": lost}, "ready": False}
        if "started" in status:
            status["started"] = False
    return status


