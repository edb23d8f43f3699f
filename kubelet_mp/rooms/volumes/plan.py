"""Which volumes of a pod are needed, and of what kind they are. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubelet_mp.model import podspec
from kubelet_mp.model.podspec import Pod
from kubelet_mp.rooms.volumes.content.keys import BUNDLES, CONFIG_MAP, SECRET, Key

Volume = Mapping[str, Any]

FROM_API = ("configMap", "secret")
NOT_YET = ("persistentVolumeClaim", "ephemeral", "csi")
PROJECTED = ("configMap", "secret", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate")


def needed(pod: Pod) -> dict[str, Volume]:
    """Name → volume, for those that a container of any sort mounts; others are never set up."""
    named = {
        mount["name"]
        for container in podspec.all_containers(pod)
        for key in ("volumeMounts", "volumeDevices")
        for mount in container.get(key) or ()
    }
    return {volume["name"]: volume for volume in podspec.volumes(pod) if volume["name"] in named}


def type_of(volume: Volume) -> str:
    """The field that says where the volume comes from, e.g. "hostPath"; emptyDir when there is none."""
    return next((key for key, body in volume.items() if key != "name" and body is not None), "emptyDir")


def unsupported(volume: Volume, *, api: bool = False) -> str:
    """Why the volume cannot be set up by this agent, "" when it can. api: whether there is an API server."""
    kind = type_of(volume)
    if kind in NOT_YET or (kind in FROM_API and not api):
        return f"{kind} volumes {_lack(api)}"
    if kind == "projected":
        return _unsupported_projection(volume["projected"], api)
    if kind not in ("emptyDir", "hostPath", "image", "downwardAPI", "nfs", *FROM_API):
        return f"{kind} volumes are not supported yet"
    return ""


def _unsupported_projection(body: Mapping[str, Any], api: bool) -> str:
    kinds = {kind for kind, _ in projections(body)}
    others = sorted(kinds - set(PROJECTED if api else ("downwardAPI",)))
    return f"projected volumes with {', '.join(others)} {_lack(api)}" if others else ""


def _lack(api: bool) -> str:
    return "are not supported yet" if api else "need the API server and are not supported yet"


def projections(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(kind, its body) of each source of a projected volume, in order."""
    for source in body.get("sources") or ():
        for kind, value in source.items():
            if value is not None:
                yield kind, value


def references(volume: Volume, namespace: str) -> frozenset[Key]:
    """The single objects that the content of the volume comes from."""
    kind = type_of(volume)
    if kind == "configMap":
        return frozenset({Key(CONFIG_MAP, namespace, volume[kind].get("name") or "")})
    if kind == "secret":
        return frozenset({Key(SECRET, namespace, volume[kind].get("secretName") or "")})
    if kind != "projected":
        return frozenset()
    return frozenset(filter(None, (_reference(*source, namespace) for source in projections(volume[kind]))))


def _reference(kind: str, body: Mapping[str, Any], namespace: str) -> Key | None:
    if kind == "clusterTrustBundle":
        return BUNDLES
    known = {"configMap": CONFIG_MAP, "secret": SECRET}
    return Key(known[kind], namespace, body.get("name") or "") if kind in known else None


def expires(volume: Volume) -> bool:
    """Whether tokens or certificates are in the volume, which are to be renewed."""
    body = volume.get("projected") or {}
    return any(kind in ("serviceAccountToken", "podCertificate") for kind, _ in projections(body))


def has_certificates(volume: Volume) -> bool:
    return any(kind == "podCertificate" for kind, _ in projections(volume.get("projected") or {}))


def from_api(volume: Volume) -> bool:
    """Whether its content comes from the API server, at least in part."""
    return bool(references(volume, "")) or expires(volume)


def own_facts(pod: Pod) -> tuple[Any, ...]:
    """What of a pod may change and shows in volumes with the downward API."""
    resources = [container.get("resources") for container in podspec.all_containers(pod)]
    return podspec.labels_of(pod), podspec.annotations_of(pod), resources


def fs_group(pod: Pod) -> int | None:
    """securityContext.fsGroup."""
    return (podspec.spec(pod).get("securityContext") or {}).get("fsGroup")


def fs_user(pod: Pod) -> int | None:
    """The one user that all containers (but ephemeral ones) run as by the spec, None when there is no such user.

    Source: Kubernetes 1.37 pkg/volume/util (FsUserFrom).
    """
    common = (podspec.spec(pod).get("securityContext") or {}).get("runAsUser")
    users = {(c.get("securityContext") or {}).get("runAsUser", common) for c in podspec.lasting_containers(pod)}
    return users.pop() if len(users) == 1 else None
