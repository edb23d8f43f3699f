"""The cgroups room."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import ClassVar

from kubelet_mp.errors import CgroupError, HostError
from kubelet_mp.host import procfs
from kubelet_mp.host.cgroupfs import Cgroups, detect
from kubelet_mp.host.mounts import mount_table
from kubelet_mp.model import clock
from kubelet_mp.model.podspec import describe
from kubelet_mp.rooms.base import Room, RoomContext
from kubelet_mp.rooms.cgroups import addresses, facts
from kubelet_mp.rooms.cgroups.driver import decide
from kubelet_mp.rooms.cgroups.freeing import Freeing
from kubelet_mp.rooms.cgroups.tree import PodTree, check_start, enforce_reserved
from kubelet_mp.wire.messages import (
    AdmittedSet,
    Event,
    Message,
    NodeFacts,
    Pod,
    PodAdmitted,
    PodCgroupReady,
    PodForgotten,
    PodFreed,
    PodStopped,
    RuntimeStateChanged,
)

REFRESH = 60.0  # s
SWEEP_DELAY = 2.0  # s that changes are collected for before orphans are looked for
RETRY = 1.0  # s before a refused pod cgroup is tried again, doubled up to REFRESH
ADDRESS_RETRY = 2.0  # s while the node has no address
FACTS_FOR = ("pods", "volumes", "probes", "http", "reporter")


class CgroupsRoom(Room):
    """Owns the kubepods tree; all cgroup writes happen on its main thread, at once."""

    name: ClassVar[str] = "cgroups"

    def __init__(
        self,
        context: RoomContext,
        *,
        cgroups: Cgroups | None = None,
        machine: Callable[[], procfs.Machine] = procfs.machine,
        find_addresses: Callable[..., tuple[str, ...]] = addresses.current,
    ) -> None:
        super().__init__(context)
        self._cgroups = cgroups or Cgroups(detect(mount_table()))
        self._read_machine, self._find_addresses = machine, find_addresses
        self._tree: PodTree | None = None  # None until the driver is known: everything waits for that
        self._pods: dict[str, Pod] = {}
        self._serials: dict[str, int] = {}
        self._ready: dict[str, PodCgroupReady] = {}
        self._retries: dict[str, float] = {}
        self._freeing: dict[str, Freeing] = {}
        self._admitted: AdmittedSet | None = None
        self._addresses: tuple[str, ...] | None = None
        self._facts: NodeFacts | None = None
        self._driver = ""
        self._hostname = context.settings.hostname or context.settings.node_name
        self._pending: set[str] = set()

    # ---- start: sizes now, driver and addresses as soon as they are known ----

    def start(self) -> None:
        check_start(self._cgroups, self.settings)
        self._machine = self._read_machine()
        size = procfs.filesystem_size(self._existing(self.settings.root_dir))
        self._capacity = facts.capacity(self._machine, size, self.settings)
        facts.allocatable(self._capacity, self.settings)
        threading.Thread(target=self._watch_addresses, name="addresses", daemon=True).start()
        self.timers.every(REFRESH, self._refresh_all, jitter=0.1)

    @staticmethod
    def _existing(path: str) -> str:
        while not os.path.exists(path):
            path = os.path.dirname(path)
        return path

    def _use(self, answer: str) -> None:
        """The runtime told its driver. Raises StartError, which ends the agent."""
        self._driver = decide(self.settings, answer)
        version = self._cgroups.hierarchy.version
        self._tree = PodTree(self._cgroups, facts.node_view(
            self.settings, self._machine, self._capacity, version=version, driver=self._driver))
        self.log.info("cgroups", version=version, driver=self._driver, configured=not answer)
        self._refresh()
        if "pods" in self.settings.kubelet.enforce_node_allocatable:
            self._node_event("NodeAllocatableEnforced", "Updated Node Allocatable limit across pods")
        enforce_reserved(self._cgroups, self.settings, version, self._machine.huge_pages)
        self._tell_facts()
        for uid in list(self._pods):
            self._settle(uid)
        for uid in list(self._freeing):
            self._free(uid)
        self._sweep_soon()

    # ---- facts ----

    def _watch_addresses(self) -> None:
        told = ""
        while not self.stopping.is_set():
            try:
                found = self._find_addresses(self.settings.node_ips, self._hostname)
            except HostError as error:
                found = ()
                if str(error) != told:
                    told = str(error)
                    self.log.error("the node has no address", err=told)
            self.post(lambda found=found: self._take_addresses(found))  # type: ignore[misc]
            self.stopping.wait(REFRESH if found else ADDRESS_RETRY)

    def _take_addresses(self, found: tuple[str, ...]) -> None:
        if found or self._addresses is None:
            self._addresses = found
            self._tell_facts()

    def _tell_facts(self) -> None:
        if self._tree is None or self._addresses is None:
            return
        now = NodeFacts(
            addresses=self._addresses,
            hostname=self._hostname,
            cgroup_version=self._cgroups.hierarchy.version,
            driver=self._driver,
            capacity=facts.public(self._capacity),
            allocatable=facts.public(facts.allocatable(self._capacity, self.settings)),
        )
        if now != self._facts:
            self._facts = now
            self.send(now)

    def _node_event(self, reason: str, message: str) -> None:
        node = self.settings.node_name
        self.send(Event("Node", "", node, node, "Normal", reason, message, clock.wall_time()))

    # ---- messages ----

    def handle(self, message: Message) -> None:
        if isinstance(message, PodAdmitted):
            self._pods[message.uid], self._serials[message.uid] = message.pod, message.serial
            self._freeing.pop(message.uid, None)
            self._settle(message.uid)
            self._refresh_soon()
        elif isinstance(message, PodStopped):
            self._drop(message.uid)
            if message.uid not in self._freeing:
                self._freeing[message.uid] = Freeing(clock.monotonic())
                self._free(message.uid)
        elif isinstance(message, PodForgotten):
            self._drop(message.uid)
            self._sweep_soon()
        elif isinstance(message, AdmittedSet):
            self._admitted = message
            self._drop_strangers(message)
            self._sweep_soon()
        elif isinstance(message, RuntimeStateChanged) and self._tree is None and message.state.driver is not None:
            self._use(message.state.driver)

    def replay(self, room: str) -> None:
        if self._facts is not None and room in FACTS_FOR:
            self.send(self._facts, to=room)
        if room == "pods":
            for ready in list(self._ready.values()):
                self.send(ready, to=room)

    def _drop_strangers(self, admitted: AdmittedSet) -> None:
        """Drop what this set no longer has. A pod admitted after it was sent is dealt with only later."""
        for uid in [uid for uid in self._pods if admitted.ready and uid not in admitted.uids]:
            self._drop(uid)

    def _drop(self, uid: str) -> None:
        self._ready.pop(uid, None)
        self._serials.pop(uid, None)
        self._retries.pop(uid, None)
        if self._pods.pop(uid, None) is not None:
            self._refresh_soon()

    # ---- one pod ----

    def _settle(self, uid: str) -> None:
        """Make the pod's cgroup and say so; when refused, say why and try again later."""
        pod = self._pods.get(uid)
        if self._tree is None or pod is None:
            return
        problem = ""
        try:
            self._tree.ensure(pod)
            self._retries.pop(uid, None)
        except CgroupError as error:
            problem = str(error)
            self._retry_later(uid)
            self.log.error("pod cgroup refused", pod=describe(pod), err=problem)
        self._ready[uid] = PodCgroupReady(uid, self._tree.parent(pod), problem, self._serials.get(uid, 0))
        self.send(self._ready[uid])

    def _retry_later(self, uid: str) -> None:
        delay = self._retries.get(uid, RETRY)
        self._retries[uid] = min(2 * delay, REFRESH)
        self.timers.after(delay, lambda: self._settle(uid) if uid in self._retries else None)

    def _free(self, uid: str) -> None:
        """Remove the pod's cgroup and say so, or try again soon while processes are in it.

        A runtime whose caller died amid RunPodSandbox may leave a sandbox running that it does not know any
        more; as in upstream's, its processes are then killed.
        """
        freeing = self._freeing.get(uid)
        if self._tree is None or freeing is None:
            return
        try:
            held = self._tree.remove(uid)
        except CgroupError as error:
            self.log.error("pod cgroup not removed", uid=uid, err=str(error))
            held = set()
        if held is None:
            del self._freeing[uid]
            self.send(PodFreed(uid, self.name))
            return
        problem = freeing.news(clock.monotonic(), held)
        if problem:
            self.log.warning("pod cgroup not removed", uid=uid, err=problem)
            self.send(PodFreed(uid, self.name, problem))
        if held and freeing.overdue(clock.monotonic()):
            self._tree.kill(uid)
        self.timers.after(freeing.next_delay(), lambda: self._free_again(uid, freeing))

    def _free_again(self, uid: str, freeing: Freeing) -> None:
        """Unless the pod came back, or came back and went again, meanwhile."""
        if self._freeing.get(uid) is freeing:
            self._free(uid)

    # ---- the tree as a whole ----

    def _refresh_soon(self) -> None:
        """QoS values follow the pods, after the pods themselves were served."""
        self._soon("refresh", 0.0, self._refresh)

    def _sweep_soon(self) -> None:
        self._soon("sweep", SWEEP_DELAY, self._sweep)

    def _soon(self, what: str, delay: float, call: Callable[[], None]) -> None:
        """Have `call` run once after `delay`, however often this is asked for meanwhile."""
        if what in self._pending:
            return
        self._pending.add(what)

        def run() -> None:
            self._pending.discard(what)
            call()

        self.timers.after(delay, run)

    def _refresh(self) -> None:
        if self._tree is None:
            return
        try:
            self._tree.refresh(self._pods.values())
        except CgroupError as error:
            self.log.error("kubepods cgroups not refreshed", err=str(error))

    def _refresh_all(self) -> None:
        """Each minute: put back what something else changed or removed."""
        self._refresh()
        for uid, pod in list(self._pods.items()):
            self._heal(uid, pod)
        self._sweep()

    def _heal(self, uid: str, pod: Pod) -> None:
        try:
            changed = self._tree.ensure(pod) if self._tree else []
        except CgroupError:
            self._settle(uid)
            return
        if changed:
            self.log.warning("put a pod's cgroup right", pod=describe(pod), changed=",".join(changed))

    def _sweep(self) -> None:
        """Remove empty cgroups of pods that nobody knows any more."""
        if self._tree is None or self._admitted is None or not self._admitted.ready:
            return
        try:
            gone = self._tree.sweep({*self._admitted.uids, *self._pods, *self._freeing})
        except CgroupError as error:
            self.log.error("orphaned pod cgroup not removed", err=str(error))
            return
        if gone:
            self.log.info("removed orphaned pod cgroups", uids=",".join(gone))
