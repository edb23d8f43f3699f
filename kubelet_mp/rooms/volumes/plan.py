"""Which volumes of a pod are needed, and of what kind they are. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubelet_mp.model import podspec
from kubelet_mp.model.podspec import Pod

Volume = Mapping[str, Any]

NEED_API = ("configMap", "secret", "persistentVolumeClaim", "ephemeral", "csi")


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


def unsupported(volume: Volume) -> str:
    """Why the volume cannot be set up by this agent, "" when it can."""
    kind = type_of(volume)
    if kind in NEED_API:
        return f"{kind} volumes need the API server and are not supported yet"
    if kind == "projected":
        return _unsupported_projection(volume["projected"])
    if kind not in ("emptyDir", "hostPath", "image", "downwardAPI", "nfs"):
        return f"{kind} volumes are not supported yet"
    return ""


def _unsupported_projection(body: Mapping[str, Any]) -> str:
    kinds = {key for source in body.get("sources") or () for key, value in source.items() if value is not None}
    others = sorted(kinds - {"downwardAPI"})
    if not others:
        return ""
    return f"projected volumes with {', '.join(others)} need the API server and are not supported yet"


def fs_group(pod: Pod) -> int | None:
    """securityContext.fsGroup."""
    return (podspec.spec(pod).get("securityContext") or {}).get("fsGroup")
