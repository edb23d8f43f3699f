"""The objects, their versions and what happened to them."""

from __future__ import annotations

import copy
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubelet_mp.model.clock import NS, SYSTEM, rfc3339
from tests.fakes.api.patch import json_patch, merge

Json = dict[str, Any]

KINDS = {
    "Pod": ("/api/v1", "pods", True), "Node": ("/api/v1", "nodes", False), "Event": ("/api/v1", "events", True),
    "Namespace": ("/api/v1", "namespaces", False), "ConfigMap": ("/api/v1", "configmaps", True),
    "Secret": ("/api/v1", "secrets", True), "Service": ("/api/v1", "services", True),
    "ServiceAccount": ("/api/v1", "serviceaccounts", True),
    "PersistentVolume": ("/api/v1", "persistentvolumes", False),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims", True),
    "Lease": ("/apis/coordination.k8s.io/v1", "leases", True),
    "RuntimeClass": ("/apis/node.k8s.io/v1", "runtimeclasses", False),
    "CSINode": ("/apis/storage.k8s.io/v1", "csinodes", False),
    "CSIDriver": ("/apis/storage.k8s.io/v1", "csidrivers", False),
    "VolumeAttachment": ("/apis/storage.k8s.io/v1", "volumeattachments", False),
    "CertificateSigningRequest": ("/apis/certificates.k8s.io/v1", "certificatesigningrequests", False),
    "ClusterTrustBundle": ("/apis/certificates.k8s.io/v1", "clustertrustbundles", False),
    "PodCertificateRequest": ("/apis/certificates.k8s.io/v1", "podcertificaterequests", True),
}
_KIND_OF = {(base, resource): kind for kind, (base, resource, _) in KINDS.items()}
STATUS_APART = {"pods", "nodes", "certificatesigningrequests", "namespaces", "persistentvolumeclaims"}
"""Resources whose status only the subresource changes."""

SERVERS_OWN = ("uid", "name", "namespace", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


class Refused(Exception):
    """An answer that is no success; `after`: seconds for Retry-After."""

    def __init__(self, code: int, reason: str, message: str, after: int = 0) -> None:
        super().__init__(message)
        self.status = {
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
            "message": message,
        }
        self.code, self.after = code, after


@dataclass(frozen=True)
class Address:
    """Where a path leads: a collection (no name), an object, or its subresource `sub`."""

    base: str
    resource: str
    namespace: str = ""
    name: str = ""
    sub: str = ""

    @classmethod
    def parse(cls, path: str) -> Address:
        parts = path.strip("/").split("/")
        split = 2 if parts[0] == "api" else 3
        base, rest = "/" + "/".join(parts[:split]), parts[split:]
        if rest[:1] == ["namespaces"] and len(rest) > 2 and (base, rest[2]) in _KIND_OF:
            return cls(base, rest[2], rest[1], *rest[3:5])
        if not rest or (base, rest[0]) not in _KIND_OF:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        return cls(base, rest[0], "", *rest[1:3])

    @property
    def kind(self) -> str:
        return _KIND_OF[self.base, self.resource]

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.base, self.resource, self.namespace, self.name

    def holds(self, key: tuple[str, str, str, str]) -> bool:
        """Whether the object of that key belongs to this collection."""
        return key[:2] == (self.base, self.resource) and self.namespace in ("", key[2]) and self.name in ("", key[3])


def path_of(found: Json) -> str:
    """The path of an object."""
    base, resource, spaced = KINDS[found["kind"]]
    meta = found["metadata"]
    space = f"/namespaces/{meta.get('namespace', 'default')}" if spaced else ""
    return f"{base}{space}/{resource}/{meta['name']}"


def matches(found: Json, field_selector: str, label_selector: str = "") -> bool:
    """metadata.* and spec.nodeName and the like, equal or unequal; labels by equality."""
    for term in filter(None, field_selector.split(",")):
        field, _, value = term.replace("==", "=").replace("!=", "!").replace("!", "!=").partition("=")
        negated = field.endswith("!")
        at: Any = found
        for part in field.rstrip("!").split("."):
            at = (at or {}).get(part, "")
        if (str(at) == value) == negated:
            return False
    labels = found["metadata"].get("labels") or {}
    return all(labels.get(k) == v for k, _, v in (t.partition("=") for t in filter(None, label_selector.split(","))))


@dataclass(frozen=True)
class Change:
    version: int
    address: tuple[str, str, str, str]
    old: Json | None
    new: Json | None  # at deletion: None, and `old` bears the version of the deletion


class Store:
    """All under `changed`, a condition that is notified of each change."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.version = 100
        self.oldest = 0  # watches from before it are refused
        self.objects: dict[tuple[str, str, str, str], Json] = {}
        self.changes: list[Change] = []

    def find(self, at: Address) -> Json:
        with self.changed:
            if at.key not in self.objects:
                raise Refused(404, "NotFound", f'{at.resource} "{at.name}" not found')
            return copy.deepcopy(self.objects[at.key])

    def list(self, at: Address, fields: str = "", labels: str = "") -> Json:
        with self.changed:
            found = [one for key, one in self.objects.items() if at.holds(key) and matches(one, fields, labels)]
            items = [{k: v for k, v in copy.deepcopy(one).items() if k not in ("kind", "apiVersion")} for one in found]
            return {"kind": f"{at.kind}List", "apiVersion": at.base.partition("s/")[2] or "v1",
                    "metadata": {"resourceVersion": str(self.version)}, "items": items}

    def create(self, at: Address, body: Json) -> Json:
        with self.changed:
            meta = {**body.get("metadata", {})}
            if not meta.get("name") and meta.get("generateName"):
                meta["name"] = meta["generateName"] + uuid.uuid4().hex[:5]
            space = {"namespace": at.namespace or meta.get("namespace", "default")} if KINDS[at.kind][2] else {}
            at = Address(at.base, at.resource, space.get("namespace", ""), meta["name"])
            if at.key in self.objects:
                raise Refused(409, "AlreadyExists", f'{at.resource} "{at.name}" already exists')
            made = {"kind": at.kind, "apiVersion": at.base.partition("s/")[2] or "v1", **copy.deepcopy(body)}
            made["metadata"] = {
                "uid": str(uuid.uuid4()), "creationTimestamp": _time(), **meta, **space}
            return self._put(at, made)

    def update(self, at: Address, body: Json) -> Json:
        with self.changed:
            old, meta = self.find(at), body.get("metadata", {})
            if meta.get("resourceVersion", old["metadata"]["resourceVersion"]) != old["metadata"]["resourceVersion"]:
                raise Refused(409, "Conflict", f'{at.resource} "{at.name}": the object has been modified')
            if meta.get("uid", old["metadata"]["uid"]) != old["metadata"]["uid"]:
                raise Refused(409, "Conflict", f'{at.resource} "{at.name}": Precondition failed: UID in precondition')
            new = {**copy.deepcopy(body), "kind": at.kind, "apiVersion": old["apiVersion"]}
            if at.resource in STATUS_APART:
                new = _apart(old, new, at.sub)
            kept = {name: value for name, value in old["metadata"].items() if name in SERVERS_OWN}
            new["metadata"] = {**new.get("metadata", {}), **kept}
            return old if _same(old, new) else self._put(at, new)

    def patch(self, at: Address, body: Any, content: str) -> Json:
        with self.changed:
            old = self.find(at)
            if "json-patch" in content:
                return self.update(at, json_patch(old, body))
            new = merge(old, body, strategic="strategic" in content)
            return self.update(at, new)

    def delete(self, at: Address, options: Json) -> Json:
        with self.changed:
            old = self.find(at)
            wanted = (options.get("preconditions") or {}).get("uid")
            if wanted not in (None, old["metadata"]["uid"]):
                raise Refused(409, "Conflict", f'{at.resource} "{at.name}": Precondition failed: UID in precondition')
            grace = _grace(old, options) if at.resource == "pods" else 0
            if grace:
                meta = {**old["metadata"], "deletionGracePeriodSeconds": grace}
                meta.setdefault("deletionTimestamp", _time(grace))
                return self._put(at, {**old, "metadata": meta})
            return self.remove(at)

    def remove(self, at: Address) -> Json:
        """Without grace."""
        with self.changed:
            old = self.objects.pop(at.key)
            self.version += 1
            last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
            self._note(Change(self.version, at.key, last, None))
            return copy.deepcopy(last)

    def change(self, at: Address, edit: Callable[[Json], None]) -> Json:
        """Edit an object at will."""
        with self.changed:
            new = self.find(at)
            edit(new)
            return self._put(at, new)

    def _put(self, at: Address, new: Json) -> Json:
        old = self.objects.get(at.key)
        self.version += 1
        new = {**new, "metadata": {**new["metadata"], "resourceVersion": str(self.version)}}
        self.objects[at.key] = new
        self._note(Change(self.version, at.key, old, new))
        return copy.deepcopy(new)

    def _note(self, change: Change) -> None:
        self.changes.append(change)
        self.changed.notify_all()


def _time(later: int = 0) -> str:
    return rfc3339(SYSTEM.wall_time_ns() + later * NS)


def _apart(old: Json, new: Json, sub: str) -> Json:
    """The status comes from the status subresource alone, and the rest from the object itself."""
    if sub == "status":
        return {**old, "metadata": new["metadata"], "status": new.get("status", {})}
    return {**new, "status": old["status"]} if "status" in old else {k: v for k, v in new.items() if k != "status"}


def _same(old: Json, new: Json) -> bool:
    def bare(one: Json) -> Json:
        return {**one, "metadata": {k: v for k, v in one["metadata"].items() if k != "resourceVersion"}}

    return bare(old) == bare(new)


def _grace(pod: Json, options: Json) -> int:
    """Seconds that a pod is left to its node: none if it has none, or has ended."""
    if not pod.get("spec", {}).get("nodeName") or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    grace = options.get("gracePeriodSeconds")
    return int(pod["spec"].get("terminationGracePeriodSeconds", 30) if grace is None else grace)
