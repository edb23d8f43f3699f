"""The volumes room."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import ClassVar

from kubelet_mp.config import Settings
from kubelet_mp.errors import HostError
from kubelet_mp.host.cgroupfs import Cgroups, detect
from kubelet_mp.host.mounts import make_shared, mount_table
from kubelet_mp.model import clock
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.podspec import Pod, namespace
from kubelet_mp.rooms.base import Room, RoomContext
from kubelet_mp.rooms.volumes import orphans
from kubelet_mp.rooms.volumes.content.keys import POD_CERTIFICATE, Key
from kubelet_mp.rooms.volumes.content.store import ApiContent, connect
from kubelet_mp.rooms.volumes.dirs import Dirs, is_safe
from kubelet_mp.rooms.volumes.freeing import TakeDowns
from kubelet_mp.rooms.volumes.plan import expires, has_certificates, references
from kubelet_mp.rooms.volumes.setup import SetUps
from kubelet_mp.rooms.volumes.takedown import known_pods
from kubelet_mp.wire.messages import (
    AdmittedSet,
    Message,
    NodeFacts,
    NodeObject,
    PodAdmitted,
    PodForgotten,
    PodFreed,
    PodStopped,
    PodVolumesReady,
)

SWEEP_EVERY, SWEEP_DELAY = 60.0, 2.0  # s
RENEW_EVERY = 5.0  # s between two looks for tokens and certificates that are to be renewed

Connect = Callable[
    [Settings, Callable[[Key], None], Callable[[BaseException], None], Callable[[str, str, str], None]],
    ApiContent | None]
"""Settings, what to call when an object changed, with a fault of ours, and with UID, reason and text of a warning
→ the content; None standalone."""


class VolumesRoom(Room):
    """Sets up in threads, decides on the main thread; the mount table and the directories are its memory."""

    name: ClassVar[str] = "volumes"

    def __init__(
        self, context: RoomContext, *, cgroups: Cgroups | None = None, share_root: bool = True,
        connect: Connect = connect,
    ) -> None:
        super().__init__(context)
        self._share = share_root
        self._dirs = Dirs(os.path.abspath(context.settings.root_dir))
        self._cgroups = cgroups
        self._content = connect(self.settings, self._object_changed, self.fail, self._warn_of)
        self._setups = SetUps(self._dirs, self.timers, tell=self.send, fail=self._failed, post=self.post,
                              ended=self._ended, content=self._content)
        self._takedowns = TakeDowns(self._dirs, self.timers, freed=self._freed, post=self.post,
                                    blocked=self._setups.busy)
        self._again: dict[str, Pod] = {}  # admitted while their take-down runs
        self._suspects = orphans.Suspects()
        self._admitted: AdmittedSet | None = None
        self._facts: NodeFacts | None = None
        self._sweep_set = False

    def start(self) -> None:
        os.makedirs(self._dirs.pods, mode=0o750, exist_ok=True)
        if self._share:
            self._share_root()
        self.timers.every(SWEEP_EVERY, self._sweep, jitter=0.1)
        if self._content is not None:
            self._follow(self._content)

    def close(self) -> None:
        if self._content is not None:
            self._content.close()

    def _share_root(self) -> None:
        """Mounts below the root directory reach containers that ask for them only when it is shared."""
        try:
            make_shared(os.path.realpath(self._dirs.root))
        except HostError as error:
            self.log.warning("mount propagation will not work", err=str(error))

    # ---- messages ----

    def handle(self, message: Message) -> None:
        if isinstance(message, PodAdmitted):
            self._admit(message.uid, message.pod)
        elif isinstance(message, PodStopped):
            self._stop(message.uid, whole=False)
        elif isinstance(message, PodForgotten):
            self._stop(message.uid, whole=True)
        elif isinstance(message, NodeFacts):
            self._facts = message
            self._setups.use(self._view(message))
        elif isinstance(message, NodeObject):
            if self._content is not None:
                self._content.take_node(message.node)
        elif isinstance(message, AdmittedSet):
            self._admitted = message
            self._drop_strangers(message)
            self._sweep_soon(SWEEP_DELAY)

    def replay(self, room: str) -> None:
        if room == "pods":
            for report in self._setups.replay():
                self.send(report, to=room)

    def _view(self, facts: NodeFacts) -> NodeView:
        config = self.settings.kubelet
        return NodeView(
            node_name=self.settings.node_name, node_ips=facts.addresses, root_dir=self.settings.root_dir,
            capacity=facts.capacity, allocatable=facts.allocatable, cgroup_version=facts.cgroup_version,
            cpu_cfs_quota=config.cpu_cfs_quota,
            local_storage_isolation=config.local_storage_capacity_isolation,
        )  # fmt: skip

    # ---- one pod ----

    def _admit(self, uid: str, pod: Pod) -> None:
        if not is_safe(uid):
            self.send(PodVolumesReady(uid, {}, f"the pod's UID {uid!r} cannot be the name of a directory"))
        elif self._takedowns.cancel(uid):
            self._setups.take(uid, pod)
        else:
            self._again[uid] = pod

    def _stop(self, uid: str, *, whole: bool) -> None:
        self._again.pop(uid, None)
        self._setups.drop(uid)
        if is_safe(uid):
            self._takedowns.begin(uid, whole=whole)
        else:
            self.send(PodFreed(uid, self.name))

    def _ended(self, uid: str) -> None:
        self._takedowns.go_on(uid)

    def _freed(self, uid: str, problem: str) -> None:
        pod = self._again.pop(uid, None) if not problem else None
        if pod is not None:
            self._setups.take(uid, pod)
        else:
            self.send(PodFreed(uid, self.name, problem))

    def _failed(self, pod: Pod, text: str) -> None:
        self.pod_event(pod, "Warning", "FailedMount", text)

    # ---- content from the API server ----

    def _follow(self, content: ApiContent) -> None:
        """Write volumes again when something in them is to be renewed, and where nobody tells of changed objects."""
        self.timers.every(RENEW_EVERY, lambda: self._renew(content.due()), jitter=0.1)
        if content.polled:
            self.timers.every(self.settings.kubelet.sync_frequency or RENEW_EVERY, self._read_again, jitter=0.5)

    def _renew(self, due: set[str]) -> None:
        if due:
            self._setups.refresh(lambda uid, _, state: uid in due and expires(state.volume))

    def _read_again(self) -> None:
        self._setups.refresh(lambda _, pod, state: bool(references(state.volume, "")))

    def _object_changed(self, key: Key) -> None:
        """Called in the thread of a watch."""
        if key.kind == POD_CERTIFICATE:
            self.post(lambda: self._setups.refresh(
                lambda uid, _, state: uid == key.name and has_certificates(state.volume)))
        else:
            self.post(lambda: self._setups.refresh(
                lambda _, pod, state: key in references(state.volume, namespace(pod.pod))))

    def _warn_of(self, uid: str, reason: str, text: str) -> None:
        """Called in the thread of a set-up."""
        def send() -> None:
            state = self._setups.pods.get(uid)
            if state is not None:
                self.pod_event(state.pod, "Warning", reason, text)

        self.post(send)

    # ---- what belongs to nobody ----

    def _drop_strangers(self, admitted: AdmittedSet) -> None:
        """Pods of which the end was missed."""
        for uid in [uid for uid in self._setups.pods if admitted.ready and uid not in admitted.uids]:
            self._setups.drop(uid)

    def _sweep_soon(self, delay: float) -> None:
        if not self._sweep_set:
            self._sweep_set = True
            self.timers.after(delay, self._sweep)

    def _sweep(self) -> None:
        """Remove directories of pods that nobody has known for a while and of which nothing runs."""
        self._sweep_set = False
        if self._admitted is None or not self._admitted.ready or self._facts is None:
            return
        try:
            found = known_pods(self._dirs)
        except HostError as error:
            self.log.error("pod directories not listed", err=str(error))
            return
        keep = {*self._admitted.uids, *self._setups.pods, *self._again}
        for uid in self._suspects.look(found, keep, clock.monotonic()):
            self._remove_orphan(uid)
        if self._suspects:
            self._sweep_soon(orphans.PATIENCE)

    def _remove_orphan(self, uid: str) -> None:
        if self._takedowns.has(uid) or self._runs(uid):
            return
        self.log.info("removing an orphaned pod directory", uid=uid)
        self._takedowns.begin(uid, whole=True)

    def _runs(self, uid: str) -> bool:
        if self._facts is None or not self.settings.kubelet.cgroups_per_qos:
            return False
        if self._cgroups is None:
            self._cgroups = Cgroups(detect(mount_table()))
        return orphans.runs(self._cgroups, uid, self._facts.driver, self.settings.kubelet.cgroup_root)


