"""The thread that registers the Node and keeps its status true.

Source: Kubernetes 1.37 pkg/kubelet/kubelet_node_status.go.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

from kubelet_mp.errors import ApiError
from kubelet_mp.model import clock
from kubelet_mp.rooms.reporter.duty import Api, DutyContext
from kubelet_mp.rooms.reporter.node import conditions, difference, registration
from kubelet_mp.rooms.reporter.node.loop import LAST, Loop, Steps
from kubelet_mp.rooms.reporter.node.seen import Host, Seen
from kubelet_mp.rooms.reporter.node.status import status

PATIENCE = 5.0  # s that the first pass waits for what the other rooms have to tell
JITTER = 1.04

Node = dict[str, Any]


class StatusWorker:
    """`took(node)`, from this thread, gets each Node that the API server answered with.

    `connected(api)` is called once, as soon as there is a client.
    """

    def __init__(
        self, context: DutyContext, host: Host, *, took: Callable[[Node], None], connected: Callable[[Api], None],
        crashed: Callable[[Exception], None], patience: float = PATIENCE,
    ) -> None:
        self._context, self._settings, self._host = context, context.settings, host
        kubelet = self._settings.kubelet
        self._took, self._connected = took, connected
        self._path = f"/api/v1/nodes/{self._settings.node_name}"
        self._period, self._report = kubelet.node_status_update_frequency, kubelet.node_status_report_frequency
        self._timeout = min(self._period, kubelet.node_lease_duration_seconds)
        self._lock = threading.Lock()
        self._seen, self._node = Seen(), None  # type: tuple[Seen, Node | None]
        self._registered = not kubelet.register_node
        self._look = self._linked = False
        self._patient_until = clock.monotonic() + patience
        self._report_at = 0.0
        self._problem = ""
        self._unschedulable = False
        self._steps = Steps(min(LAST, self._period))
        self._loop = Loop("node-status", self._turn, crashed)

    # ---- from the main thread ----

    def start(self) -> None:
        self._loop.start()

    def close(self) -> None:
        self._loop.close()

    def give(self, seen: Seen, *, now: bool) -> None:
        """What the next pass reports; `now`: that pass is not to wait for its time."""
        with self._lock:
            self._seen = seen
        if now:
            self._loop.wake()

    def know(self, node: Node | None) -> None:
        """The newest Node object (from any thread); None: it was deleted."""
        with self._lock:
            appeared, self._node = node is not None and self._node is None, node
        if appeared:
            self._loop.wake()

    # ---- the thread ----

    def _turn(self) -> float:
        wait = self._patient_until - clock.monotonic()
        if not self._seen.complete and wait > 0:  # a Node that was Ready must not go NotReady for a restart
            return wait
        try:
            self._pass(self._api())
        except ApiError as error:
            return self._failed(error)
        if self._problem:
            self._context.log.info("the status of the Node is written again", node=self._settings.node_name)
        self._problem, self._look = "", False
        self._steps.reset()
        return self._period * random.uniform(1, JITTER)

    def _api(self) -> Api:
        api = self._context.api()
        if not self._linked:
            self._linked = True
            self._connected(api)
        return api

    def _failed(self, error: ApiError) -> float:
        """The next try looks at the Node itself before it writes."""
        self._look = True
        problem = str(error)
        if error.not_found and self._registered:
            problem = f"there is no Node {self._settings.node_name} (fix: restart the agent, which registers it)"
            if not self._settings.kubelet.register_node:
                problem = f"there is no Node {self._settings.node_name} (fix: create it, or set registerNode)"
        if problem != self._problem and not self._loop.closed:
            what = "write the status of" if self._registered else "register"
            self._context.log.error(f"cannot {what} the Node; trying on", node=self._settings.node_name, err=problem)
        self._problem = problem
        return self._steps.next(error.retry_after)

    def _pass(self, api: Api) -> None:
        if not self._registered:
            self._register(api)
        node = self._node
        if node is None or self._look:
            node = self._keep(api.get(self._path, timeout=self._timeout))
        self._write(api, node)

    # ---- registration ----

    def _register(self, api: Api) -> None:
        """Create the Node, or make the one that is there ours. Raises ApiError."""
        wanted = registration.initial(
            self._settings, self._host, status(self._settings, self._host, self._seen, {}, self._now()))
        try:
            self._keep(api.create("/api/v1/nodes", wanted, timeout=self._timeout))
        except ApiError as error:
            if not (error.already_exists or error.forbidden):
                raise
            self._adopt(api, wanted, error)
        else:
            self._tell(wanted["status"]["conditions"], ())
            self._report_at = clock.monotonic() + self._report
        self._registered = True
        self._context.log.info("registered the Node", node=self._settings.node_name)

    def _adopt(self, api: Api, wanted: Node, refused: ApiError) -> None:
        try:
            node = api.get(self._path, timeout=self._timeout)
        except ApiError as error:
            raise (refused if error.not_found else error) from refused
        patch = registration.reconciled(node, wanted, self._settings)
        if patch:
            node = api.patch(f"{self._path}/status", patch, timeout=self._timeout)
        self._keep(node)

    # ---- status ----

    def _write(self, api: Api, node: Node) -> None:
        """Write what changed, or that the node lives when it is time for that. Raises ApiError."""
        old = node.get("status") or {}
        new = status(self._settings, self._host, self._seen, old, self._now())
        patch = difference.of_status(old, new)
        meta = registration.upkeep(node, self._settings, self._host)
        changed = bool(meta) or difference.matters(patch, old)
        self._tell_schedulable(node)
        now = clock.monotonic()
        if not changed and now < self._report_at:
            return
        body = {**({"metadata": meta} if meta else {}), "status": patch}
        self._keep(api.patch(f"{self._path}/status", body, timeout=self._timeout))
        self._report_at = now + self._report * (random.uniform(0.5, 1.5) if changed else 1.0)
        self._tell_boot(old)
        self._tell(new["conditions"], old.get("conditions") or ())

    def _keep(self, node: Node) -> Node:
        """Whoever takes it tells us by `know`, unless a newer one has come by the watch meanwhile."""
        self._took(node)
        return node

    def _now(self) -> str:
        return clock.rfc3339_now(self._context.time)

    # ---- events ----

    def _tell(self, new: list[conditions.Condition], old: Any) -> None:
        for reason in conditions.news(new, old):
            self._event("Normal", reason, f"Node {self._settings.node_name} status is now: {reason}")

    def _tell_boot(self, old: Node) -> None:
        before, boot = (old.get("nodeInfo") or {}).get("bootID"), self._host.identity.boot_id
        if before and before != boot:
            name = self._settings.node_name
            self._event("Warning", "Rebooted", f"Node {name} has been rebooted, boot id: {boot}")

    def _tell_schedulable(self, node: Node) -> None:
        unschedulable = bool((node.get("spec") or {}).get("unschedulable"))
        if unschedulable != self._unschedulable:
            self._unschedulable = unschedulable
            reason = "NodeNotSchedulable" if unschedulable else "NodeSchedulable"
            self._event("Normal", reason, f"Node {self._settings.node_name} status is now: {reason}")

    def _event(self, type_: str, reason: str, message: str) -> None:
        self._context.node_event(type_, reason, message)
