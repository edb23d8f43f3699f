"""A pass: what one pod needs done now, done in a thread of its own. One at a time for each pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubelet_mp.errors import HostError, KubeletError, RuntimeCallError
from kubelet_mp.model import podspec
from kubelet_mp.model.restartpolicy import is_sidecar
from kubelet_mp.model.runtime import Container, PodRuntime, Sandbox
from kubelet_mp.rooms.pods import kill, start
from kubelet_mp.rooms.pods.actions import PodActions
from kubelet_mp.rooms.pods.env import Outcome, Work
from kubelet_mp.rooms.pods.images import StartFailure
from kubelet_mp.rooms.pods.kill import Killer
from kubelet_mp.rooms.pods.slots import Cancelled

RETRY = 10.0  # s after an error, stretched by a jitter
JITTER = 0.5  # of a retry: between 1 and 1.5 times
KILL_RETRY = 2.0


class Pass:
    """Subclasses set `kind` (the operation_type of metrics) and override `work_through`."""

    kind = ""

    def __init__(self, work: Work) -> None:
        self.work = work

    def run(self) -> Outcome:
        """Do it. Never raises for what the runtime, the host or the pod's spec can do wrong."""
        outcome = self.work.outcome
        begun = self.work.env.clock.monotonic()
        try:
            self.work_through()
        except Cancelled:
            outcome.retry = None
        except KubeletError as error:
            busy = start.still_busy(error)
            outcome.problem, outcome.retry = str(error), start.BUSY_RETRY if busy else self.retry_after
        finally:
            self.work.turn.give_back()
            self.work.env.metrics.worker.labels(self.kind).observe(self.work.env.clock.monotonic() - begun)
        return outcome

    retry_after = RETRY

    def work_through(self) -> None:
        raise NotImplementedError

    def shorten(self, grace: int) -> None:
        """Less time for containers that are being stopped."""


@dataclass(slots=True)
class SyncJob:
    """All that a sync pass starts from; `restarts` as in start.Starter."""

    actions: PodActions
    runtime: PodRuntime
    cgroup_parent: str = ""
    volumes: Mapping[str, str] = field(default_factory=dict)
    restarts: Mapping[str, int] = field(default_factory=dict)


class SyncPass(Pass):
    """Kill what must go, create the sandbox, start what is due."""

    kind = "sync"

    def __init__(self, work: Work, job: SyncJob) -> None:
        super().__init__(work)
        self.job = job
        self._killer = Killer(work, ips=job.runtime.ips)

    def work_through(self) -> None:
        actions = self.job.actions
        self._kill()
        self._prune_init(actions.prune_init)
        if actions.create_sandbox:
            place = start.create_sandbox(self.work, actions.attempt, self.job.cgroup_parent)
            self.work.told.sandbox(place.ips)
        elif actions.sandbox is not None and actions.starts:
            place = self._existing(actions.sandbox)
        else:
            return
        self._start_all(place)

    def shorten(self, grace: int) -> None:
        self._killer.shorten(grace)

    # ---- killing ----

    def _kill(self) -> None:
        actions, runtime = self.job.actions, self.job.runtime
        if not actions.kill_pod:
            self._check(self._killer.kill(actions.kill))
            return
        if actions.create_sandbox and runtime.sandboxes:
            self.work.event("Normal", "SandboxChanged",
                            "Pod sandbox changed, it will be killed and re-created.")
        self._check(self._killer.kill(kill.kills_of(runtime.containers)))
        kill.stop_sandboxes(self.work, runtime.sandboxes)

    def _check(self, problems: Sequence[str]) -> None:
        if problems:
            self.work.event("Warning", "FailedKillPod", f"error killing pod: {problems[0]}")
            raise RuntimeCallError(f"cannot stop a container: {problems[0]}")

    def _prune_init(self, instances: Sequence[Container]) -> None:
        for instance in instances:
            kill.remove_container(self.work, instance, logs=False)

    # ---- starting ----

    def _existing(self, sandbox: Sandbox) -> start.Place:
        config = start.plan_sandbox(self.work, sandbox.attempt, self.job.cgroup_parent, sandbox.runtime_handler)
        host = podspec.host_network(self.work.pod)
        ips = self.work.env.node.node_ips if host else (self.job.runtime.ips or sandbox.ips)
        return start.Place(sandbox.id, config, ips, sandbox.runtime_handler)

    def _start_all(self, place: start.Place) -> None:
        running = {c.name: c.id for c in self.job.runtime.running_containers}
        starter = start.Starter(self.work, place, self.job.volumes, self.job.restarts, running)
        for container in self.job.actions.ephemeral:
            self._start(starter, container)
        for container in self.job.actions.init:
            if not self._start(starter, container) and not is_sidecar(container):
                return
        for container in self.job.actions.containers:
            self._start(starter, container)

    def _start(self, starter: start.Starter, container: Mapping[str, Any]) -> bool:
        if self.work.cancel.is_set():
            raise Cancelled
        try:
            starter.start(container)
        except StartFailure as failure:
            self.work.told.reason(container["name"], (failure.reason, failure.message),
                                  RETRY if failure.hold is None else failure.hold)
            return False
        return True


class KillPass(Pass):
    """Stop everything of the pod. `override`: grace in seconds that beats the spec's."""

    kind = "terminating"
    retry_after = KILL_RETRY

    def __init__(self, work: Work, runtime: PodRuntime, override: int | None) -> None:
        super().__init__(work)
        self.runtime = runtime
        self._killer = Killer(work, override, runtime.ips)

    def work_through(self) -> None:
        problems = self._killer.kill(kill.kills_of(self.runtime.containers))
        try:
            kill.stop_sandboxes(self.work, self.runtime.sandboxes)
        except RuntimeCallError as error:
            problems.append(str(error))
        if problems:
            self.work.event("Warning", "FailedKillPod", f"error killing pod: {problems[0]}")
            raise RuntimeCallError(f"cannot stop the pod: {problems[0]}")

    def shorten(self, grace: int) -> None:
        self._killer.shorten(grace)


class PrunePass(Pass):
    """Remove dead instances and old sandboxes of a pod that lives on."""

    kind = "prune"

    def __init__(self, work: Work, containers: Sequence[Container], sandboxes: Sequence[Sandbox]) -> None:
        super().__init__(work)
        self.containers, self.sandboxes = containers, sandboxes

    def work_through(self) -> None:
        for container in self.containers:
            kill.remove_container(self.work, container)
        for sandbox in self.sandboxes:
            kill.remove_sandbox(self.work, sandbox)


class RemovePass(Pass):
    """Remove all traces of a stopped pod from the runtime and its directories from the disk."""

    kind = "terminated"
    retry_after = KILL_RETRY

    def __init__(self, work: Work, runtime: PodRuntime, drop_record: Any) -> None:
        super().__init__(work)
        self.runtime, self._drop_record = runtime, drop_record

    def work_through(self) -> None:
        for container in self.runtime.containers:
            kill.remove_container(self.work, container)
        for sandbox in self.runtime.sandboxes:
            kill.remove_sandbox(self.work, sandbox)
        self.work.turn.give_back()
        self._drop_record()
        if not self.work.env.dirs.remove(self.work.uid):
            raise HostError(f"the directory of pod {self.work.uid} is not empty: something of its volumes is "
                            "still there", "look for mounts below it")
