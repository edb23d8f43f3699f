"""The status of each pod: computed from snapshot and worker, sent when it changed, kept in the record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubelet_mp.host import termination
from kubelet_mp.model.clock import rfc3339_now
from kubelet_mp.model.phase import TERMINAL
from kubelet_mp.model.runtime import PodRuntime, State
from kubelet_mp.model.status import StatusInputs, compute_status, finish_status
from kubelet_mp.rooms.pods import resizing
from kubelet_mp.rooms.pods.actions import sandbox_need
from kubelet_mp.rooms.pods.env import Env
from kubelet_mp.rooms.pods.record import Record, Recorder
from kubelet_mp.rooms.pods.worker import Stage, Worker
from kubelet_mp.wire.messages import Message, PodStatus

PATIENCE = 0.2  # s that a pod waits for something before that alone is worth a message


class Reporting:
    """`runtime_name` is asked each time: it is known only after the runtime's first answer. `listed`: whether the
    runtime was listed once."""

    def __init__(self, env: Env, recorder: Recorder, send: Callable[[Message], None],
                 runtime_name: Callable[[], str], listed: Callable[[], bool]) -> None:
        self._env, self._recorder, self._send = env, recorder, send
        self._runtime_name, self._listed = runtime_name, listed

    def compute(self, worker: Worker) -> None:
        """Bring `worker.status` up to date."""
        if worker.orphan or not worker.pod.get("spec") or self._too_early(worker):
            return
        self._read_messages(worker)
        status = compute_status(_judged(worker), self._view(worker), self._inputs(worker))
        if worker.stage in (Stage.STOPPED, Stage.REMOVING) and (worker.admitted or not worker.static):
            status = finish_status(worker.pod, status, rfc3339_now(self._env.clock))
        worker.status = {**worker.foreign, **status}
        self._count_start(worker)

    def _too_early(self, worker: Worker) -> bool:
        """What was known of its containers stands until the runtime was asked: it must not seem to lose them.

        Of an API pod what is known may be older than what was last written, before this agent started.
        """
        if self._early(worker):
            return True
        known = worker.status.get("containerStatuses")
        return bool(known) and (worker.runtime.observed <= 0 or not self._runtime_name())

    def _view(self, worker: Worker) -> PodRuntime:
        return worker.runtime

    def _inputs(self, worker: Worker) -> StatusInputs:
        settings = self._env.settings
        stopped = worker.stage in (Stage.STOPPED, Stage.REMOVING)
        return StatusInputs(
            now=rfc3339_now(self._env.clock), previous=worker.status, reasons=worker.reasons,
            probes=worker.probes, messages=worker.messages,
            sandbox_problem=sandbox_need(worker.pod, worker.runtime).reason,
            node_ips=self._env.node.node_ips, with_api=not settings.standalone, override=worker.override,
            terminal=stopped, deleting=not worker.wanted, resize=resizing.conditions(worker),
            lagging=resizing.lagging(worker),
            runtime_name=self._runtime_name() or "containerd")

    def _read_messages(self, worker: Worker) -> None:
        """Once for each exited instance: a file of at most 4 KiB, or the end of its log."""
        for container in worker.runtime.containers:
            if container.state is State.EXITED and container.id not in worker.messages:
                worker.messages[container.id] = termination.message(container)

    def _count_start(self, worker: Worker) -> None:
        if worker.ran or worker.status.get("phase") not in ("Running", "Succeeded"):
            return
        worker.ran = True
        if worker.seen:
            seconds = self._env.clock.monotonic() - worker.seen
            self._env.metrics.pod_start.observe(seconds)
            self._env.metrics.pod_start_sli.observe(seconds)

    def send(self, worker: Worker) -> None:
        """Send the status if it, or what the pod waits for, is not what was sent last."""
        if worker.orphan or not worker.pod.get("spec") or (self._early(worker) and not worker.told):
            return
        self._record(worker)
        shown = (worker.pod, self._status(worker), self._terminal(worker))
        if worker.sent == shown:
            if worker.sent_wait == worker.waiting_for:
                return
            age = self._env.clock.monotonic() - worker.since
            if age < PATIENCE:
                worker.wake_by(self._env.clock.monotonic() + PATIENCE - age)
                return
        worker.sent, worker.sent_wait = shown, worker.waiting_for
        self._send(self.message(worker))

    def message(self, worker: Worker) -> PodStatus:
        pod = {**worker.pod, "status": self._status(worker)}
        return PodStatus(worker.uid, pod, worker.source, worker.waiting_for, worker.since, self._terminal(worker))

    def _status(self, worker: Worker) -> dict[str, Any]:
        """Before the first listing that of the API server, where there is one: the record may be older."""
        return worker.told if self._early(worker) and worker.told else worker.status

    def _early(self, worker: Worker) -> bool:
        """An API pod of which only the record and the API server have told so far."""
        return not worker.static and not self._listed()

    def _terminal(self, worker: Worker) -> bool:
        return worker.stage in (Stage.STOPPED, Stage.REMOVING) or (
            worker.stage is Stage.REJECTED and worker.status.get("phase") in TERMINAL)

    def _record(self, worker: Worker) -> None:
        """Admitted pods only: of a rejected one nothing has to be remembered."""
        if worker.admitted and worker.stage is not Stage.REMOVING:
            stopped = worker.stage is Stage.STOPPED
            resize = worker.resize.plain() if worker.resize else {}
            kept = Record(worker.uid, worker.pod, worker.source, True, stopped, worker.status, resize)
            self._recorder.write(kept, urgent=stopped or worker.sent is None or bool(resize))


def _judged(worker: Worker) -> dict[str, Any]:
    """The pod, of the generation up to which was decided what it gets: whoever waits for that looks at this."""
    meta, known = worker.pod["metadata"], worker.status.get("observedGeneration")
    if resizing.judged(worker) or not known:
        return worker.pod
    return {**worker.pod, "metadata": {**meta, "generation": known}}


def pod_of_runtime(runtime: PodRuntime) -> dict[str, Any]:
    """A pod object for what only the runtime knows: enough for events and names."""
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": runtime.name, "namespace": runtime.namespace, "uid": runtime.uid}}
