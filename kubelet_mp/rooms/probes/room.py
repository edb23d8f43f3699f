"""The probes room: which probes are due for which running containers, and what they say."""

from __future__ import annotations

import random
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from kubelet_mp.host.cri import Runtime
from kubelet_mp.model import clock
from kubelet_mp.model.podspec import host_network, init_containers, regular_containers
from kubelet_mp.model.probes import (
    FAILURE,
    READINESS,
    STARTUP,
    SUCCESS,
    Outcome,
    Probe,
    Tally,
    count,
    probes_of,
    start,
)
from kubelet_mp.model.restartpolicy import is_sidecar
from kubelet_mp.model.runtime import Container, PodRuntime
from kubelet_mp.rooms.base import Room, RoomContext
from kubelet_mp.rooms.probes.handlers import Target, run
from kubelet_mp.rooms.timers import Timer
from kubelet_mp.wire.messages import (
    AdmittedSet,
    Message,
    NodeFacts,
    Pod,
    PodAdmitted,
    PodForgotten,
    PodRuntimeChanged,
    PodStopped,
    PodStopping,
    ProbeNow,
    ProbeResult,
)

MAX_IN_FLIGHT = 512
Key = tuple[str, str, str]  # pod UID, container name, kind


class Worker:
    """One probe of one container instance."""

    def __init__(self, probe: Probe, container: dict[str, Any], container_id: str) -> None:
        self.probe = probe
        self.container = container
        self.container_id = container_id
        self.tally: Tally = start(probe.kind)
        self.timer: Timer | None = None
        self.running = False
        self.reported = False
        self.message = ""


class ProbesRoom(Room):
    """See the package. State: admitted pods, their newest runtime view, a worker per probe."""

    name = "probes"

    def __init__(self, context: RoomContext) -> None:
        super().__init__(context)
        self._pods: dict[str, Pod] = {}
        self._runtimes: dict[str, PodRuntime] = {}
        self._workers: dict[Key, Worker] = {}
        self._stopping: set[str] = set()
        self._node_ips: tuple[str, ...] = ()
        self._born = clock.wall_time()
        self._threads = ThreadPoolExecutor(MAX_IN_FLIGHT, thread_name_prefix="probe")
        kubelet = self.settings.kubelet
        self._runtime = Runtime(kubelet.container_runtime_endpoint, timeout=kubelet.runtime_request_timeout)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def replay(self, room: str) -> None:
        if room == "pods":
            for (uid, _, _), worker in self._workers.items():
                if worker.reported:
                    self._tell(uid, worker, room)

    def handle(self, message: Message) -> None:
        match message:
            case PodAdmitted(uid, pod):
                self._pods[uid] = pod
                self._refresh(uid)
            case PodRuntimeChanged(uid, runtime):
                self._runtimes[uid] = runtime
                self._refresh(uid)
            case PodStopping(uid):
                self._stopping.add(uid)
                self._refresh(uid)
            case PodStopped(uid) | PodForgotten(uid):
                self._drop(uid)
            case AdmittedSet(uids):
                for uid in set(self._pods) - uids:
                    self._drop(uid)
            case ProbeNow(uid, container):
                self._run_now((uid, container, READINESS))
            case NodeFacts():
                self._node_ips = message.addresses

    # ---- which workers there are ----

    def _drop(self, uid: str) -> None:
        self._pods.pop(uid, None)
        self._stopping.discard(uid)
        self._runtimes.pop(uid, None)
        for key in [key for key in self._workers if key[0] == uid]:
            self._end(key)

    def _end(self, key: Key) -> None:
        worker = self._workers.pop(key)
        if worker.timer is not None:
            worker.timer.cancel()

    def _refresh(self, uid: str) -> None:
        """Make the workers fit the pod and its running instances; a new instance starts with a clean tally."""
        pod, runtime = self._pods.get(uid), self._runtimes.get(uid)
        if pod is None or runtime is None or runtime.error:
            return
        wanted = self._wanted(pod, runtime)
        for key in [key for key in self._workers if key[0] == uid]:
            if key not in wanted or wanted[key][2].id != self._workers[key].container_id:
                self._end(key)
        for key, (probe, container, instance) in wanted.items():
            if key not in self._workers:
                self._workers[key] = Worker(probe, container, instance.id)
                self._arm(key, self._first_delay(probe, instance))

    def _wanted(self, pod: Pod, runtime: PodRuntime) -> dict[Key, tuple[Probe, dict[str, Any], Container]]:
        wanted = {}
        stopping = runtime.uid in self._stopping  # sidecars are probed to the end
        for container in [*regular_containers(pod), *(c for c in init_containers(pod) if is_sidecar(c))]:
            instance = runtime.latest(container["name"])
            if instance is None or not instance.running:
                continue
            for probe in probes_of(container):
                if probe.kind == READINESS or not stopping or is_sidecar(container):
                    wanted[(runtime.uid, container["name"], probe.kind)] = (probe, dict(container), instance)
        return wanted

    def _first_delay(self, probe: Probe, instance: Container) -> float:
        """The rest of the initial delay; probes of containers older than this room are spread over a period."""
        started = instance.started_at / clock.NS
        age = max(0.0, clock.wall_time() - started)
        spread = random.random() * probe.period if started < self._born else 0.0
        return max(0.0, probe.initial_delay - age) + spread

    # ---- running them ----

    def _arm(self, key: Key, delay: float) -> None:
        worker = self._workers[key]
        if worker.timer is not None:
            worker.timer.cancel()
        worker.timer = self.timers.after(delay, lambda: self._fire(key, worker))

    def _run_now(self, key: Key) -> None:
        if key in self._workers and not self._workers[key].running:
            self._arm(key, 0.0)

    def _fire(self, key: Key, worker: Worker) -> None:
        if self._workers.get(key) is not worker or worker.running or worker.tally.final:
            return
        self._arm(key, worker.probe.period)
        if not self._may_run(key, worker):
            return
        worker.running = True
        target = Target(worker.container, worker.container_id, self._pod_ip(key[0]))
        future = self._threads.submit(run, worker.probe, target, self._runtime)
        future.add_done_callback(lambda done: self._finished(key, worker, done))

    def _may_run(self, key: Key, worker: Worker) -> bool:
        """Liveness and readiness wait for the startup probe."""
        startup = self._workers.get((key[0], key[1], STARTUP))
        return worker.probe.kind == STARTUP or startup is None or startup.tally.result == SUCCESS

    def _pod_ip(self, uid: str) -> str:
        runtime, pod = self._runtimes[uid], self._pods[uid]
        ips = self._node_ips if host_network(pod) else runtime.ips
        return ips[0] if ips else "127.0.0.1"

    def _finished(self, key: Key, worker: Worker, done: Future[Outcome]) -> None:
        """On the thread of the probe: hand over to the main thread."""
        if not done.cancelled():
            self.post(lambda: self._take(key, worker, done.result()))

    def _take(self, key: Key, worker: Worker, outcome: Outcome) -> None:
        worker.running = False
        if self._workers.get(key) is not worker:
            return
        before, worker.tally = worker.tally, count(worker.probe, worker.tally, outcome)
        worker.message = outcome.message
        self._report_event(key, worker, outcome)
        if worker.tally.result != before.result or (not worker.reported and not outcome.errored):
            worker.reported = True
            self._tell(key[0], worker)
            if worker.probe.kind == STARTUP and worker.tally.result == SUCCESS:
                self._wake_siblings(key)
        if worker.tally.final and worker.timer is not None:
            worker.timer.cancel()

    def _wake_siblings(self, key: Key) -> None:
        for other in self._workers:
            if other[:2] == key[:2] and other != key:
                self._run_now(other)

    # ---- telling ----

    def _tell(self, uid: str, worker: Worker, to: str = "") -> None:
        self.send(ProbeResult(uid, worker.container["name"], worker.container_id, worker.probe.kind,
                              worker.tally.result, worker.message if worker.tally.result == FAILURE else ""), to)

    def _report_event(self, key: Key, worker: Worker, outcome: Outcome) -> None:
        title = worker.probe.kind.capitalize()
        if outcome.errored:
            text = f"{title} probe errored and resulted in unknown state: {outcome.message}"
        elif not outcome.ok:
            text = f"{title} probe failed: {outcome.message}"
        elif outcome.warning:
            text = f"{title} probe warning: {outcome.message}"
        else:
            return
        reason = "ProbeWarning" if outcome.ok else "Unhealthy"
        self.pod_event(self._pods[key[0]], "Warning", reason, text, f"spec.containers{{{key[1]}}}")
