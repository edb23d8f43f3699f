"""How a pod moves on: called whenever something about it changed, it starts at most one pass."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from kubelet_mp.model import podspec
from kubelet_mp.model.admission import Preemption, Rejection
from kubelet_mp.model.clock import parse_rfc3339
from kubelet_mp.model.runtime import Container, PodRuntime
from kubelet_mp.rooms.pods import decide, resizing
from kubelet_mp.rooms.pods.actions import PodActions, compute_actions
from kubelet_mp.rooms.pods.env import Env, Outcome, Work, field_path
from kubelet_mp.rooms.pods.passes import JITTER, KillPass, Pass, PrunePass, RemovePass, SyncJob, SyncPass
from kubelet_mp.rooms.pods.resizepass import ResizePass
from kubelet_mp.rooms.pods.resizing import Resizes
from kubelet_mp.rooms.pods.slots import Turn
from kubelet_mp.rooms.pods.teller import Teller
from kubelet_mp.rooms.pods.worker import ORPHAN_GRACE, Stage, Worker

UNSEEN_PERIOD = 60.0  # s between two events that a pod's state cannot be told
FREED_BY = frozenset({"cgroups", "volumes"})


class Desk(Protocol):
    """What the room does for a worker; all on the main thread."""

    env: Env

    @property
    def resizes(self) -> Resizes: ...

    def runtime_problem(self) -> str: ...
    def node_problem(self) -> str: ...
    def network_problem(self) -> str: ...
    def occupied(self, worker: Worker) -> bool: ...
    def judge(self, worker: Worker) -> Rejection | Preemption | str | None: ...
    def make_room(self, worker: Worker, verdict: Preemption) -> None: ...
    def admitted(self, worker: Worker) -> None: ...
    def rejected(self, worker: Worker, rejection: Rejection) -> None: ...
    def stop_begins(self, worker: Worker) -> None: ...
    def stopped(self, worker: Worker) -> None: ...
    def finished(self, worker: Worker) -> None: ...
    def forget(self, worker: Worker) -> None: ...
    def relist(self, uid: str) -> None: ...
    def touch(self, worker: Worker) -> None: ...
    def drop_record(self, uid: str) -> Callable[[], None]: ...
    def post(self, call: Callable[[], None]) -> None: ...
    def fail(self, error: BaseException) -> None: ...
    def new_order(self) -> int: ...


class Lifecycle:
    """One for the room; `advance` is called with the worker that changed."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._by_stage: Mapping[Stage, Callable[[Worker, float], None]] = {
            Stage.WAITING: self._waiting, Stage.REJECTED: self._rejected, Stage.ACTIVE: self._active,
            Stage.STOPPING: self._stopping, Stage.STOPPED: self._stopped, Stage.REMOVING: self._removing,
        }

    @property
    def env(self) -> Env:
        return self.desk.env

    def advance(self, worker: Worker) -> None:
        """Do what can be done now, and note in the worker what it waits for."""
        now = self.env.clock.monotonic()
        worker.wake_at = float("inf")
        if worker.running is not None:
            self._while_running(worker, now)
            return
        self._by_stage[worker.stage](worker, now)

    def _move(self, worker: Worker, stage: Stage, now: float) -> None:
        worker.stage, worker.retry_at, worker.problem = stage, 0.0, ""
        if stage is Stage.STOPPING:
            self.desk.stop_begins(worker)
        self._by_stage[stage](worker, now)

    def _while_running(self, worker: Worker, now: float) -> None:
        assert worker.running is not None
        work = worker.running.work
        if worker.stage is Stage.ACTIVE and (not worker.wanted or worker.finished) and not work.cancel.is_set():
            work.cancel.set()
            self.env.starts.wake()
            self.env.images.wake()
        if worker.running.kind in _DOING:
            worker.wait("pass", work.describe_wait() or _DOING[worker.running.kind], now)

    # ---- before admission ----

    def _waiting(self, worker: Worker, now: float) -> None:
        if not worker.wanted or worker.finished:  # one that the API knows as ended is not started again
            self._move(worker, Stage.STOPPING, now)
        elif self.desk.occupied(worker):
            worker.wait("name", "an old pod of the same name to terminate", now)
        else:
            self._ask_for_admission(worker, now)

    def _ask_for_admission(self, worker: Worker, now: float) -> None:
        verdict = self.desk.judge(worker)
        if isinstance(verdict, str):
            worker.wait("admission", verdict, now)
        elif isinstance(verdict, Preemption):
            self.desk.make_room(worker, verdict)
            worker.wait("room", f"{len(verdict.victims)} pods to stop that make room for it", now)
        elif verdict is None:
            worker.admitted, worker.override, worker.victims = True, None, frozenset()
            self.env.metrics.worker_start.observe(now - worker.seen)
            worker.stage = Stage.ACTIVE  # before others are told: who is admitted follows from the stages
            self.desk.admitted(worker)
            self._move(worker, Stage.ACTIVE, now)
        elif worker.stage is not Stage.REJECTED:
            worker.stage = Stage.REJECTED
            self.desk.rejected(worker, verdict)
            worker.wait("room", verdict.message, now)

    def _rejected(self, worker: Worker, now: float) -> None:
        if not worker.wanted:
            self._move(worker, Stage.STOPPING, now)
        elif worker.static and not isinstance(self.desk.judge(worker), (Rejection, str)):
            worker.status, worker.override = {}, None  # it starts as if it were new
            self._move(worker, Stage.WAITING, now)

    # ---- running ----

    def _active(self, worker: Worker, now: float) -> None:
        self._check_deadline(worker, now)
        if not worker.wanted or worker.finished or worker.override:
            worker.order = self.desk.new_order()
            self._move(worker, Stage.STOPPING, now)
            return
        if self._not_yet(worker, now):
            return
        self.desk.resizes.advance(worker)
        actions = compute_actions(worker.pod, worker.runtime, lambda c, kind: _verdict(worker, c, kind))
        actions = decide.hold_back(worker, actions, now, lambda c: self._crashed(worker, c))
        actions = self._what_is_ready(worker, actions, now)
        if actions.idle and not self._resize(worker, now):
            self._settled(worker, actions, now)
        elif not actions.idle:
            self._sync(worker, actions, now)

    def _resize(self, worker: Worker, now: float) -> bool:
        """Begin to resize running containers, if that is due."""
        steps = resizing.in_place(worker)
        if not steps or not resizing.acknowledged(worker):
            return False
        if worker.resize.retry_at > now:
            worker.wake_by(worker.resize.retry_at)
            return False
        self._begin(worker, resizing.plan(worker, self._work(worker), steps))
        return True

    def _not_yet(self, worker: Worker, now: float) -> bool:
        """Something general is missing; the reason is noted."""
        problem = self.desk.runtime_problem()
        if not worker.confirmed:
            worker.wait("sources", "the sources to confirm that the pod is still wanted", now)
        elif problem:
            worker.wait("runtime", f"runtime: {problem}", now)
        elif worker.unseen or not worker.fresh:
            self._ask_for_view(worker, now)
        elif worker.retry_at > now:
            worker.wait("retry", worker.problem, now)
            worker.wake_by(worker.retry_at)
        else:
            return False
        return True

    def _ask_for_view(self, worker: Worker, now: float) -> None:
        """Have pleg look, once for each change of ours."""
        if worker.asked <= worker.acted:
            worker.asked = now
            self.desk.relist(worker.uid)
        if worker.unseen:
            worker.wait("unseen", f"the runtime to tell the pod's state: {worker.unseen}", now)
        elif not worker.reasons:
            worker.wait("view", "the runtime to show what was done last", now)

    def _check_deadline(self, worker: Worker, now: float) -> None:
        limit = podspec.spec(worker.pod).get("activeDeadlineSeconds")
        begun = worker.status.get("startTime")
        if limit is None or not begun or worker.override or not worker.wanted or worker.finished:
            return
        left = int(limit) - (self.env.clock.wall_time_ns() - parse_rfc3339(begun)) / 1e9
        if left > 0:
            worker.wake_by(now + left)
            return
        text = "Pod was active on the node longer than the specified deadline"
        worker.override = ("Failed", "DeadlineExceeded", text)
        self.env.event(worker.pod, "Normal", "DeadlineExceeded", text, "")

    def _crashed(self, worker: Worker, container: Mapping[str, Any]) -> None:
        meta = worker.pod["metadata"]
        text = (f"Back-off restarting failed container {container['name']} in pod "
                f"{meta['name']}_{meta.get('namespace', 'default')}({meta['uid']})")
        self.env.event(worker.pod, "Warning", "BackOff", text, field_path(worker.pod, container["name"]))

    def _what_is_ready(self, worker: Worker, actions: PodActions, now: float) -> PodActions:
        """Without the starts, as long as cgroup, volumes or network are not there."""
        if not (actions.create_sandbox or actions.starts):
            return actions
        kind, missing = self._missing(worker, actions)
        if not kind:
            return actions
        worker.wait(kind, missing, now)
        kill_pod = actions.kill_pod and not actions.create_sandbox
        return replace(actions, kill_pod=kill_pod, create_sandbox=False, ephemeral=(), init=(), containers=())

    def _missing(self, worker: Worker, actions: PodActions) -> tuple[str, str]:
        if self.desk.node_problem():
            return "node", self.desk.node_problem()
        if not worker.cgroup_ready():
            problem = worker.cgroup.problem if worker.cgroup else ""
            return "cgroup", f"cgroup ({problem})" if problem else "cgroup"
        if not worker.volumes_ready():
            return "volumes", _volumes_text(worker)
        network = self.desk.network_problem()
        if network and actions.create_sandbox and not podspec.host_network(worker.pod):
            if worker.waiting_kind != "network":
                self.env.event(worker.pod, "Warning", "NetworkNotReady", f"network is not ready: {network}", "")
            return "network", f"network: {network}"
        return "", ""

    def _settled(self, worker: Worker, actions: PodActions, now: float) -> None:
        keep = self.env.settings.maximum_dead_containers_per_container
        dead = decide.dead_containers(worker.pod, worker.runtime, keep)
        sandboxes = decide.dead_sandboxes(worker.runtime)
        if dead or sandboxes:
            self._begin(worker, PrunePass(self._work(worker), dead, sandboxes))
        if worker.waiting_kind in ("node", "cgroup", "volumes", "network") and self._missing_still(worker):
            return
        kind, text = self._waits_of(worker, now)
        worker.wait(kind, text, now)

    def _missing_still(self, worker: Worker) -> bool:
        return bool(self._missing(worker, PodActions(create_sandbox=True))[0])

    def _waits_of(self, worker: Worker, now: float) -> tuple[str, str]:
        for name, (reason, message) in worker.reasons.items():
            left = max(worker.holds.get(name, now) - now, 0.0)
            if reason == "CrashLoopBackOff":
                return f"crash {name} {message}", f"crash back-off of container {name}: {left:.0f} s left"
            if reason == "ImagePullBackOff":
                error = message.partition(": ")[2] or message
                return f"pull {name}", f"image pull back-off of container {name}: {left:.0f} s left: {error}"
            return f"{reason} {name}", f"container {name}: {reason}: {message}"
        return "", ""

    def _sync(self, worker: Worker, actions: PodActions, now: float) -> None:
        decide.note_starts(worker, actions, now)
        meta = worker.pod["metadata"]
        restarts = decide.restart_counts(worker, actions, lambda name: self.env.dirs.highest_log(
            meta.get("namespace", "default"), meta["name"], worker.uid, name))
        job = SyncJob(actions, worker.runtime, worker.cgroup.parent if worker.cgroup else "",
                      worker.volumes.paths if worker.volumes else {}, restarts)
        self._begin(worker, SyncPass(self._work(worker), job))

    # ---- stopping ----

    def _stopping(self, worker: Worker, now: float) -> None:
        problem = self.desk.runtime_problem()
        if problem:
            worker.wait("runtime", f"runtime: {problem}", now)
        elif not worker.fresh:
            self._ask_for_view(worker, now)
        elif not worker.up:
            self.desk.stopped(worker)
            self._move(worker, Stage.STOPPED, now)
        elif worker.retry_at > now:
            worker.wait("retry", worker.problem, now)
            worker.wake_by(worker.retry_at)
        else:
            grace = ORPHAN_GRACE if worker.orphan else worker.grace
            self._begin(worker, KillPass(self._work(worker), worker.runtime, grace))

    def _stopped(self, worker: Worker, now: float) -> None:
        missing = sorted(FREED_BY - worker.freed)
        if missing:
            worker.wait("freeing", f"{' and '.join(missing)} to be freed", now)
        elif not worker.wanted and (worker.next is not None or not worker.present):
            self._move(worker, Stage.REMOVING, now)
        else:
            self.desk.finished(worker)
            worker.wait("gone" if worker.deleted else "",
                        "the API server to delete its object" if worker.deleted else "", now)

    def _removing(self, worker: Worker, now: float) -> None:
        if worker.retry_at > now:
            worker.wait("retry", worker.problem, now)
            worker.wake_by(worker.retry_at)
            return
        drop = self.desk.drop_record(worker.uid)
        self._begin(worker, RemovePass(self._work(worker), worker.runtime, drop))

    # ---- passes ----

    def _work(self, worker: Worker) -> Work:
        work = Work(self.env, worker.pod, Turn(self.env.starts, worker.order), Teller(self.desk, worker))
        work.turn = Turn(self.env.starts, worker.order, work.cancel)
        return work

    def _begin(self, worker: Worker, a_pass: Pass) -> None:
        worker.running = a_pass
        if a_pass.kind in _DOING:
            worker.wait("pass", _DOING[a_pass.kind], self.env.clock.monotonic())
        self.env.pool.run(lambda: self._run(worker, a_pass))

    def _run(self, worker: Worker, a_pass: Pass) -> None:
        """In the pass's thread. What escapes from it is a fault of ours, and ends the room like any other."""
        try:
            outcome = a_pass.run()
        except BaseException as error:  # noqa: BLE001 - handed to the main thread, which ends by it
            self.desk.fail(error)
            return
        self.desk.post(lambda: self.done(worker, a_pass, outcome))

    def done(self, worker: Worker, a_pass: Pass, outcome: Outcome) -> None:
        """A pass is over: wait for a snapshot that shows what it did, then go on."""
        now = self.env.clock.monotonic()
        worker.running = None
        if isinstance(a_pass, ResizePass):
            self.desk.resizes.done(worker, outcome, now)
            return
        worker.problem = outcome.problem
        worker.retry_at = 0.0 if outcome.retry is None else now + outcome.retry * (1 + JITTER * random.random())
        if outcome.acted:
            worker.acted = max(worker.acted, outcome.acted)
        if isinstance(a_pass, RemovePass) and not outcome.problem:
            self.desk.forget(worker)
            return
        if outcome.problem:
            worker.acted = max(worker.acted, now)  # whatever happened: look before the next try
        self.desk.touch(worker)

    def unseen(self, worker: Worker, runtime: PodRuntime) -> None:
        """The runtime could not tell the pod's state (`runtime.error`): nothing is started on what was known."""
        now = self.env.clock.monotonic()
        if runtime.observed < worker.runtime.observed:
            return
        worker.unseen = runtime.error
        if now - worker.unseen_told >= UNSEEN_PERIOD:
            worker.unseen_told = now
            self.env.event(worker.pod, "Warning", "FailedSync", f"error determining status: {runtime.error}", "")
        self.desk.touch(worker)

    def shorten(self, worker: Worker, grace: int) -> None:
        """The pod is to stop sooner than thought."""
        worker.grace = grace if worker.grace is None else min(worker.grace, grace)
        if worker.running is not None:
            worker.running.shorten(worker.grace)


def _verdict(worker: Worker, container: Container, kind: str) -> str:
    """What is known of an instance: a probe's result, or whether a resize wants it started anew."""
    if kind != "resize":
        return worker.verdict(container, kind)
    return "failure" if resizing.acknowledged(worker) and resizing.restarts(worker, container.name) else ""


_DOING = {"sync": "its containers to be started", "terminating": "its containers to stop",
          "terminated": "its traces to be removed"}


def _volumes_text(worker: Worker) -> str:
    volumes = worker.volumes
    if volumes is None:
        return "volumes"
    names = ", ".join(volumes.pending)
    return f"volumes: {names} ({volumes.problem})" if volumes.problem else f"volumes: {names}"


