"""The duty that writes each pod's status to the API server, and deletes the pods that are finished there.

Source: Kubernetes 1.37 pkg/kubelet/status (status_manager.go).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kubelet_mp.errors import ApiError
from kubelet_mp.model.phase import TERMINAL
from kubelet_mp.rooms.reporter import statuspatch
from kubelet_mp.rooms.reporter.apiview import ApiView, Status
from kubelet_mp.rooms.reporter.duty import Api, DutyContext
from kubelet_mp.rooms.reporter.keyed import Keyed
from kubelet_mp.rooms.reporter.mirrors import MIRROR, hash_of
from kubelet_mp.wire import messages as m

THREADS = 8
RECONCILE = 10.0  # s between two corrections of a status that somebody else keeps changing
SAID_FROM = 1.0  # s until the next try, from which on a failure is worth a line
API = "api"


@dataclass(slots=True)
class Entry:
    """What is to be written of one pod. `status` is empty until it is known.

    target: the UID that the pod has in the API (that of the mirror for a static pod), "" while there is none.
    terminal: no container runs and none will. finished: it is to be deleted once its phase there is terminal.
    reconciled: monotonic time of the last correction.
    """

    uid: str
    target: str
    namespace: str
    name: str
    static: bool
    status: Status = field(default_factory=dict)
    terminal: bool = False
    finished: bool = False
    reconciled: float = float("-inf")

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"

    def changes(self, have: Mapping[str, Any]) -> dict[str, Any]:
        """The patch of the status if the API server has `have`; empty if there is nothing to write."""
        if not self.status.get("phase"):
            return {}
        return statuspatch.patch(statuspatch.told(self.status, have, self.terminal, static=self.static), have)


class PodStatuses:
    """The newest status of each pod wins; writing one pod never waits for another."""

    def __init__(self, context: DutyContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._mirrors: dict[str, tuple[str, str]] = {}  # UID of a static pod → full name and UID of its mirror
        self._view = ApiView()
        self._doubtful: set[str] = set()
        self._troubled: set[str] = set()
        self._keyed = Keyed("pod-status", THREADS, self._sync, failed=self._failed, crashed=context.fail)
        self._handlers: Mapping[type[m.Message], Callable[[Any], None]] = {
            m.PodStatus: self._on_status, m.PodFinished: self._on_finished, m.DesiredPod: self._on_told,
            m.DesiredSet: self._on_set, m.MirrorPod: self._on_mirror,
            m.PodForgotten: lambda message: self._drop({message.uid}),
            m.StatusSet: lambda message: self._drop(self._entries.keys() - message.uids),
        }

    def start(self) -> None:
        """Threads start with the first pod."""
        self._context.timers.every(RECONCILE, self._reconcile_late, jitter=0.1)

    def close(self) -> None:
        self._keyed.close()

    def replay(self, room: str) -> None:
        """Nobody is told anything from here."""

    # ---- on the main thread ----

    def handle(self, message: m.Message) -> None:
        if handler := self._handlers.get(type(message)):
            handler(message)

    def _on_status(self, message: m.PodStatus) -> None:
        status = message.pod.get("status") or {}
        with self._lock:
            entry = self._entry(message.uid, message.pod["metadata"], message.source)
            if entry.status == status and entry.terminal == message.terminal:
                return  # only what it waits for has changed
            entry.status, entry.terminal = status, message.terminal
        self._keyed.ask(message.uid)

    def _on_finished(self, message: m.PodFinished) -> None:
        meta = message.pod["metadata"]
        with self._lock:
            entry = self._entry(message.uid, meta, API)
            if not entry.status:
                entry.status, entry.terminal = message.pod.get("status") or {}, True
            entry.finished = bool(meta.get("deletionTimestamp"))
        self._keyed.ask(message.uid)

    def _entry(self, uid: str, meta: Mapping[str, Any], source: str) -> Entry:
        if uid not in self._entries:
            static = source != API
            target = self._mirror_uid(uid) if static else uid
            self._entries[uid] = Entry(uid, target, str(meta.get("namespace", "default")), str(meta["name"]), static)
        return self._entries[uid]

    def _drop(self, uids: set[str]) -> None:
        with self._lock:
            for uid in uids:
                self._entries.pop(uid, None)
            self._troubled -= uids
            self._doubtful -= uids

    # ---- what the API server has ----

    def _on_told(self, message: m.DesiredPod) -> None:
        if message.source == API and message.pod is not None:
            self._seen(message.uid, message.pod)

    def _on_mirror(self, message: m.MirrorPod) -> None:
        static = hash_of(message.mirror, MIRROR) if message.mirror is not None else ""
        with self._lock:
            self._mirrors = {uid: known for uid, known in self._mirrors.items() if known[0] != message.name}
            if static:
                self._mirrors[static] = (message.name, message.uid)
            changed = [one for one in self._entries.values() if one.static and one.target != self._mirror_uid(one.uid)]
            for entry in changed:
                entry.target = self._mirror_uid(entry.uid)
        if message.mirror is not None:
            self._seen(static, message.mirror)
        for entry in changed:
            self._keyed.ask(entry.uid)

    def _mirror_uid(self, static: str) -> str:
        return self._mirrors.get(static, ("", ""))[1]

    def _on_set(self, message: m.DesiredSet) -> None:
        if message.ready:
            with self._lock:
                targets = {entry.target for entry in self._entries.values()}
                self._view.keep({*message.uids, *targets, *(uid for _, uid in self._mirrors.values())})

    def _seen(self, uid: str, pod: Mapping[str, Any]) -> None:
        """If somebody else wrote it, ours is written again; `uid` is our own pod's."""
        with self._lock:
            entry, before = self._entries.get(uid), self._view.status(pod["metadata"]["uid"])
            if not self._view.take(pod) or entry is None or not entry.changes(pod.get("status") or {}):
                return
        if before is None or entry.changes(before):
            self._keyed.ask(uid)  # ours was still to be written anyway
        else:
            self._reconcile(uid, entry)

    def _reconcile(self, uid: str, entry: Entry) -> None:
        """At once, but two that fight over a status shall not do so at full speed."""
        now = self._context.time.monotonic()
        if now - entry.reconciled < RECONCILE:
            self._doubtful.add(uid)
            return
        entry.reconciled = now
        self._keyed.ask(uid)

    def _reconcile_late(self) -> None:
        doubtful, self._doubtful = self._doubtful, set()
        for uid in doubtful & self._entries.keys():
            self._entries[uid].reconciled = self._context.time.monotonic()
            self._keyed.ask(uid)

    # ---- in the threads ----

    def _sync(self, uid: str) -> None:
        with self._lock:
            found = self._entries.get(uid)
            if found is None or not found.status or not found.target:
                return
            entry, have = replace(found), self._view.status(found.target)
        api = self._context.api()
        try:
            status = self._written(api, entry, have)
            if entry.finished and status.get("phase") in TERMINAL:
                self._delete(api, entry)
        except ApiError as error:
            with self._lock:
                self._view.forget(entry.target)  # who knows what came of it: look before the next try
            if not error.not_found:
                raise
        with self._lock:
            self._troubled.discard(uid)

    def _written(self, api: Api, entry: Entry, have: Status | None) -> Status:
        """Returns the status as the API server then has it; empty if another pod has the name now."""
        if have is None:
            found = api.get(entry.path)
            if found["metadata"]["uid"] != entry.target:
                return {}
            have = self._take(found)
        changes = entry.changes(have)
        if not changes:
            return have
        return self._take(api.patch(f"{entry.path}/status", {"metadata": {"uid": entry.target}, "status": changes}))

    def _take(self, pod: Mapping[str, Any]) -> Status:
        with self._lock:
            self._view.take(pod)
        return pod.get("status") or {}

    def _delete(self, api: Api, entry: Entry) -> None:
        """Raises ApiError, but not when the name is another pod's already."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
                "preconditions": {"uid": entry.target}}
        try:
            api.delete(entry.path, body)
        except ApiError as error:
            if not error.conflict:
                raise
        with self._lock:
            if entry.uid in self._entries:
                self._entries[entry.uid].finished = False

    def _failed(self, uid: str, error: ApiError, again: float) -> None:
        """Once for each pod, and not at its first failures: a pod that has just gone is forbidden to its node."""
        if again < SAID_FROM:
            return
        with self._lock:
            entry, new = self._entries.get(uid), uid not in self._troubled
            if entry is not None:
                self._troubled.add(uid)
        if new and entry is not None:
            self._context.log.warning("cannot write the status of a pod; it is tried until it succeeds",
                                      pod=f"{entry.namespace}/{entry.name}", err=error.message)
