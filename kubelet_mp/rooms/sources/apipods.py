"""What the API server says of the pods of this node: the newest state of each, mirror pods apart. No I/O.

Source: Kubernetes 1.37 pkg/kubelet/config (apiserver.go, config.go) and pkg/kubelet/pod (mirror_client.go).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubelet_mp.model.clock import SYSTEM, Clock, rfc3339_nano
from kubelet_mp.model.qos import is_mirror
from kubelet_mp.model.staticpod import SEEN, SOURCE
from kubelet_mp.rooms.sources.source import Item, Reading
from kubelet_mp.wire.messages import Message, MirrorPod, MirrorSet

Pod = dict[str, Any]

API = "api"
ORIGIN = "API server"
PATH = "/api/v1/pods"


def selector(node: str) -> dict[str, str]:
    """Query parameters for the pods that are bound to a node."""
    return {"fieldSelector": f"spec.nodeName={node}"}


@dataclass
class ApiPods:
    """Told everything, in order, by `take_list` and `take_event`; `reading` and `news` say what follows."""

    clock: Clock = SYSTEM
    listed: bool = False
    problem: str = ""
    _pods: dict[str, Pod] = field(default_factory=dict)  # by uid
    _mirrors: dict[str, Pod] = field(default_factory=dict)  # by full name
    _news: dict[str, Message] = field(default_factory=dict)
    _announced: MirrorSet | None = None

    def take_list(self, items: list[Pod]) -> None:
        """All there is: what is not in it is gone."""
        uids = {pod["metadata"]["uid"] for pod in items}
        for pod in [*self._pods.values(), *self._mirrors.values()]:
            if pod["metadata"]["uid"] not in uids:
                self._drop(pod)
        for pod in items:
            self._keep(pod)
        self.listed = True

    def take_event(self, kind: str, pod: Pod) -> None:
        """`kind`: ADDED, MODIFIED or DELETED."""
        if kind == "DELETED":
            self._drop(pod)
        else:
            self._keep(pod)

    def reading(self) -> Reading:
        """The desired pods; not ready before the first list."""
        item = Item(ORIGIN, tuple(self._pods.values()), self.problem)
        return Reading(API, {ORIGIN: item}, self.listed)

    def news(self) -> list[Message]:
        """The mirror pods that changed since the last call, and which there are if that changed."""
        changed, self._news = list(self._news.values()), {}
        if self.listed and (now := self._set()) != self._announced:
            self._announced = now
            changed.append(now)
        return changed

    def everything(self) -> list[Message]:
        """All about mirror pods, for a room that starts; nothing before the first list."""
        if not self.listed:
            return []
        return [*(_mirror_pod(pod) for pod in self._mirrors.values()), self._set()]

    def _set(self) -> MirrorSet:
        return MirrorSet(frozenset(self._mirrors))

    def _keep(self, pod: Pod) -> None:
        meta = pod["metadata"]
        meta.pop("managedFields", None)  # a third of the object, and of no use here
        if not is_mirror(pod):
            self._pods[meta["uid"]] = self._ours(pod)
        elif self._mirrors.get(full_name(pod)) != pod:
            self._mirrors[full_name(pod)] = pod
            self._news[full_name(pod)] = _mirror_pod(pod)

    def _drop(self, pod: Pod) -> None:
        uid, name = pod["metadata"]["uid"], full_name(pod)
        self._pods.pop(uid, None)
        known = self._mirrors.get(name)
        if known is not None and known["metadata"]["uid"] == uid:
            del self._mirrors[name]
            self._news[name] = MirrorPod(uid, name, None)

    def _ours(self, pod: Pod) -> Pod:
        """The pod with the annotations of our copy: where it comes from, and since when we know it."""
        meta = pod["metadata"]
        known = self._pods.get(meta["uid"])
        seen = known["metadata"]["annotations"][SEEN] if known else rfc3339_nano(self.clock.wall_time_ns())
        annotations = {**(meta.get("annotations") or {}), SOURCE: API, SEEN: seen}
        return {**pod, "metadata": {**meta, "annotations": annotations}}


def full_name(pod: Pod) -> str:
    """namespace/name"""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _mirror_pod(pod: Pod) -> MirrorPod:
    return MirrorPod(pod["metadata"]["uid"], full_name(pod), pod)
