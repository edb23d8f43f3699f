"""Checks of volumes: names, exactly one source each, and the sources that a node can mount."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubelet_mp.model import quantity
from kubelet_mp.model.podschema import VOLUME_SOURCES
from kubelet_mp.model.validation import names
from kubelet_mp.model.validation.errors import Errors
from kubelet_mp.model.validation.fieldrefs import (
    check_downward_items,
    check_item_path,
    check_key_items,
    check_mode,
    check_user,
)

Json = dict[str, Any]

HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)
PULL_POLICIES = ("Always", "IfNotPresent", "Never")


def check_volumes(volumes: list[Json], errors: Errors) -> dict[str, Json]:
    """Check them all; gives the good ones by name, which mounts may refer to."""
    good: dict[str, Json] = {}
    for at, volume in enumerate(volumes):
        before = len(errors)
        _volume(volume, f"spec.volumes[{at}]", good, errors)
        if len(errors) == before:
            good[volume["name"]] = volume
    return good


def _volume(volume: Json, path: str, good: dict[str, Json], errors: Errors) -> None:
    _source(volume, path, errors)
    name = volume.get("name", "")
    if not name:
        errors.required(f"{path}.name")
    else:
        errors.each_invalid(f"{path}.name", name, names.dns_label(name))
    if name in good:
        errors.duplicate(f"{path}.name", name)


def _source(volume: Json, path: str, errors: Errors) -> None:
    kinds = [kind for kind in VOLUME_SOURCES if kind in volume]
    if not kinds:
        errors.required(path, "must specify a volume type")
    for kind in kinds[1:]:
        errors.forbidden(f"{path}.{kind}", "may not specify more than 1 volume type")
    for kind in kinds[:1]:
        for field in _REQUIRED.get(kind, ()):
            if not volume[kind].get(field):
                errors.required(f"{path}.{kind}.{field}")
        if kind in _CHECKS:
            _CHECKS[kind](volume[kind], f"{path}.{kind}", errors)


def _empty_dir(source: Json, path: str, errors: Errors) -> None:
    if "sizeLimit" in source and quantity.parse(source["sizeLimit"]) < quantity.ZERO:
        errors.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")
    if not 0 <= source.get("mode", 0) <= 0o1777:
        detail = "must be a number between 0 and 01777 (octal), both inclusive"
        errors.invalid(f"{path}.mode", source["mode"], detail)


def _host_path(source: Json, path: str, errors: Errors) -> None:
    target = source.get("path", "")
    errors.each_invalid(f"{path}.path", target, names.no_backsteps(target))
    if target and source["type"] not in HOST_PATH_TYPES:
        errors.unsupported(f"{path}.type", source["type"], HOST_PATH_TYPES)


def _nfs(source: Json, path: str, errors: Errors) -> None:
    if not source.get("path", "").startswith("/"):
        errors.invalid(f"{path}.path", source.get("path", ""), "must be an absolute path")


def _keyed(source: Json, path: str, errors: Errors) -> None:
    check_mode(source, "defaultMode", path, errors)
    check_user(source, "defaultUser", path, errors)
    check_key_items(source.get("items", []), f"{path}.items", errors)


def _downward(source: Json, path: str, errors: Errors) -> None:
    check_mode(source, "defaultMode", path, errors)
    check_user(source, "defaultUser", path, errors)
    check_downward_items(source.get("items", []), f"{path}.items", errors)


def _image(source: Json, path: str, errors: Errors) -> None:
    errors.one_of(f"{path}.pullPolicy", source["pullPolicy"], PULL_POLICIES)


def _projected(source: Json, path: str, errors: Errors) -> None:
    check_mode(source, "defaultMode", path, errors)
    check_user(source, "defaultUser", path, errors)
    taken: set[str] = set()
    for at, part in enumerate(source.get("sources", [])):
        _projection(part, f"{path}.sources[{at}]", errors)
        for target in _targets(part):
            if target and target in taken:
                errors.invalid(f"{path}.sources[{at}]", target, "conflicting duplicate paths")
            taken.add(target)


def _projection(part: Json, path: str, errors: Errors) -> None:
    kinds = list(part)
    if not kinds:
        errors.required(path, "must specify a volume projection type")
    for kind in kinds[1:]:
        errors.forbidden(f"{path}.{kind}", "may not specify more than 1 volume type per source")
    for kind in kinds[:1]:
        _projected_kind(kind, part[kind], f"{path}.{kind}", errors)


def _projected_kind(kind: str, source: Json, path: str, errors: Errors) -> None:
    if kind == "downwardAPI":
        check_downward_items(source.get("items", []), f"{path}.items", errors)
    elif kind in ("configMap", "secret"):
        if not source.get("name"):
            errors.required(f"{path}.name")
        check_key_items(source.get("items", []), f"{path}.items", errors)
    elif kind in ("serviceAccountToken", "clusterTrustBundle"):
        check_item_path(source, path, errors)
    if kind == "serviceAccountToken":
        _expiration(source["expirationSeconds"], f"{path}.expirationSeconds", errors)


def _expiration(seconds: int, path: str, errors: Errors) -> None:
    if seconds < 600:
        errors.invalid(path, seconds, "may not specify a duration less than 10 minutes")
    if seconds > 2**32:
        errors.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")


def _targets(part: Json) -> list[str]:
    """The file paths that a projection writes (those that its manifest tells)."""
    found = []
    for source in part.values():
        found += [source.get("path", "")] + [item.get("path", "") for item in source.get("items", [])]
    return [target for target in found if target]


_REQUIRED: dict[str, tuple[str, ...]] = {
    "hostPath": ("path",), "nfs": ("server", "path"), "secret": ("secretName",), "configMap": ("name",),
    "persistentVolumeClaim": ("claimName",), "csi": ("driver",), "ephemeral": ("volumeClaimTemplate",),
    "image": ("reference",), "iscsi": ("targetPortal", "iqn"), "gitRepo": ("repository",),
    "glusterfs": ("endpoints", "path"), "rbd": ("monitors", "image"), "cephfs": ("monitors",),
    "cinder": ("volumeID",), "flexVolume": ("driver",), "azureFile": ("secretName", "shareName"),
    "azureDisk": ("diskName", "diskURI"), "vsphereVolume": ("volumePath",), "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",), "scaleIO": ("gateway", "system", "volumeName"),
    "storageos": ("volumeName",), "quobyte": ("registry", "volume"), "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
}
_CHECKS: dict[str, Callable[[Json, str, Errors], None]] = {
    "emptyDir": _empty_dir, "hostPath": _host_path, "nfs": _nfs, "secret": _keyed, "configMap": _keyed,
    "downwardAPI": _downward, "projected": _projected, "image": _image,
}
