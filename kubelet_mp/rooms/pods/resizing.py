"""In-place resize: giving pods what they ask for, in order, and following each until its containers run with it.

A worker's pod carries the resources that the pod has been given; what its object asks for beyond that is its `wish`.
Source: Kubernetes 1.37 pkg/kubelet/allocation; pod-lifecycle.md §11.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from kubelet_mp.model import resize
from kubelet_mp.model.admission import NodeOffer, Rejection, check_fit
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.podspec import lasting_containers
from kubelet_mp.model.resize import Resources
from kubelet_mp.model.resources import swap_limit
from kubelet_mp.model.runtime import State
from kubelet_mp.rooms.pods.env import Outcome, Work
from kubelet_mp.rooms.pods.passes import JITTER, RETRY
from kubelet_mp.rooms.pods.resizepass import ResizePass, Step
from kubelet_mp.rooms.pods.worker import LIVE, Pod, Stage, Worker
from kubelet_mp.wire import messages as m


@dataclass(slots=True)
class Resize:
    """A resize that the pod was given and that is not carried out yet.

    lag: container → (id of its running instance, the resources that this still has). before: what the whole pod had.
    serial: of the last order to the cgroups room; final: that order was for the pod as it is to stay.
    """

    lag: dict[str, tuple[str, Resources]]
    before: dict[str, Resources]
    serial: int = 0
    final: bool = False
    problem: str = ""
    retry_at: float = 0.0  # monotonic s

    def plain(self) -> dict[str, Any]:
        """What of it has to outlive this room."""
        return {"lag": {name: list(entry) for name, entry in self.lag.items()}, "before": self.before}


def taken_up(kept: Mapping[str, Any]) -> Resize | None:
    """The resize of a record, None without one."""
    if not kept:
        return None
    return Resize({name: (entry[0], entry[1]) for name, entry in kept["lag"].items()}, dict(kept["before"]))


class Home(Protocol):
    """What the room does for this."""

    workers: dict[str, Worker]

    def send(self, message: m.Message, to: str = "") -> None: ...
    def pod_event(
        self, pod: Mapping[str, Any], type_: str, reason: str, message: str, field_path: str = ""
    ) -> None: ...
    def touch(self, worker: Worker) -> None: ...


@dataclass(slots=True)
class Resizes:
    """missing: what has to be known before a pod can be judged, "" for nothing. offer, node: what the node offers
    and is; asked only then.
    """

    home: Home
    missing: Callable[[Worker], str]
    offer: Callable[[], NodeOffer]
    node: Callable[[], NodeView]
    _serial: int = field(default=0)

    def take(self, worker: Worker, pod: Pod) -> Pod:
        """A newer object of an admitted pod came: the pod as it is to be kept, what else is asked for being noted."""
        given, before = resize.allocation(worker.pod), worker.wish
        worker.wish = pod if resize.changed(given, resize.allocation(pod)) else None
        if worker.wish is None or before is None or resize.changed(resize.allocation(before), resize.allocation(pod)):
            worker.resize_pending = None
        return pod if worker.wish is None else resize.allocated(pod, given)

    def settle(self) -> None:
        """Give what can be given, to the pods in their order."""
        waiting = [w for w in self.home.workers.values()
                   if w.wish is not None and _can_be_given(w) and not self.missing(w)]
        for worker in sorted(waiting, key=_rank):
            self._judge(worker)

    def _judge(self, worker: Worker) -> None:
        wish = worker.wish
        assert wish is not None
        problem = self._problem(worker, wish)
        if problem is None:
            self._give(worker, wish)
        elif worker.resize_pending is None or worker.resize_pending != problem:
            known = worker.resize_pending
            worker.resize_pending = problem
            self.home.touch(worker)
            if known is None or known[0] != problem[0]:
                text = resize.summary(f"Pod resize {problem[0]}", wish, problem[1])
                self.home.pod_event(wish, "Warning", f"Resize{problem[0]}", text)

    def _problem(self, worker: Worker, wish: Pod) -> tuple[str, str] | None:
        """(Deferred or Infeasible, why), None when the pod can have it."""
        if _swaps(wish, worker.pod, self.node()):
            return resize.INFEASIBLE, "In-place resize of containers with swap is not supported."
        others = [w.pod for w in self.home.workers.values() if w is not worker and not w.orphan and w.stage in LIVE]
        found = check_fit(wish, others, self.offer())
        if found is None:
            return None
        return resize.DEFERRED, found.text if isinstance(found, Rejection) else "other pods would have to be preempted"

    def _give(self, worker: Worker, wish: Pod) -> None:
        before = resize.allocation(worker.pod)
        moved = resize.changed(before, resize.allocation(wish))
        old = worker.resize.lag if worker.resize else {}
        lag = {c.name: old.get(c.name, (c.id, before[c.name])) for c in worker.runtime.containers
               if c.state is State.RUNNING and c.name in before and (c.name in moved or resize.POD in moved)
               and worker.runtime.latest(c.name) is c}
        worker.pod, worker.wish, worker.resize_pending = wish, None, None
        worker.resize = Resize({**old, **lag}, worker.resize.before if worker.resize else before)
        self.home.pod_event(wish, "Normal", "ResizeStarted", resize.summary("Pod resize started", wish))
        self.order(worker)
        self.home.touch(worker)

    # ---- carrying it out ----

    def order(self, worker: Worker) -> None:
        """Have the pod's cgroup made: wide enough for both as long as a container lags, else as it is to stay."""
        assert worker.resize is not None
        self._serial += 1
        worker.resize.serial, worker.resize.final = self._serial, not worker.resize.lag
        self.home.send(prepared(worker))

    def advance(self, worker: Worker) -> None:
        """Forget instances that are gone; end the resize when all is done."""
        at = worker.resize
        if at is None:
            return
        running = {c.id for c in worker.runtime.running_containers}
        at.lag = {name: entry for name, entry in at.lag.items() if entry[0] in running}
        if at.serial == 0 or (not at.lag and not at.final):
            self.order(worker)
        elif at.final and not at.lag and acknowledged(worker):
            worker.resize = None
            self.home.pod_event(worker.pod, "Normal", "ResizeCompleted",
                                resize.summary("Pod resize completed", worker.pod))

    def done(self, worker: Worker, outcome: Outcome, now: float) -> None:
        """A try to carry it out has ended; one that failed is repeated later."""
        at, problem = worker.resize, outcome.problem
        worker.acted = max(worker.acted, outcome.acted)
        self.home.touch(worker)
        if at is None:
            return
        at.retry_at = now + RETRY * (1 + JITTER * random.random()) if problem else 0.0
        if problem and problem != at.problem:
            text = resize.summary("Pod resize error", worker.pod, problem)
            self.home.pod_event(worker.pod, "Warning", "ResizeError", text)
        at.problem = problem


def prepared(worker: Worker) -> m.PodAdmitted:
    """The order to others to prepare the pod, as it is to be for now."""
    at = worker.resize
    if at is None:
        return m.PodAdmitted(worker.uid, worker.pod)
    return m.PodAdmitted(worker.uid, worker.pod if at.final else resize.wider(worker.pod, at.before), at.serial)


def plan(worker: Worker, work: Work, lag: Mapping[str, tuple[str, Resources]]) -> ResizePass:
    """The pass that resizes these containers as they run."""
    assert worker.resize is not None
    steps = [Step(c, *lag[c["name"]]) for c in lasting_containers(worker.pod) if c["name"] in lag]
    others = [c.id for c in worker.runtime.running_containers if c.name not in lag]
    return ResizePass(work, worker.runtime.sandboxes[0].id, steps, worker.resize.before, others)


def resized(worker: Worker, container: str, container_id: str) -> None:
    """An instance has the resources of the spec now."""
    if worker.resize is not None and worker.resize.lag.get(container, ("",))[0] == container_id:
        del worker.resize.lag[container]


def acknowledged(worker: Worker) -> bool:
    """Whether the pod's cgroup stands as it was ordered last."""
    return worker.resize is not None and worker.cgroup_ready() and worker.cgroup is not None and (
        worker.cgroup.serial == worker.resize.serial)


def in_place(worker: Worker) -> dict[str, tuple[str, Resources]]:
    """The lagging containers that are to be resized as they run."""
    return {name: entry for name, entry in worker.resize.lag.items()
            if not restarts(worker, name)} if worker.resize else {}


def restarts(worker: Worker, name: str) -> bool:
    """Whether the lagging container is to be started anew instead."""
    if worker.resize is None or name not in worker.resize.lag:
        return False
    container = next(c for c in lasting_containers(worker.pod) if c["name"] == name)
    return resize.needs_restart(container, worker.resize.lag[name][1], container.get("resources") or {})


def judged(worker: Worker) -> bool:
    """Whether it was decided on what the pod's object asks for."""
    return worker.wish is None or worker.resize_pending is not None


def lagging(worker: Worker) -> dict[str, Resources]:
    """The resources of what has not got those of the spec yet: containers, and the pod as a whole."""
    at = worker.resize
    if at is None:
        return {}
    whole = {resize.POD: at.before[resize.POD]} if resize.POD in at.before else {}
    return {**whole, **{name: old for name, (_, old) in at.lag.items()}}


def conditions(worker: Worker) -> list[dict[str, Any]]:
    """PodResizePending and PodResizeInProgress as far as they hold."""
    found: list[dict[str, Any]] = []
    if worker.resize_pending is not None:
        reason, message = worker.resize_pending
        found.append({"type": resize.PENDING, "status": "True", "reason": reason, "message": message})
    if worker.resize is not None:
        error = {"reason": resize.ERROR, "message": worker.resize.problem} if worker.resize.problem else {}
        found.append({"type": resize.IN_PROGRESS, "status": "True", **error})
    return found


def _can_be_given(worker: Worker) -> bool:
    """Nothing is being started with the old resources right now."""
    return (worker.stage is Stage.ACTIVE and worker.admitted and worker.running is None and worker.confirmed
            and worker.fresh and worker.wanted)


def _rank(worker: Worker) -> tuple[Any, ...]:
    assert worker.wish is not None
    known = worker.status.get("conditions") or ()
    since = next((c.get("lastTransitionTime") or "" for c in known if c["type"] == resize.PENDING), "")
    return resize.rank(worker.wish, resize.allocation(worker.pod), since)


def _swaps(wish: Pod, pod: Pod, node: NodeView) -> bool:
    """Whether a container's memory would change, unrestarted, that may use swap."""
    if not (node.swap_controller and node.unified):
        return False
    before = {c["name"]: c for c in lasting_containers(pod)}
    for container in lasting_containers(wish):
        old = before.get(container["name"])
        if old is None or resize.memory_request(old) == resize.memory_request(container):
            continue
        restart = resize.needs_restart(container, old.get("resources") or {}, container.get("resources") or {})
        if not restart and (swap_limit(wish, container, node) or swap_limit(pod, old, node)):
            return True
    return False
