"""What makes a manifest's pod a static pod of this node: uid, name, annotations, toleration, refusals.

Source: Kubernetes 1.37 pkg/kubelet/config/common.go (applyDefaults) and pkg/api/pod/util.go
(HasAPIObjectReference).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

HASH = "kubernetes.io/config.hash"
SOURCE = "kubernetes.io/config.source"
SEEN = "kubernetes.io/config.seen"
MIRROR = "kubernetes.io/config.mirror"
_OWN_ANNOTATIONS = (HASH, SOURCE, SEEN, MIRROR)
_NOT_THE_MANIFESTS = ("managedFields", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")

_FNV_OFFSET = 0x6C62272E07BB014262B821756295C58D
_FNV_PRIME = 2**88 + 0x13B
_FNV_MASK = 2**128 - 1

_VOLUME_OBJECTS = {
    "configMap": "configmaps (via configmap volumes)",
    "secret": "secrets (via secret volumes)",
    "csi": "csidrivers (via CSI volumes)",
    "glusterfs": "endpoints (via glusterFS volumes)",
    "persistentVolumeClaim": "persistentvolumeclaims",
    "ephemeral": "persistentvolumeclaims (via ephemeral volumes)",
    "azureFile": "secrets (via azureFile volumes)",
}
_PROJECTED_OBJECTS = {
    "configMap": "configmaps (via projected volumes)",
    "secret": "secrets (via projected volumes)",
    "serviceAccountToken": "serviceaccounts (via projected volumes)",
    "clusterTrustBundle": "clustertrustbundles",
    "podCertificate": "podcertificates",
}
_NODE_CRITICAL = 2000001000


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a manifest comes from: `source` is file or http, `place` the path or URL, `node` the node name."""

    source: str
    place: str
    node: str


def fnv128a(data: bytes, start: int = _FNV_OFFSET) -> int:
    """The 128-bit FNV-1a hash; `start` continues an earlier one."""
    value = start
    for byte in data:
        value = ((value ^ byte) * _FNV_PRIME) & _FNV_MASK
    return value


def make_static(pod: Json, origin: Origin, seen: str) -> None:
    """Turn a defaulted pod into a static pod of the node, in place. `seen`: RFC 3339 time of reading."""
    meta = pod.setdefault("metadata", {})
    _drop_foreign(pod, meta)
    meta["uid"] = meta.get("uid") or static_uid(pod, origin)
    meta["name"] = f"{meta.get('name', '')}-{origin.node.lower()}"
    meta["namespace"] = meta.get("namespace") or "default"
    meta["annotations"] = {
        **meta.get("annotations", {}), HASH: meta["uid"], SOURCE: origin.source, SEEN: seen,
    }
    pod["spec"]["nodeName"] = origin.node
    if origin.source == "file":
        _tolerate_no_execute(pod["spec"])
    pod["status"] = {"phase": "Pending"}


def _drop_foreign(pod: Json, meta: Json) -> None:
    """A manifest may be a copy of a pod read from an API server: what only a live object has is dropped."""
    pod.pop("status", None)
    for name in _NOT_THE_MANIFESTS:
        meta.pop(name, None)
    for name in _OWN_ANNOTATIONS:
        meta.get("annotations", {}).pop(name, None)


def static_uid(pod: Json, origin: Origin) -> str:
    """32 hex digits over the defaulted pod and its origin: an edit of the content gives a new uid."""
    dump = json.dumps(pod, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    file = origin.source == "file"
    place = f"host:{origin.node}file:{origin.place}" if file else f"url:{origin.place}"
    return f"{fnv128a(place.encode('utf-8', 'surrogateescape'), fnv128a(dump)):032x}"


def _tolerate_no_execute(spec: Json) -> None:
    """So that no taint evicts the pod from the node that it belongs to."""
    wanted = {"operator": "Exists", "effect": "NoExecute"}
    match = {"key": "", "value": "", **wanted}
    tolerations = spec.setdefault("tolerations", [])
    for at, toleration in enumerate(tolerations):
        if {name: toleration.get(name, "") for name in ("key", "value", "operator", "effect")} == match:
            tolerations[at] = wanted
            return
    tolerations.append(wanted)


def api_object_reference(pod: Json) -> str:
    """The kind of API object that the pod refers to, as upstream names it in its refusal; "" if none."""
    spec = pod["spec"]
    if spec.get("serviceAccountName"):
        return "serviceaccounts"
    if any(_secret_names(spec)):
        return "secrets"
    if any(_config_map_names(spec)):
        return "configmaps"
    if spec.get("resourceClaims"):
        return "resourceclaims"
    return next(_volume_references(spec), "")


def _env_references(spec: Json, in_env: str, in_env_from: str) -> Iterator[str]:
    for kind in ("initContainers", "containers", "ephemeralContainers"):
        for container in spec.get(kind, []):
            for env in container.get("env", []):
                yield env.get("valueFrom", {}).get(in_env, {}).get("name", "")
            for source in container.get("envFrom", []):
                yield source.get(in_env_from, {}).get("name", "")


def _secret_names(spec: Json) -> Iterator[str]:
    for secret in spec.get("imagePullSecrets", []):
        yield secret.get("name", "")
    yield from _env_references(spec, "secretKeyRef", "secretRef")
    for volume in spec.get("volumes", []):
        yield volume.get("secret", {}).get("secretName", "")
        yield volume.get("azureFile", {}).get("secretName", "")
        for part in volume.get("projected", {}).get("sources", []):
            yield part.get("secret", {}).get("name", "")
        for source in volume.values():
            if isinstance(source, dict):
                yield source.get("secretRef", {}).get("name", "")
                yield source.get("nodePublishSecretRef", {}).get("name", "")


def _config_map_names(spec: Json) -> Iterator[str]:
    yield from _env_references(spec, "configMapKeyRef", "configMapRef")
    for volume in spec.get("volumes", []):
        yield volume.get("configMap", {}).get("name", "")
        for part in volume.get("projected", {}).get("sources", []):
            yield part.get("configMap", {}).get("name", "")


def _volume_references(spec: Json) -> Iterator[str]:
    for volume in spec.get("volumes", []):
        yield from (text for kind, text in _VOLUME_OBJECTS.items() if kind in volume)
        for part in volume.get("projected", {}).get("sources", []):
            yield from (text for kind, text in _PROJECTED_OBJECTS.items() if kind in part)


def priority_warnings(pod: Json) -> list[str]:
    """Priorities of static pods that do not do what they seem to."""
    spec = pod["spec"]
    name, value = spec.get("priorityClassName", ""), spec.get("priority")
    if name and value is None:
        return ["spec.priorityClassName has no effect on a static pod without spec.priority"]
    if value is not None and (name, value) != ("system-node-critical", _NODE_CRITICAL):
        critical = f"system-node-critical ({_NODE_CRITICAL})"
        return [f"spec.priority other than {critical}: a mirror pod may be refused"]
    return []
