"""Which init containers and sidecars to start or kill now. Pure.

The walk goes from the last init container to the first: the newest one that ever ran in this sandbox tells
how far the pod has come; before it only sidecars matter. Source: Kubernetes 1.37 pkg/kubelet/kuberuntime
(computeInitContainerActions).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kubelet_mp.model.containerhash import container_hash
from kubelet_mp.model.restartpolicy import is_sidecar, policy_of, restarts_after
from kubelet_mp.model.runtime import Container, PodRuntime, State

Spec = dict[str, Any]
Verdict = Callable[[Container, str], str]
KillItem = tuple[Container, Spec, str, str]  # instance, spec, message, probe kind


@dataclass(slots=True)
class InitPlan:
    """`done`: regular containers may run. `failed`: an init container failed and is not restarted."""

    done: bool = False
    failed: bool = False
    start: tuple[Spec, ...] = ()
    kill: list[KillItem] = field(default_factory=list)


def plan_init(pod: Spec, current: PodRuntime, verdict: Verdict) -> InitPlan:
    """The plan for the instances in `current`, which holds those of the pod's present sandbox only."""
    init = pod["spec"].get("initContainers") or []
    if not init:
        return InitPlan(done=True)
    return _Walk(pod, init, current, verdict).run()


class _Walk:
    def __init__(self, pod: Spec, init: list[Spec], current: PodRuntime, verdict: Verdict) -> None:
        self.pod, self.init, self.current, self.verdict = pod, init, current, verdict
        self.plan = InitPlan()
        self.starts: set[int] = set()

    def run(self) -> InitPlan:
        self.plan.done = self._regular_started()
        passed = self.plan.done  # a later container ran: earlier ones are through
        for index in reversed(range(len(self.init))):
            last = self.current.latest(self.init[index]["name"])
            if is_sidecar(self.init[index]):
                passed = self._sidecar(index, last, passed) or passed
            elif last is not None and not passed:
                self._newest(index, last)
                passed = True
            if self.plan.failed:
                return self.plan
        if not passed:
            self.starts.add(0)
        self.plan.start = tuple(self.init[i] for i in sorted(self.starts))
        return self.plan

    def _regular_started(self) -> bool:
        started = (State.RUNNING, State.EXITED, State.UNKNOWN)
        return any(
            c.state in started for spec in self.pod["spec"]["containers"] for c in self.current.instances(spec["name"])
        )

    def _advance(self, index: int) -> None:
        """Init container `index` is through: the next one may start, after the last one the pod is initialised."""
        if index + 1 < len(self.init):
            self.starts.add(index + 1)
        else:
            self.plan.done = True

    # ---- regular init containers ----

    def _newest(self, index: int, last: Container) -> None:
        container = self.init[index]
        if last.state is State.CREATED:
            self.starts.add(index)
        elif last.state is State.EXITED:
            self._exited(index, last)
        elif last.state is State.UNKNOWN:
            self._kill(last, container, f"Init container {container['name']} is in unknown state")
            self._again(index, policy_of(self.pod, container) != "Never")

    def _exited(self, index: int, last: Container) -> None:
        if last.exit_code == 0 and last.reason != "OOMKilled":
            self._advance(index)
        else:
            self._again(index, restarts_after(self.pod, self.init[index], last.exit_code or 137, init=True))

    def _again(self, index: int, restart: bool) -> None:
        if restart:
            self.starts.add(index)
        else:
            self.plan.failed = True

    # ---- sidecars ----

    def _sidecar(self, index: int, last: Container | None, passed: bool) -> bool:
        """True if this instance shows that the pod had come this far."""
        container = self.init[index]
        if last is None:
            if passed:
                self.starts.add(index)
            return False
        if last.state is State.RUNNING:
            self._running_sidecar(index, container, last, passed)
        else:
            if last.state is State.UNKNOWN:
                self._kill(last, container, f"Init container {container['name']} is in unknown state")
            self.starts.add(index)
        return True

    def _running_sidecar(self, index: int, container: Spec, last: Container, passed: bool) -> None:
        cause, kind = self._sidecar_fault(container, last)
        if cause:
            self._kill(last, container, f"Init container {container['name']} {cause}", kind)
            self.starts.add(index)
        elif not passed and self._started(container, last):
            self._advance(index)

    def _sidecar_fault(self, container: Spec, last: Container) -> tuple[str, str]:
        if last.hash and last.hash != container_hash(container):
            return "definition changed", ""
        for kind in ("startup", "liveness"):
            if container.get(f"{kind}Probe") and self.verdict(last, kind) == "failure":
                return f"failed {kind} probe", kind
        return ("resize requires restart", "") if self.verdict(last, "resize") == "failure" else ("", "")

    def _started(self, container: Spec, last: Container) -> bool:
        return not container.get("startupProbe") or self.verdict(last, "startup") == "success"

    def _kill(self, last: Container, container: Spec, message: str, kind: str = "") -> None:
        self.plan.kill.append((last, container, message, kind))
