"""ContainerStatuses from what the runtime says and what was known before.

After Kubernetes 1.37 pkg/kubelet/kubelet_pods.go: a container that the runtime has forgotten keeps its last
terminated status; one that is due to be started again and could not be is *waiting* with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubelet_mp.model.clock import rfc3339
from kubelet_mp.model.phase import kind
from kubelet_mp.model.podspec import Pod, ephemeral_containers, init_containers, regular_containers
from kubelet_mp.model.restartpolicy import is_sidecar, restarts_after
from kubelet_mp.model.runtime import Container, PodRuntime, State

Status = dict[str, Any]
LOST_EXIT = 137
UNKNOWN = "ContainerStatusUnknown"
LOST_STOPPING = "The container could not be located when the pod was terminated"
LOST_GONE = "The container could not be located when the pod was deleted.  The container used to be Running"
INIT_FORGOTTEN = ("Unable to get init container status from container runtime and pod has been initialized, "
                  "treat it as exit normally")


@dataclass(frozen=True, slots=True)
class StatusInputs:
    """What a pod's status is made of, beside the pod and the runtime's view.

    previous: the last status known (from the record or the API), {} without one.
    reasons: container name → (waiting reason, message) of its last failed start or its back-off.
    probes: (container id, kind) → "success", "failure", "unknown"; kind is readiness or startup. A container
      without an entry but with such a probe has not been probed yet.
    messages: container id → termination message.
    sandbox_problem: why a new sandbox is needed, "" if one is ready.
    node_ips: used by pods on the host network. with_api: hostIP is shown only then.
    override: (phase, reason, message) of a rejected, evicted or expired pod, None otherwise.
    terminal: nothing of the pod will be started again. deleting: it is being stopped.
    resize: conditions of an in-place resize. lagging: resources of what has not got those of its spec yet.
    now: RFC 3339 seconds. runtime_name: the scheme of container ids.
    """

    now: str
    previous: Mapping[str, Any] = field(default_factory=dict)
    reasons: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    probes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    messages: Mapping[str, str] = field(default_factory=dict)
    sandbox_problem: str = ""
    node_ips: tuple[str, ...] = ()
    with_api: bool = False
    override: tuple[str, str, str] | None = None
    terminal: bool = False
    deleting: bool = False
    resize: Sequence[Mapping[str, Any]] = ()
    lagging: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    runtime_name: str = "containerd"


def container_statuses(pod: Pod, runtime: PodRuntime, inputs: StatusInputs) -> tuple[list[Status], list[Status]]:
    """(init container statuses in spec order, regular ones sorted by name)."""
    init = [_one(pod, c, runtime, inputs, init=True) for c in init_containers(pod)]
    regular = [_one(pod, c, runtime, inputs, init=False) for c in regular_containers(pod)]
    return init, sorted(regular, key=lambda status: str(status["name"]))


def ephemeral_statuses(pod: Pod, runtime: PodRuntime, inputs: StatusInputs) -> list[Status]:
    """Those of ephemeral containers by name: they are never ready, and count for nothing of the pod."""
    found = [_ephemeral(pod, c, runtime, inputs) for c in ephemeral_containers(pod)]
    return sorted(found, key=lambda status: str(status["name"]))


def _ephemeral(pod: Pod, container: Mapping[str, Any], runtime: PodRuntime, inputs: StatusInputs) -> Status:
    name = container["name"]
    instances, old = runtime.instances(name)[:1], _known(inputs, "ephemeralContainerStatuses", name)
    if instances:
        status = _from_runtime(container, instances[0], old, inputs)
    else:
        status = _from_memory(pod, container, old, runtime, inputs, init=False)
        reason = inputs.reasons.get(name)
        if reason is not None and kind(status) == "waiting" and not inputs.deleting:
            status["state"] = _waiting(reason)
    status["ready"] = False
    _describe(container, status, inputs.lagging)
    return status


def _one(pod: Pod, container: Mapping[str, Any], runtime: PodRuntime, inputs: StatusInputs, *, init: bool) -> Status:
    name = container["name"]
    instances = runtime.instances(name)[:2]
    old = _previous(inputs, name, init)
    if instances:
        status = _from_runtime(container, instances[0], old, inputs)
        _carry_last_state(status, instances, old, inputs)
    else:
        status = _from_memory(pod, container, old, runtime, inputs, init)
    _apply_reason(pod, container, status, inputs, init)
    _judge(container, status, _verdicts(container, status, instances, old, inputs), init)
    _describe(container, status, inputs.lagging)
    return status


def _previous(inputs: StatusInputs, name: str, init: bool) -> Mapping[str, Any] | None:
    return _known(inputs, "initContainerStatuses" if init else "containerStatuses", name)


def _known(inputs: StatusInputs, key: str, name: str) -> Mapping[str, Any] | None:
    return next((s for s in inputs.previous.get(key) or () if s.get("name") == name), None)


def _from_runtime(
    container: Mapping[str, Any], instance: Container, old: Mapping[str, Any] | None, inputs: StatusInputs
) -> Status:
    status: Status = {
        "name": container["name"],
        "image": instance.image or container.get("image", ""),
        "imageID": instance.image_ref,
        "containerID": f"{inputs.runtime_name}://{instance.id}",
        "restartCount": instance.restart_count,
        "state": _state(instance, old, inputs),
        "lastState": {},
    }
    if instance.state is State.UNKNOWN and kind(old) == "running":
        status["restartCount"] = int((old or {}).get("restartCount", 0)) + 1
    if instance.running and instance.user is not None:
        status["user"] = {"linux": dict(instance.user)}
    return status


def _state(instance: Container, old: Mapping[str, Any] | None, inputs: StatusInputs) -> Status:
    if instance.state is State.RUNNING:
        return {"running": {"startedAt": rfc3339(instance.started_at)}}
    if instance.state is State.EXITED:
        return {"terminated": terminated(instance, inputs)}
    if instance.state is State.UNKNOWN and kind(old) == "running":
        return {"terminated": _lost(LOST_STOPPING, f"{inputs.runtime_name}://{instance.id}")}
    return {"waiting": {}}


def terminated(instance: Container, inputs: StatusInputs) -> Status:
    """ContainerStateTerminated; reason and message as the runtime gave them."""
    ended: Status = {
        "exitCode": instance.exit_code,
        "startedAt": rfc3339(instance.started_at),
        "finishedAt": rfc3339(instance.finished_at),
        "containerID": f"{inputs.runtime_name}://{instance.id}",
    }
    message = inputs.messages.get(instance.id, instance.message)
    return {**ended, **({"reason": instance.reason} if instance.reason else {}),
            **({"message": message} if message else {})}


def _lost(message: str, container_id: str = "") -> Status:
    lost: Status = {"exitCode": LOST_EXIT, "reason": UNKNOWN, "message": message, "startedAt": None,
                    "finishedAt": None}
    return {**lost, "containerID": container_id} if container_id else lost


def _carry_last_state(
    status: Status, instances: tuple[Container, ...], old: Mapping[str, Any] | None, inputs: StatusInputs
) -> None:
    """lastState: the instance before, else what was known of it (the runtime may have removed it)."""
    if len(instances) > 1 and instances[1].state is State.EXITED:
        status["lastState"] = {"terminated": terminated(instances[1], inputs)}
        return
    if old is None:
        return
    state = old.get("state") or {}
    ended = state.get("terminated")
    same = old.get("containerID") == status["containerID"]
    if ended and not same:
        status["lastState"] = {"terminated": ended}
    else:
        status["lastState"] = dict(old.get("lastState") or {})
    if (status["lastState"].get("terminated") or {}).get("containerID") == status["containerID"]:
        status["lastState"] = {}  # it was shown as waiting, or seemed lost: its own end is no state before itself


def _from_memory(
    pod: Pod, container: Mapping[str, Any], old: Mapping[str, Any] | None, runtime: PodRuntime, inputs: StatusInputs,
    init: bool,
) -> Status:
    """The runtime has no instance: what was known of it, else that it waits for its first start."""
    reason = "PodInitializing" if init_containers(pod) else "ContainerCreating"
    status: Status = {"name": container["name"], "image": container.get("image", ""), "imageID": "",
                      "restartCount": 0, "state": {"waiting": {"reason": reason}}, "lastState": {}}
    if old is not None:
        if kind(old) == "terminated":
            return {**old}
        status["restartCount"] = old.get("restartCount", 0)
        status["lastState"] = dict(old.get("lastState") or {})
    if init and not is_sidecar(container) and not status["lastState"] and _initialized(pod, runtime):
        status["state"] = {"terminated": {"exitCode": 0, "reason": "Completed", "message": INIT_FORGOTTEN,
                                          "startedAt": None, "finishedAt": None}}
    elif old is not None and kind(old) == "running":
        status["lastState"] = {"terminated": _lost(LOST_GONE, old.get("containerID", ""))}
        status["restartCount"] += 0 if inputs.deleting else 1
    return status


def _initialized(pod: Pod, runtime: PodRuntime) -> bool:
    return any(runtime.instances(c["name"]) for c in regular_containers(pod))


def _apply_reason(
    pod: Pod, container: Mapping[str, Any], status: Status, inputs: StatusInputs, init: bool
) -> None:
    """A container that is due to be started, and whose last try failed, waits with that reason."""
    reason = inputs.reasons.get(container["name"])
    if reason is None or inputs.deleting or kind(status) == "running":
        return
    ended = status["state"].get("terminated")
    if ended is not None:
        failed_init = init and ended.get("reason") == "OOMKilled"
        if not restarts_after(pod, container, ended["exitCode"] or (LOST_EXIT if failed_init else 0), init=init):
            return
        status["lastState"] = {"terminated": ended}
    status["state"] = _waiting(reason)


def _waiting(reason: tuple[str, str]) -> Status:
    return {"waiting": {"reason": reason[0], **({"message": reason[1]} if reason[1] else {})}}


def _verdicts(
    container: Mapping[str, Any], status: Status, instances: tuple[Container, ...], old: Mapping[str, Any] | None,
    inputs: StatusInputs,
) -> tuple[bool, bool]:
    """(startup, readiness) verdicts. What was known of the same instance stands until a probe says otherwise,
    so that a restart of the agent makes nothing unready.
    """
    known = old if old is not None and old.get("containerID") == status.get("containerID") else {}
    verdicts = []
    for kind_, shown in (("startup", "started"), ("readiness", "ready")):
        result = inputs.probes.get((instances[0].id, kind_)) if instances else None
        holds = bool(known.get(shown)) if result is None else result == "success"
        verdicts.append(holds or container.get(f"{kind_}Probe") is None)
    return verdicts[0], verdicts[1]


def _judge(container: Mapping[str, Any], status: Status, verdicts: tuple[bool, bool], init: bool) -> None:
    """`started` and `ready` from the state and the probes' verdicts."""
    status["started"] = kind(status) == "running" and verdicts[0]
    if init and not is_sidecar(container):
        ended = status["state"].get("terminated") or {"exitCode": 1}
        status["ready"] = ended["exitCode"] == 0 and ended.get("reason") != "OOMKilled"
    else:
        status["ready"] = status["started"] and verdicts[1]


def _describe(container: Mapping[str, Any], status: Status, lagging: Mapping[str, Mapping[str, Any]]) -> None:
    """Resources and mounts of a running container: those that it has, and the requests that it was given."""
    if kind(status) != "running":
        return
    given = container.get("resources") or {}
    has = lagging.get(container["name"], given)
    status["resources"] = {k: has[k] for k in ("limits", "requests") if has.get(k)}
    if given.get("requests"):
        status["allocatedResources"] = given["requests"]
    mounts = [_mount(mount) for mount in container.get("volumeMounts") or ()]
    if mounts:
        status["volumeMounts"] = mounts


def _mount(mount: Mapping[str, Any]) -> Status:
    shown: Status = {"name": mount["name"], "mountPath": mount["mountPath"]}
    if mount.get("readOnly"):
        shown["readOnly"] = True
        shown["recursiveReadOnly"] = "Enabled" if mount.get("recursiveReadOnly") == "Enabled" else "Disabled"
    return shown
