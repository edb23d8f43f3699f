"""What a pod needs done in the runtime, computed from its spec and the newest snapshot. Pure.

Source: Kubernetes 1.37 pkg/kubelet/kuberuntime (computePodActions, podSandboxChanged).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kubelet_mp.model.containerhash import container_hash
from kubelet_mp.model.restartpolicy import policy_of, restarts_after
from kubelet_mp.model.runtime import Container, PodRuntime, Sandbox, State
from kubelet_mp.rooms.pods.initactions import InitPlan, plan_init

Spec = dict[str, Any]
Verdict = Callable[[Container, str], str]  # (instance, probe kind) → success, failure, unknown or ""


@dataclass(frozen=True, slots=True)
class Kill:
    """Kill one running (or unknown) instance; `kind` is the probe that asked for it, "" for other causes."""

    container: Container
    spec: Spec
    message: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class PodActions:
    """`kill_pod`: stop all containers and sandboxes first. `ephemeral`, `init` and `containers` are to be started in
    order.

    `attempt` counts for a new sandbox; `sandbox` is the one to use otherwise. `failed`: no start can help any
    more (the pod is finished or an init container failed for good).
    """

    kill_pod: bool = False
    create_sandbox: bool = False
    attempt: int = 0
    sandbox: Sandbox | None = None
    sandbox_reason: str = ""
    kill: tuple[Kill, ...] = ()
    ephemeral: tuple[Spec, ...] = ()
    init: tuple[Spec, ...] = ()
    containers: tuple[Spec, ...] = ()
    prune_init: tuple[Container, ...] = field(default=())

    @property
    def idle(self) -> bool:
        return not (self.kill_pod or self.create_sandbox or self.kill or self.starts)

    @property
    def starts(self) -> tuple[Spec, ...]:
        """All containers to be started, in their order."""
        return (*self.ephemeral, *self.init, *self.containers)


@dataclass(frozen=True, slots=True)
class SandboxNeed:
    """Whether a new sandbox is needed, and as which attempt; `reason` is also the condition's message."""

    needed: bool
    attempt: int
    sandbox: Sandbox | None
    reason: str = ""


def sandbox_need(pod: Spec, runtime: PodRuntime) -> SandboxNeed:
    """Which sandbox the pod runs in, or why it must get a new one."""
    latest = runtime.sandboxes[0] if runtime.sandboxes else None
    if latest is None:
        return SandboxNeed(True, 0, None, "no pod sandbox exists")
    host_network = bool(pod["spec"].get("hostNetwork"))
    reason = ""
    if len(runtime.ready_sandboxes) > 1:
        reason = "multiple pod sandboxes are ready and need to be reconciled"
    elif not latest.ready:
        reason = "pod sandbox is not ready"
    elif latest.host_network != host_network:
        reason = "network namespace mode changed and sandbox needs to be recreated"
    elif not host_network and not latest.ips:
        reason = "pod sandbox has no IP address"
    if not reason:
        return SandboxNeed(False, latest.attempt, latest)
    return SandboxNeed(True, max(s.attempt for s in runtime.sandboxes) + 1, latest, reason)


def compute_actions(pod: Spec, runtime: PodRuntime, verdict: Verdict) -> PodActions:
    """What to do now. `verdict` gives the probe result that is known of an instance."""
    need = sandbox_need(pod, runtime)
    if need.needed:
        return _with_new_sandbox(pod, runtime, need)
    assert need.sandbox is not None
    return _in_sandbox(pod, runtime, need.sandbox, verdict)


def _with_new_sandbox(pod: Spec, runtime: PodRuntime, need: SandboxNeed) -> PodActions:
    spec = pod["spec"]
    replace = need.sandbox is not None
    gone = PodActions(kill_pod=_anything_up(runtime), sandbox_reason=need.reason)
    if pod["metadata"].get("deletionTimestamp"):
        return gone
    if spec.get("restartPolicy") == "Never" and not _own_policies(spec) and need.attempt != 0 and runtime.containers:
        return gone  # a pod that never restarts does not get a second sandbox
    starts = tuple(c for c in spec["containers"] if _due_in_new_sandbox(pod, c, runtime))
    created = any(runtime.instances(c["name"]) for c in spec["containers"])
    if not starts and created:
        return gone
    init = spec.get("initContainers") or []
    return PodActions(
        kill_pod=replace,
        create_sandbox=True,
        attempt=need.attempt,
        sandbox_reason=need.reason,
        init=tuple(init[:1]),
        containers=() if init else starts,
        prune_init=tuple(c for name in _names(init) for c in runtime.instances(name)) if replace else (),
    )


def _due_in_new_sandbox(pod: Spec, container: Spec, runtime: PodRuntime) -> bool:
    last = runtime.latest(container["name"])
    return last is None or last.state is not State.EXITED or restarts_after(pod, container, last.exit_code)


def _own_policies(spec: Spec) -> bool:
    """Some container has a restart policy or rules of its own, so that Never of the pod is not the last word."""
    everything = [*spec["containers"], *(spec.get("initContainers") or [])]
    return any(c.get("restartPolicy") or c.get("restartPolicyRules") for c in everything)


def _anything_up(runtime: PodRuntime) -> bool:
    return bool(runtime.ready_sandboxes) or any(
        c.state in (State.RUNNING, State.UNKNOWN) for c in runtime.containers
    )


def _in_sandbox(pod: Spec, runtime: PodRuntime, sandbox: Sandbox, verdict: Verdict) -> PodActions:
    spec = pod["spec"]
    deleting = bool(pod["metadata"].get("deletionTimestamp"))
    init = plan_init(pod, _current(runtime, sandbox), verdict)
    prune = _older_init_instances(spec, runtime)
    ephemeral = () if deleting else _fresh_ephemeral(spec, runtime)
    if init.failed:
        return PodActions(kill_pod=True, sandbox=sandbox, prune_init=prune)
    if not init.done:
        starts = () if deleting else init.start
        return PodActions(sandbox=sandbox, kill=_init_kills(init), ephemeral=ephemeral, init=starts, prune_init=prune)
    kills, starts, kept = _regular(pod, runtime, sandbox, verdict)
    if not kept and not (starts and not deleting):
        return PodActions(kill_pod=True, sandbox=sandbox, prune_init=prune)
    return PodActions(
        sandbox=sandbox,
        kill=(*_init_kills(init), *kills),
        ephemeral=ephemeral,
        init=() if deleting else init.start,
        containers=() if deleting else starts,
        prune_init=prune,
    )


def _fresh_ephemeral(spec: Spec, runtime: PodRuntime) -> tuple[Spec, ...]:
    """Ephemeral containers that never were created: each gets one try only, whatever becomes of it."""
    return tuple(c for c in spec.get("ephemeralContainers") or [] if runtime.latest(c["name"]) is None)


def _current(runtime: PodRuntime, sandbox: Sandbox) -> PodRuntime:
    """The snapshot with the containers of this sandbox only."""
    mine = tuple(c for c in runtime.containers if c.sandbox_id == sandbox.id)
    return PodRuntime(runtime.uid, sandboxes=(sandbox,), containers=mine, observed=runtime.observed)


def _init_kills(init: InitPlan) -> tuple[Kill, ...]:
    return tuple(Kill(c, spec, message, kind) for c, spec, message, kind in init.kill)


def _regular(
    pod: Spec, runtime: PodRuntime, sandbox: Sandbox, verdict: Verdict
) -> tuple[tuple[Kill, ...], tuple[Spec, ...], int]:
    """(instances to kill, containers to start, number that run on)."""
    kills: list[Kill] = []
    starts: list[Spec] = []
    kept = 0
    for container in pod["spec"]["containers"]:
        last = runtime.latest(container["name"])
        if last is None or last.state is not State.RUNNING or last.sandbox_id != sandbox.id:
            if last is not None and last.state is State.UNKNOWN:
                kills.append(Kill(last, container, unknown_message(container["name"])))
            if last is None or last.state is not State.EXITED or restarts_after(pod, container, last.exit_code):
                starts.append(container)
            continue
        kill, again = _running_verdict(pod, container, last, verdict)
        if kill is None:
            kept += 1
            continue
        kills.append(kill)
        if again:
            starts.append(container)
    return tuple(kills), tuple(starts), kept


def unknown_message(name: str) -> str:
    return f'Container "{name}" is in unknown state, try killing it before restart'


def _running_verdict(pod: Spec, container: Spec, last: Container, verdict: Verdict) -> tuple[Kill | None, bool]:
    """(the kill a running container needs, whether it is started again)."""
    name = container["name"]
    again = policy_of(pod, container) != "Never"
    if last.hash and last.hash != container_hash(container):
        return Kill(last, container, f"Container {name} definition changed, will be restarted"), True
    for kind in ("liveness", "startup"):
        if container.get(f"{kind}Probe") and verdict(last, kind) == "failure":
            text = f"Container {name} failed {kind} probe" + (", will be restarted" if again else "")
            return Kill(last, container, text, kind), again
    if verdict(last, "resize") == "failure":
        return Kill(last, container, f"Container {name} resize requires restart"), True
    return None, False


def _older_init_instances(spec: Spec, runtime: PodRuntime) -> tuple[Container, ...]:
    """Exited and unknown init instances but for the newest of each name."""
    return tuple(
        c
        for name in _names(spec.get("initContainers") or [])
        for c in runtime.instances(name)[1:]
        if c.state in (State.EXITED, State.UNKNOWN)
    )


def _names(containers: list[Spec]) -> list[str]:
    return [c["name"] for c in containers]
