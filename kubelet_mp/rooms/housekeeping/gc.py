"""The duty of garbage collection: every minute all pods, and soon after a change the pod that changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kubelet_mp import log
from kubelet_mp.errors import HostError, RuntimeCallError
from kubelet_mp.host.cri import Runtime
from kubelet_mp.host.poddirs import PodDirs
from kubelet_mp.model import clock
from kubelet_mp.model.runtime import State
from kubelet_mp.rooms.housekeeping import logdirs
from kubelet_mp.rooms.housekeeping.crew import Crew
from kubelet_mp.rooms.housekeeping.gcplan import Census, Limits, PodPlan, Standing, plan
from kubelet_mp.rooms.housekeeping.inventory import Inventory
from kubelet_mp.rooms.timers import Timers

PERIOD = 60.0
SOON = 1.0  # s that changes gather before the pods concerned are looked at
Failed = Callable[[str], None]
_log = log.get("housekeeping")


class ContainerGC:
    """Decides on the main thread, removes in a crew of one. failed: told what could not be removed."""

    def __init__(
        self, inventory: Inventory, census: Census, limits: Limits, dirs: PodDirs, runtime: Runtime,
        timers: Timers, failed: Failed,
    ) -> None:
        self._inventory, self._census, self._limits, self._dirs = inventory, census, limits, dirs
        self._runtime, self._timers, self._failed = runtime, timers, failed
        self._crew = Crew("gc", 1)
        self._changed: set[str] = set()
        self.removed_containers = 0
        self.removed_sandboxes = 0

    def start(self) -> None:
        self._timers.every(PERIOD, self.full_pass, jitter=0.1)

    def close(self) -> None:
        self._crew.close()

    def changed(self, uid: str) -> None:
        """Something of this pod has ended, or the pod has."""
        if not self._changed:
            self._timers.after(SOON, self._small_pass)
        self._changed.add(uid)

    def _allowed(self) -> bool:
        return self._census.ready and self._inventory.complete

    def _small_pass(self) -> None:
        uids, self._changed = self._changed, set()
        if self._allowed():
            self._work(self._plans(uids))

    def full_pass(self) -> None:
        """Every pod of the runtime, then logs that belong to none."""
        if not self._allowed():
            return
        directories = logdirs.pods_with_logs(self._dirs.logs)
        present = {pod.uid for pod in self._inventory}
        plans = self._plans(present)
        gone = [path for uid, path in directories.items()
                if uid not in present and self._census.standing(uid) is Standing.GONE]
        self._census.pass_done(present | directories.keys())
        self._work(plans)
        if not self._crew.busy("logs"):
            running = {vessel.id for vessel in self._inventory.running()}
            self._crew.do("logs", lambda: self._clean_logs(gone, running))

    def _plans(self, uids: Iterable[str]) -> list[PodPlan]:
        stocks = [stock for uid in sorted(uids) if (stock := self._inventory.get(uid)) is not None]
        now = clock.wall_time_ns()
        return [found for s in stocks if (found := plan(s, self._census.standing(s.uid), self._limits, now))]

    def _work(self, plans: list[PodPlan]) -> None:
        for one in plans:
            if not self._crew.busy(one.pod.uid):
                self._crew.do(one.pod.uid, lambda one=one: self._carry_out(one))  # type: ignore[misc]

    # ---- in the crew's thread ----

    def _carry_out(self, todo: PodPlan) -> None:
        if self._census.standing(todo.pod.uid) is not Standing.GONE:
            return  # somebody has taken it up meanwhile
        problems = []
        for vessel in todo.vessels:
            try:
                self._remove_container(todo, vessel.id)
            except (RuntimeCallError, HostError) as error:
                problems.append(str(error))
        for box in todo.boxes:
            try:
                self._remove_sandbox(box.id)
            except RuntimeCallError as error:
                problems.append(str(error))
        if problems:
            self._failed(f"pod {todo.pod.namespace}/{todo.pod.name}: {problems[0]}")

    def _remove_container(self, todo: PodPlan, container_id: str) -> None:
        vessel = next(v for v in todo.vessels if v.id == container_id)
        pod, runtime = todo.pod, self._runtime
        if vessel.state is State.UNKNOWN:
            runtime.stop_container(vessel.id, 2)
        self._dirs.remove_container_logs(pod.name, pod.namespace, vessel.name, vessel.id, vessel.log_path)
        runtime.remove_container(vessel.id)
        self.removed_containers += 1
        _log.v(2).info("Removed a dead container", pod=f"{pod.namespace}/{pod.name}", container=vessel.name,
                       id=vessel.id)

    def _remove_sandbox(self, sandbox_id: str) -> None:
        self._runtime.stop_sandbox(sandbox_id)
        self._runtime.remove_sandbox(sandbox_id)
        self.removed_sandboxes += 1

    def _clean_logs(self, directories: list[str], running: set[str]) -> None:
        logdirs.remove_directories(directories)

        def runs(container_id: str) -> bool:
            return bool(container_id) and any(one.startswith(container_id) for one in running)

        logdirs.remove_links(logdirs.dangling_links(self._dirs.links, self._dirs.logs), runs)
