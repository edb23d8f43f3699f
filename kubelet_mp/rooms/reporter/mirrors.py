"""The duty that keeps a mirror pod in the API server for each static pod.

Source: Kubernetes 1.37 pkg/kubelet/pod (mirror_client.go) and pkg/kubelet (kubelet_pods.go).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from enum import Enum
from typing import Any

from kubelet_mp.errors import ApiError
from kubelet_mp.rooms.reporter.duty import Api, DutyContext
from kubelet_mp.rooms.reporter.keyed import Keyed
from kubelet_mp.wire.messages import (
    DesiredSet,
    Message,
    MirrorPod,
    MirrorSet,
    NodeObject,
    PodForgotten,
    PodStatus,
    StatusSet,
)

HASH, MIRROR = "kubernetes.io/config.hash", "kubernetes.io/config.mirror"
THREADS = 2
SAID_FROM = 1.0  # s until the next try, from which on a failure is worth a line
_KEPT = ("name", "namespace", "labels", "annotations")

Pod = Mapping[str, Any]


class Step(Enum):
    NONE = "none"
    CREATE = "create"
    DELETE = "delete"


def step(static: Pod | None, mirror: Pod | None, orphan: bool) -> Step:
    """What to do about one full name. orphan: the static pod that `mirror` stands for is certainly gone."""
    if mirror is None:
        return Step.CREATE if static is not None else Step.NONE
    if static is None:
        return Step.DELETE if orphan else Step.NONE
    leaving = bool(mirror["metadata"].get("deletionTimestamp"))
    return Step.DELETE if leaving or hash_of(mirror, MIRROR) != hash_of(static, HASH) else Step.NONE


def hash_of(pod: Pod, name: str) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(name, ""))


def mirror_of(static: Pod, node: Pod) -> dict[str, Any]:
    """The object to create. node: the Node, which owns it."""
    meta = {name: value for name, value in static["metadata"].items() if name in _KEPT and value}
    meta["annotations"] = {**(meta.get("annotations") or {}), MIRROR: hash_of(static, HASH)}
    owner = node["metadata"]
    meta["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Node", "name": owner["name"], "uid": owner["uid"], "controller": True}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": static["spec"]}


class Mirrors:
    """Nothing is created or deleted before the API server's pods were listed once."""

    def __init__(self, context: DutyContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._statics: dict[str, Pod] = {}  # by full name
        self._mirrors: dict[str, Pod] = {}
        self._living: set[str] = set()  # UIDs of static pods with a status, be it that they are stopping
        self._desired: DesiredSet | None = None
        self._listed = False
        self._node: dict[str, Any] | None = None
        self._told: dict[str, str] = {}
        self._keyed = Keyed("mirror-pods", THREADS, self._sync, failed=self._failed, crashed=context.fail)

    def start(self) -> None:
        """Threads start with the first static pod."""

    def close(self) -> None:
        self._keyed.close()

    def replay(self, room: str) -> None:
        """Nobody is told anything from here."""

    # ---- on the main thread ----

    def handle(self, message: Message) -> None:
        before = self._names()
        with self._lock:
            changed = self._take(message, before)
        if self._listed:
            for name in changed:
                self._keyed.ask(name)

    def _names(self) -> set[str]:
        return {*self._statics, *self._mirrors}

    def _take(self, message: Message, names: set[str]) -> set[str]:
        """Returns the full names to look at."""
        if isinstance(message, PodStatus):
            return self._take_status(message)
        if isinstance(message, MirrorPod):
            if message.mirror is None:
                self._mirrors.pop(message.name, None)
            else:
                self._mirrors[message.name] = message.mirror
            return {message.name}
        if isinstance(message, MirrorSet):
            first, self._listed = not self._listed, True
            self._mirrors = {name: pod for name, pod in self._mirrors.items() if name in message.names}
            return names if first else names - message.names
        if isinstance(message, DesiredSet):
            self._desired = message
            return names
        if isinstance(message, NodeObject):
            known, self._node = self._node, message.node
            return set() if known and known["metadata"]["uid"] == message.node["metadata"]["uid"] else names
        if isinstance(message, PodForgotten):
            return self._forget({message.uid})
        return self._forget(self._living - message.uids) if isinstance(message, StatusSet) else set()

    def _take_status(self, message: PodStatus) -> set[str]:
        if message.source == "api":
            return set()
        meta = message.pod["metadata"]
        name = f"{meta['namespace']}/{meta['name']}"
        self._living.add(message.uid)
        old = self._statics.get(name)
        if old is not None and old["metadata"]["uid"] == message.uid:
            return set()
        self._statics[name] = message.pod
        return {name}

    def _forget(self, uids: set[str]) -> set[str]:
        self._living -= uids
        gone = {name for name, pod in self._statics.items() if pod["metadata"]["uid"] in uids}
        for name in gone:
            del self._statics[name]
        return gone

    # ---- in the threads ----

    def _sync(self, name: str) -> None:
        with self._lock:
            static, mirror = self._static(name), self._mirrors.get(name)
            todo = step(static, mirror, mirror is not None and self._orphan(mirror))
        if todo is Step.CREATE and static is not None:
            self._create(self._context.api(), static)
        elif todo is Step.DELETE and mirror is not None:
            _delete(self._context.api(), mirror)
        self._told.pop(name, None)

    def _static(self, name: str) -> Pod | None:
        """The static pod of a name, if its source still wants it."""
        static = self._statics.get(name)
        if static is None or self._desired is None:
            return static
        return static if static["metadata"]["uid"] in self._desired.uids else None

    def _orphan(self, mirror: Pod) -> bool:
        uid = hash_of(mirror, MIRROR)
        return (self._desired is not None and self._desired.ready and uid not in self._desired.uids
                and uid not in self._living)

    def _create(self, api: Api, static: Pod) -> None:
        """The watch of the pods tells of the new mirror. Raises ApiError, also while the Node is not registered."""
        node = self._node
        if node is None:
            node = self._node = api.get(f"/api/v1/nodes/{self._context.settings.node_name}")
        body = mirror_of(static, node)
        try:
            api.create(f"/api/v1/namespaces/{body['metadata']['namespace']}/pods", body)
        except ApiError as error:
            if not error.already_exists:
                self._node = None  # it may be another one now
                raise

    def _failed(self, name: str, error: ApiError, again: float) -> None:
        if again >= SAID_FROM and self._told.get(name) != error.message:
            self._told[name] = error.message
            self._context.log.warning("cannot bring a mirror pod up to date", pod=name, err=error.message)


def _delete(api: Api, mirror: Pod) -> None:
    """Raises ApiError, but not when it is gone or another one already."""
    meta = mirror["metadata"]
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
            "preconditions": {"uid": meta["uid"]}}
    try:
        api.delete(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}", body)
    except ApiError as error:
        if not (error.not_found or error.conflict):
            raise
