"""The pods room: takes messages, keeps one worker a pod, sends what others have to know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from kubelet_mp.host import files
from kubelet_mp.model import clock as clocks
from kubelet_mp.model import podupdate
from kubelet_mp.model.admission import Preemption, Rejection
from kubelet_mp.model.backoff import INITIAL, Backoff
from kubelet_mp.model.runtime import PodRuntime
from kubelet_mp.rooms.base import Room, RoomContext
from kubelet_mp.rooms.pods import gate, record
from kubelet_mp.rooms.pods.alarm import Alarm
from kubelet_mp.rooms.pods.assembly import build, follow_services
from kubelet_mp.rooms.pods.desired import Desired, adopt
from kubelet_mp.rooms.pods.facts import Facts
from kubelet_mp.rooms.pods.gauges import show
from kubelet_mp.rooms.pods.lifecycle import Lifecycle
from kubelet_mp.rooms.pods.nodelook import NodeLook
from kubelet_mp.rooms.pods.preempt import make_room
from kubelet_mp.rooms.pods.reporting import Reporting, pod_of_runtime
from kubelet_mp.rooms.pods.resizing import Resizes, prepared, taken_up
from kubelet_mp.rooms.pods.surroundings import Surroundings
from kubelet_mp.rooms.pods.worker import NEVER, Pod, Stage, Worker
from kubelet_mp.rooms.timers import Timers
from kubelet_mp.wire import messages as m

COUNTDOWN = 5.0  # s between two refreshes of "… s left"
DRAIN = 5.0  # s that heavy runtime calls get to end at a stop
REMEMBERED = 600.0  # s that a removed pod's UID is kept, to know late snapshots of it


class PodsRoom(Room):
    """Extra arguments are for tests: a clock, clients of runtime and API server, where log links go."""

    name: ClassVar[str] = "pods"

    def __init__(self, context: RoomContext, *, clock: clocks.Clock = clocks.SYSTEM, runtime: Any = None,
                 links: str = "/var/log/containers", api: Any = None) -> None:
        super().__init__(context)
        self.clock = clock
        self.timers = Timers(clock.monotonic)
        self.workers: dict[str, Worker] = {}
        self.runtimes: dict[str, PodRuntime] = {}
        self.around = Surroundings(self.settings)
        self._removed: dict[str, float] = {}
        self.resizes = Resizes(self, self.around.admission_problem, self.around.offer, lambda: self.env.node)
        self.desired = Desired(self, self._removed)
        self._orders = 0
        self._dirty: dict[str, None] = {}
        self._alarm = Alarm(self.timers, clock.monotonic, self._wake_due)
        self._given_runtime, self._links, self._given_api = runtime, links, api

    # ---- start and end ----

    def start(self) -> None:
        self.env = build(self.settings, self.clock, self._given_runtime, self._links, self.pod_event,
                         self._given_api)
        follow_services(self.env, self.timers, self.fail)
        self.recorder = record.Recorder(f"{self.settings.root_dir}/pods")
        self.lifecycle = Lifecycle(self)
        self.nodelook = NodeLook(self.env, self.post, self._node_looked)
        self.reporting = Reporting(self.env, self.recorder, self.send, self.around.runtime_name,
                                   lambda: self.around.listed is not None)
        self.facts = Facts(self.workers, self.reporting, self._strangers, self._complete)
        self._load_records()
        self.timers.every(self.settings.kubelet.sync_frequency, self._resync, jitter=0.5)
        self.timers.every(COUNTDOWN, self._refresh_countdowns)

    def close(self) -> None:
        if self.stopping.is_set() and not self.env.starts.drain(DRAIN):
            self.log.warning("runtime calls did not end in time and are given up")
        if hasattr(self, "recorder"):
            self.recorder.close()
        if self.env.content is not None:
            self.env.content.close()

    def metrics_text(self) -> str:
        show(self.env.metrics, self.workers.values())
        return self.env.metrics.text()

    def _load_records(self) -> None:
        records, problems = record.load_all(f"{self.settings.root_dir}/pods")
        for path, problem in problems:
            self.log.error("a pod's record cannot be used: its restart counts begin anew", file=path, err=problem)
        for kept in records:
            worker = self.add(kept.uid, kept.pod, kept.source, stage=gate.stage_of(kept), confirmed=False,
                               admitted=kept.admitted, status=kept.status, override=gate.override_of(kept), ran=True)
            worker.seen, worker.resize = 0.0, taken_up(kept.resize)
            stopped = worker.stage is Stage.STOPPED
            self.send(m.PodStopped(kept.uid, kept.pod) if stopped else prepared(worker))

    def add(self, uid: str, pod: Pod, source: str, **fields: Any) -> Worker:
        limit = self.settings.kubelet.crash_loop_back_off.max_container_restart_period
        rank = self.new_order()
        worker = Worker(uid, pod, source, rank, rank, self._runtime_of(uid), Backoff(INITIAL, limit),
                        seen=self.clock.monotonic(), **fields)
        self.workers[uid] = worker
        self.touch(worker)
        return worker

    def _runtime_of(self, uid: str) -> PodRuntime:
        known = self.runtimes.get(uid)
        return known or PodRuntime(uid, observed=self.around.listed or 0.0)

    # ---- messages ----

    def handle(self, message: m.Message) -> None:
        handler = self._HANDLERS.get(type(message))
        if handler is not None:
            handler(self, message)

    def _on_desired(self, message: m.DesiredPod) -> None:
        self.desired.take_pod(message)

    def _on_desired_set(self, message: m.DesiredSet) -> None:
        self.desired.take_set(message)
        self._find_orphans()
        self.tell_sets()

    def _on_runtime(self, message: m.PodRuntimeChanged) -> None:
        runtime, worker = message.runtime, self.workers.get(message.uid)
        if runtime.error:
            if worker is not None:
                self.lifecycle.unseen(worker, runtime)
            return
        if runtime.empty:
            self.runtimes.pop(message.uid, None)
        else:
            self.runtimes[message.uid] = runtime
        if worker is not None:
            worker.take_runtime(runtime, self.clock.monotonic(), self.clock.wall_time_ns())
            self.touch(worker)
        else:
            self._find_orphans()
            self.tell_sets()

    def _on_relist(self, message: m.RelistDone) -> None:
        first = self.around.listed is None
        changed = self.around.take_relist(message)
        for worker in self.workers.values():
            if worker.uid not in message.uids and not (worker.fresh and worker.runtime.empty):
                empty = PodRuntime(worker.uid, observed=message.began)
                worker.take_runtime(empty, self.clock.monotonic(), self.clock.wall_time_ns())
                self.touch(worker)
            elif changed:
                self.touch(worker)
        self.runtimes = {uid: r for uid, r in self.runtimes.items()
                         if uid in message.uids or r.observed > message.began}
        if first:
            self._find_orphans()
            self.tell_sets()

    def _on_state(self, message: m.RuntimeStateChanged) -> None:
        if message.state.ready and not (self.around.state and self.around.state.ready):
            for worker in self.workers.values():
                worker.retry_at = 0.0  # what failed because the runtime was down is due at once
        self.around.state = message.state
        self._read_node()
        self._touch_all()

    def _on_facts(self, message: m.NodeFacts) -> None:
        self.around.facts = message
        self._read_node()
        self._touch_all()

    def _on_node(self, message: m.NodeObject) -> None:
        if self.around.take_node(message.node):
            self._read_node()
            self._room_is_free()

    def _node_looked(self, worker: Worker, found: dict[str, Any] | None) -> None:
        if found is not None:
            self._on_node(m.NodeObject(found))
        self.touch(worker)

    def _read_node(self) -> None:
        try:
            self.env.node = self.around.view()
        except files.FileError as error:
            self.log.error("the resolver file for pods cannot be read", err=str(error))
            self.timers.after(10.0, self._read_node)

    def _on_cgroup(self, message: m.PodCgroupReady) -> None:
        worker = self.workers.get(message.uid)
        if worker is None:
            return
        before = worker.cgroup.problem if worker.cgroup else ""
        worker.cgroup = message
        if message.problem and message.problem != before:
            self.pod_event(worker.pod, "Warning", "FailedCreatePodContainer",
                           f"unable to ensure pod container exists: {message.problem}")
        self.touch(worker)

    def _on_volumes(self, message: m.PodVolumesReady) -> None:
        worker = self.workers.get(message.uid)
        if worker is not None:
            worker.volumes = message
            self.touch(worker)

    def _on_freed(self, message: m.PodFreed) -> None:
        worker = self.workers.get(message.uid)
        if worker is None or worker.stage is not Stage.STOPPED:
            return
        if message.problem:
            worker.freed.discard(message.room)
            self.log.warning("a pod is not freed yet", pod=worker.name, room=message.room, err=message.problem)
        else:
            worker.freed.add(message.room)
        self.touch(worker)

    def _on_probe(self, message: m.ProbeResult) -> None:
        worker = self.workers.get(message.uid)
        if worker is not None:
            worker.probes[(message.container_id, message.kind)] = message.result
            self.touch(worker)

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        m.DesiredPod: _on_desired, m.DesiredSet: _on_desired_set, m.PodRuntimeChanged: _on_runtime,
        m.RelistDone: _on_relist, m.RuntimeStateChanged: _on_state, m.NodeFacts: _on_facts,
        m.PodCgroupReady: _on_cgroup, m.PodVolumesReady: _on_volumes, m.PodFreed: _on_freed,
        m.ProbeResult: _on_probe, m.NodeObject: _on_node,
    }

    def _strangers(self) -> set[str]:
        """Pods that run, whether they have a worker or not."""
        return {uid for uid, runtime in self.runtimes.items() if runtime.running_containers}

    def _complete(self) -> bool:
        return self.desired.ready and self.around.listed is not None

    def _find_orphans(self) -> None:
        """Pods in the runtime that nobody wants, once that is certain."""
        if not self._complete():
            return
        for uid, runtime in list(self.runtimes.items()):
            if uid in self.workers or uid in self.desired.uids or runtime.observed <= self._removed.get(uid, 0.0):
                continue
            self.log.info("stopping a pod that only the runtime knows", uid=uid, pod=runtime.name)
            self.env.metrics.orphans.inc()
            worker = self.add(uid, pod_of_runtime(runtime), "", stage=Stage.STOPPING, orphan=True, wanted=False,
                              present=False)
            worker.take_runtime(runtime, self.clock.monotonic(), self.clock.wall_time_ns())

    # ---- what the lifecycle asks for ----

    def new_order(self) -> int:
        self._orders += 1
        return self._orders

    def runtime_problem(self) -> str:
        return self.around.runtime_problem()

    def node_problem(self) -> str:
        return self.around.node_problem()

    def network_problem(self) -> str:
        return self.around.network_problem()

    def occupied(self, worker: Worker) -> bool:
        return gate.occupied(worker, self.workers.values())

    def judge(self, worker: Worker) -> gate.Verdict:
        missing = self.around.admission_problem(worker)
        if missing:
            return missing
        return self.nodelook.confirm(worker, gate.judge_worker(worker, self.workers, self.around.offer()))

    def make_room(self, worker: Worker, verdict: Preemption) -> None:
        make_room(worker, verdict, self.workers, self.env, self.touch)

    def admitted(self, worker: Worker) -> None:
        self.send(m.PodAdmitted(worker.uid, worker.pod))
        self.tell_sets()

    def rejected(self, worker: Worker, rejection: Rejection) -> None:
        worker.override = ("Failed", rejection.reason, rejection.message)
        self.env.metrics.rejections.labels(rejection.reason).inc()
        self.pod_event(worker.pod, "Warning", rejection.reason, rejection.message)

    def stop_begins(self, worker: Worker) -> None:
        self.send(m.PodStopping(worker.uid))

    def stopped(self, worker: Worker) -> None:
        worker.freed.clear()
        self.send(m.PodStopped(worker.uid, None if worker.orphan else worker.pod))
        self._room_is_free()

    def finished(self, worker: Worker) -> None:
        """Tell the reporter of each object of an API pod once that all of the pod is freed."""
        told = worker.finish_told
        if not worker.static and (told is None or podupdate.changed(told, worker.pod)):
            worker.finish_told = {**worker.pod, "status": worker.status}
            self.send(m.PodFinished(worker.uid, worker.finish_told))

    def shorten(self, worker: Worker, grace: int) -> None:
        self.lifecycle.shorten(worker, grace)

    def _room_is_free(self) -> None:
        for other in self.workers.values():
            if other.stage in (Stage.REJECTED, Stage.WAITING):
                self.touch(other)

    def forget(self, worker: Worker) -> None:
        del self.workers[worker.uid]
        now = self.clock.monotonic()
        for uid in [uid for uid, at in self._removed.items() if now - at >= REMEMBERED]:
            del self._removed[uid]
        self._removed[worker.uid] = max(worker.acted, now)
        self.runtimes.pop(worker.uid, None)
        if self.env.content is not None:
            self.env.content.drop(worker.uid)
        self.send(m.PodForgotten(worker.uid))
        if worker.next is not None:
            self.env.metrics.restarted_pods.labels("true" if worker.static else "").inc()
            again = self.add(worker.uid, *worker.next)
            again.acted = self._removed[worker.uid]
            adopt(again, *worker.next)
        self._room_is_free()
        self.tell_sets()

    def drop_record(self, uid: str) -> Callable[[], None]:
        def drop() -> None:
            self.recorder.drop(uid)
            self.recorder.settle(uid, 5.0)

        return drop

    def relist(self, uid: str) -> None:
        self.send(m.RelistPod(uid))

    # ---- the turn of the main thread ----

    def touch(self, worker: Worker) -> None:
        """Have the worker looked at soon, once however much changed."""
        if not self._dirty:
            self.post(self._work_dirty)
        self._dirty[worker.uid] = None

    def _touch_all(self) -> None:
        for worker in self.workers.values():
            self.touch(worker)

    def _work_dirty(self) -> None:
        dirty, self._dirty = self._dirty, {}
        self.resizes.settle()
        workers = [self.workers[uid] for uid in dirty | self._dirty if uid in self.workers]
        for worker in sorted(workers, key=lambda w: (w.stage is Stage.WAITING, w.created, w.order)):
            self.reporting.compute(worker)
            before = worker.mark()
            self.lifecycle.advance(worker)
            if before != worker.mark():
                self.reporting.compute(worker)
            self.reporting.send(worker)
        self.tell_sets()
        self._set_alarm()

    def _set_alarm(self) -> None:
        self._alarm.set(min((w.wake_at for w in self.workers.values()), default=NEVER))

    def _wake_due(self) -> None:
        now = self.clock.monotonic()
        for worker in self.workers.values():
            if worker.wake_at <= now:
                self.touch(worker)

    def _resync(self) -> None:
        """Heals what an event missed: looks at every pod, and asks again for snapshots that did not come."""
        for worker in self.workers.values():
            if not worker.fresh:
                self.relist(worker.uid)
            worker.backoff.prune(self.clock.monotonic())
            self.touch(worker)

    def _refresh_countdowns(self) -> None:
        for worker in self.workers.values():
            if " s left" in worker.waiting_for or worker.running:
                self.touch(worker)

    # ---- facts for the other rooms ----

    def replay(self, room: str) -> None:
        for message in self.facts.of_room(room):
            self.send(message, to=room)

    def tell_sets(self) -> None:
        for message in self.facts.news():
            self.send(message)
