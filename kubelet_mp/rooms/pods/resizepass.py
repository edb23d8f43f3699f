"""Carrying a resize out in the runtime: running containers get other limits as they run.

Source: Kubernetes 1.37 pkg/kubelet/kuberuntime (doPodResizeAction); cri.md §2 and §3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubelet_mp.errors import KubeletError, RuntimeCallError, RuntimeUnimplemented
from kubelet_mp.model.resize import POD, Resources, allocation, memory_limit
from kubelet_mp.model.resources import linux_resources, overhead_resources, sandbox_resources
from kubelet_mp.rooms.pods.env import Work
from kubelet_mp.rooms.pods.passes import Pass

_NOT_IMPLEMENTED = "not implemented"


@dataclass(frozen=True, slots=True)
class Step:
    """One running container, and the resources that it has now."""

    container: Mapping[str, Any]
    id: str
    old: Resources

    @property
    def growth(self) -> float:
        """By how many bytes its memory limit grows; those that shrink go first."""
        limits = [memory_limit(one) for one in (self.container.get("resources"), self.old)]
        new, old = (float("inf") if one is None else one for one in limits)
        return 0 if new == old else new - old


class ResizePass(Pass):
    """The pod's cgroup is wide enough for both already. others: ids of its other running containers."""

    kind = "sync"

    def __init__(self, work: Work, sandbox_id: str, steps: Sequence[Step], before: Mapping[str, Resources],
                 others: Sequence[str]) -> None:
        super().__init__(work)
        self._sandbox_id, self._steps, self._before, self._others = sandbox_id, steps, before, others

    def work_through(self) -> None:
        self._check_memory()
        self._tell_sandbox()
        for step in sorted(self._steps, key=lambda step: step.growth):
            resources = linux_resources(self.work.pod, step.container, self.work.env.node)
            try:
                self.work.env.runtime.update_container(step.id, resources)
            finally:
                self.work.acted()
            self.work.told.resized(step.container["name"], step.id)

    def _check_memory(self) -> None:
        """Whoever uses more than the new limit would be killed for it. Raises KubeletError."""
        problems = []
        for step in self._steps:
            new = memory_limit(step.container.get("resources"))
            if new is not None and step.growth < 0 and (used := self._usage(step.id)) >= new:
                problems.append(f'attempting to set container "{step.container["name"]}" memory limit ({new}) below '
                                f"current usage ({used})")
        problems += self._check_pod()
        if problems:
            text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            raise KubeletError(f"cannot decrease memory limits: {text}")

    def _check_pod(self) -> list[str]:
        new, old = memory_limit(allocation(self.work.pod).get(POD)), memory_limit(self._before.get(POD))
        if new is None or (old is not None and new >= old):
            return []
        used = sum(self._usage(one) for one in (*(step.id for step in self._steps), *self._others))
        return [f"attempting to set pod memory limit ({new}) below current usage ({used})"] if used >= new else []

    def _usage(self, container_id: str) -> int:
        """Bytes; 0 where the runtime cannot tell."""
        return self.work.env.runtime.container_use(container_id).usage or 0

    def _tell_sandbox(self) -> None:
        pod, node = self.work.pod, self.work.env.node
        try:
            self.work.env.runtime.update_sandbox(self._sandbox_id, overhead_resources(pod, node),
                                                 sandbox_resources(pod, node))
        except RuntimeUnimplemented:
            return
        except RuntimeCallError as error:
            if _NOT_IMPLEMENTED not in error.message:
                raise
