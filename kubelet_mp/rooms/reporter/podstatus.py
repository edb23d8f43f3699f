"""The duty that writes each pod's status to the API server, and deletes the pods that are finished there.

Source: Kubernetes 1.37 pkg/kubelet/status (status_manager.go).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubelet_mp.errors import ApiError
from kubelet_mp.model.phase import TERMINAL
from kubelet_mp.rooms.reporter import statuspatch
from kubelet_mp.rooms.reporter.duty import Api, DutyContext
from kubelet_mp.rooms.reporter.keyed import Keyed
from kubelet_mp.rooms.reporter.mirrors import MIRROR, hash_of
from kubelet_mp.wire.messages import (
    DesiredPod,
    Message,
    MirrorPod,
    PodFinished,
    PodForgotten,
    PodStatus,
    StatusSet,
)

THREADS = 8
SAID_FROM = 1.0  # s until the next try, from which on a failure is worth a line
API = "api"


@dataclass(slots=True)
class Entry:
    """What is known of one pod. `have`: its status as the API server last told it, None before the first look.

    target: the UID that the pod has in the API (that of the mirror for a static pod), "" while there is none.
    """

    uid: str
    target: str
    namespace: str = ""
    name: str = ""
    newest: PodStatus | None = None
    finished: bool = False
    have: dict[str, Any] | None = None

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"


class PodStatuses:
    """The newest status of each pod wins; writing one pod never waits for another."""

    def __init__(self, context: DutyContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._entries: dict[str, Entry] = {}
        self._mirrors: dict[str, tuple[str, str]] = {}  # UID of a static pod → full name and UID of its mirror
        self._troubled: set[str] = set()
        self._keyed = Keyed("pod-status", THREADS, self._sync, failed=self._failed, crashed=self._crashed)

    def start(self) -> None:
        """Threads start with the first pod."""

    def close(self) -> None:
        self._keyed.close()

    def replay(self, room: str) -> None:
        """Nobody is told anything from here."""

    # ---- on the main thread ----

    def handle(self, message: Message) -> None:
        if isinstance(message, PodStatus):
            self._on_status(message)
        elif isinstance(message, DesiredPod):
            self._on_told(message)
        elif isinstance(message, PodFinished):
            self._on_finished(message)
        elif isinstance(message, MirrorPod):
            self._on_mirror(message)
        elif isinstance(message, PodForgotten):
            self._drop({message.uid})
        elif isinstance(message, StatusSet):
            self._drop(self._entries.keys() - message.uids)

    def _on_status(self, message: PodStatus) -> None:
        meta = message.pod["metadata"]
        with self._lock:
            entry = self._entry(message.uid, meta, message.source)
            entry.newest = message
        self._keyed.ask(message.uid)

    def _on_told(self, message: DesiredPod) -> None:
        """What the API server has now; if somebody else wrote it, ours is written again."""
        have = (message.pod or {}).get("status")
        with self._lock:
            entry = self._entries.get(message.uid)
            if entry is None or entry.newest is None or message.source != API or not have or entry.have is None:
                return
            newest = entry.newest
            if not statuspatch.patch(_wanted(newest, have), have):
                return
            entry.have = None
        self._keyed.ask(message.uid)

    def _on_finished(self, message: PodFinished) -> None:
        meta = message.pod["metadata"]
        with self._lock:
            known = self._entries.get(message.uid)
            if known is None or not known.target:
                return
            known.finished = bool(meta.get("deletionTimestamp"))
        self._keyed.ask(message.uid)

    def _on_mirror(self, message: MirrorPod) -> None:
        static = hash_of(message.mirror, MIRROR) if message.mirror is not None else ""
        with self._lock:
            self._mirrors = {uid: known for uid, known in self._mirrors.items() if known[0] != message.name}
            if static:
                self._mirrors[static] = (message.name, message.uid)
            statics = [one for one in self._entries.values() if one.newest and one.newest.source != API]
            changed = [one for one in statics if one.target != self._mirror_uid(one.uid)]
            for entry in changed:
                entry.target, entry.have = self._mirror_uid(entry.uid), None
        for entry in changed:
            self._keyed.ask(entry.uid)

    def _mirror_uid(self, static: str) -> str:
        return self._mirrors.get(static, ("", ""))[1]

    def _entry(self, uid: str, meta: Mapping[str, Any], source: str) -> Entry:
        entry = self._entries.get(uid)
        if entry is None:
            namespace, name = str(meta.get("namespace", "default")), str(meta["name"])
            target = uid if source == API else self._mirror_uid(uid)
            entry = self._entries[uid] = Entry(uid, target, namespace, name)
        return entry

    def _drop(self, uids: set[str]) -> None:
        with self._lock:
            for uid in uids:
                self._entries.pop(uid, None)
            self._troubled -= uids

    # ---- in the threads ----

    def _sync(self, uid: str) -> None:
        with self._lock:
            entry = self._entries.get(uid)
            if entry is None or entry.newest is None or not entry.target:
                return
            target, newest, finished, have = entry.target, entry.newest, entry.finished, entry.have
        api = self._context.api()
        try:
            status = self._write(api, entry, target, newest, have)
            if finished and status.get("phase") in TERMINAL:
                self._delete(api, entry, target)
        except ApiError as error:
            with self._lock:
                entry.have = None
            if not (error.not_found or error.conflict):
                raise
            return  # it is gone, or another pod has its name: the watch of the pods tells
        with self._lock:
            if entry.target == target:
                entry.have = status
            self._troubled.discard(uid)

    def _write(
        self, api: Api, entry: Entry, target: str, newest: PodStatus, have: dict[str, Any] | None
    ) -> dict[str, Any]:
        """Returns the status as the API server then has it."""
        if have is None:
            found = api.get(entry.path)
            if found["metadata"]["uid"] != target:
                raise ApiError(f"pod {entry.namespace}/{entry.name} is another one now", status=409, reason="Conflict")
            have = found.get("status") or {}
        changes = statuspatch.patch(_wanted(newest, have), have)
        if not changes:
            return have
        answer = api.patch(f"{entry.path}/status", {"metadata": {"uid": target}, "status": changes})
        written: dict[str, Any] = answer.get("status") or {}
        return written

    def _delete(self, api: Api, entry: Entry, target: str) -> None:
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": target}}
        api.delete(entry.path, body)
        with self._lock:
            entry.finished = False

    def _failed(self, uid: str, error: ApiError, again: float) -> None:
        """Once for each pod, and not at its first failures: a pod that has just gone is forbidden to its node."""
        if again < SAID_FROM:
            return
        with self._lock:
            entry, new = self._entries.get(uid), uid not in self._troubled
            self._troubled.add(uid)
        if new and entry is not None:
            self._context.log.warning("cannot write the status of a pod; it is tried until it succeeds",
                                      pod=f"{entry.namespace}/{entry.name}", err=error.message)

    def _crashed(self, error: Exception) -> None:
        def fail() -> None:
            raise error

        self._context.post(fail)


def _wanted(newest: PodStatus, have: Mapping[str, Any]) -> dict[str, Any]:
    return statuspatch.told(newest.pod.get("status") or {}, have, newest.terminal)
