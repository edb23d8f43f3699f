"""volumeMounts and volumeDevices as the CRI takes them (Kubernetes 1.37 pkg/kubelet/kubelet_pods.go)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubelet_mp.errors import ContainerConfigError
from kubelet_mp.model import podspec
from kubelet_mp.model.expansion import expand_from, missing_names
from kubelet_mp.model.podspec import ContainerSpec, Pod

ETC_HOSTS = "/etc/hosts"
ALWAYS_READ_ONLY = ("configMap", "secret", "downwardAPI", "projected", "image")
PROPAGATION = {
    "None": "PROPAGATION_PRIVATE",
    "HostToContainer": "PROPAGATION_HOST_TO_CONTAINER",
    "Bidirectional": "PROPAGATION_BIDIRECTIONAL",
}

VolumeMount = Mapping[str, Any]
CriMount = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MountedVolume:
    """A volume that is ready.

    image: the reference to mount when it is an image volume, which has no host_path.
    read_only: whatever the mount says. relabel: the runtime is to relabel it where the node has SELinux.
    """

    host_path: str = ""
    read_only: bool = False
    relabel: bool = False
    image: str = ""


@dataclass(frozen=True, slots=True)
class BlockDevice:
    """A raw block volume: its device node or link on the host."""

    host_path: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class SubPath:
    """The part of a volume that one mount shows; `index` is the mount's position in volumeMounts."""

    index: int
    volume: str
    path: str


def sub_paths(container: ContainerSpec, env: Mapping[str, str]) -> dict[int, str]:
    """Position in volumeMounts → subPath, `subPathExpr` expanded; mounts of whole volumes are left out.

    Raises ContainerConfigError for an absolute path, `..`, or a variable without a value.
    """
    found = {}
    for index, mount in enumerate(container.get("volumeMounts") or []):
        path = mount.get("subPath") or _expanded(mount.get("subPathExpr") or "", env)
        if path:
            found[index] = _relative(path)
    return found


def _expanded(expression: str, env: Mapping[str, str]) -> str:
    missing = missing_names(expression, env)
    if missing:
        raise ContainerConfigError(f'missing value for "{missing[0]}"')
    return expand_from(expression, env)


def _relative(path: str) -> str:
    if path.startswith("/"):
        raise ContainerConfigError(f'error SubPath "{path}" must not be an absolute path')
    if ".." in path.split("/"):
        raise ContainerConfigError(f"unable to provision SubPath \"{path}\": must not contain '..'")
    return path


def subpaths_to_prepare(pod: Pod, container: ContainerSpec, env: Mapping[str, str]) -> tuple[SubPath, ...]:
    """The sub-paths that have to be made ready on the host; those of image volumes are the runtime's work."""
    mounts = container.get("volumeMounts") or []
    images = {v["name"] for v in podspec.volumes(pod) if "image" in v}
    found = [SubPath(index, mounts[index]["name"], path) for index, path in sub_paths(container, env).items()]
    return tuple(sub for sub in found if sub.volume not in images)


def volume_mounts(
    pod: Pod,
    container: ContainerSpec,
    volumes: Mapping[str, MountedVolume],
    prepared: Mapping[int, str],
    env: Mapping[str, str],
    *,
    rro: bool = False,
    selinux: bool = False,
) -> list[CriMount]:
    """The CRI mounts of a container's volumeMounts, in their order.

    volumes: by name. prepared: position → host path of a sub-path that is ready. rro: the runtime handler
    can mount read-only recursively. selinux: the node has SELinux. Raises ContainerConfigError.
    """
    sources, paths = {v["name"]: v for v in podspec.volumes(pod)}, sub_paths(container, env)
    result = []
    for index, mount in enumerate(container.get("volumeMounts") or []):
        volume = _volume(mount, container, volumes)
        read_only = (
            bool(mount.get("readOnly")) or volume.read_only or _read_only(sources.get(mount["name"], {}))
        )
        result.append(
            {
                "container_path": absolute(mount["mountPath"]),
                "readonly": read_only,
                "propagation": _propagation(mount),
                "recursive_read_only": _recursive(mount, rro),
                "selinux_relabel": selinux and volume.relabel,
                **_source(index, mount, container, volume, paths, prepared, sources),
            }
        )
    return result


def _volume(
    mount: VolumeMount, container: ContainerSpec, volumes: Mapping[str, MountedVolume]
) -> MountedVolume:
    volume = volumes.get(mount["name"])
    if volume is None or not (volume.host_path or volume.image):
        raise ContainerConfigError(
            f'cannot find volume "{mount["name"]}" to mount into container "{container["name"]}"'
        )
    return volume


def _source(
    index: int,
    mount: VolumeMount,
    container: ContainerSpec,
    volume: MountedVolume,
    paths: Mapping[int, str],
    prepared: Mapping[int, str],
    sources: Mapping[str, Mapping[str, Any]],
) -> CriMount:
    """Where a mount comes from: an image, a whole volume, or a prepared sub-path."""
    if volume.image:
        named = (sources.get(mount["name"], {}).get("image") or {}).get("reference") or volume.image
        image = {"image": volume.image, "user_specified_image": named}
        return {"host_path": "", "image": image, "image_sub_path": paths.get(index, "")}
    if index not in paths:
        return {"host_path": volume.host_path}
    if index not in prepared:
        raise ContainerConfigError(
            f'failed to prepare subPath for volumeMount "{mount["name"]}" of container "{container["name"]}"'
        )
    return {"host_path": prepared[index]}


def _read_only(source: Mapping[str, Any]) -> bool:
    """Whether a volume can only be read, by its kind or because it says so."""
    kinds = [(kind, body) for kind, body in source.items() if kind != "name"]
    return any(k in ALWAYS_READ_ONLY or (isinstance(b, Mapping) and b.get("readOnly")) for k, b in kinds)


def _propagation(mount: VolumeMount) -> str:
    mode = mount.get("mountPropagation") or "None"
    if mode not in PROPAGATION:
        raise ContainerConfigError(f'invalid MountPropagation mode: "{mode}"')
    return PROPAGATION[mode]


def _recursive(mount: VolumeMount, supported: bool) -> bool:
    """Whether the mounts below are to be read-only as well."""
    mode = mount.get("recursiveReadOnly") or "Disabled"
    if mode == "Disabled":
        return False
    asked = f'volume "{mount["name"]}" requested recursive read-only mode, but it is not'
    if not mount.get("readOnly"):
        raise ContainerConfigError(f"{asked} read-only")
    if (mount.get("mountPropagation") or "None") != "None":
        raise ContainerConfigError(f'{asked} compatible with propagation "{mount["mountPropagation"]}"')
    if mode == "IfPossible":
        return supported
    if mode != "Enabled":
        raise ContainerConfigError(f'unknown recursive read-only mode "{mode}"')
    if not supported:
        raise ContainerConfigError(f"{asked} supported by the runtime")
    return True


def block_devices(container: ContainerSpec, devices: Mapping[str, BlockDevice]) -> list[dict[str, str]]:
    """The CRI devices of a container's volumeDevices, `devices` by volume; raises ContainerConfigError."""
    result = []
    for wanted in container.get("volumeDevices") or []:
        device = devices.get(wanted["name"])
        if device is None:
            raise ContainerConfigError(
                f'cannot find volume "{wanted["name"]}" to pass into container "{container["name"]}"'
            )
        result.append(
            {
                "host_path": device.host_path,
                "container_path": absolute(wanted["devicePath"]),
                "permissions": "r" if device.read_only else "mrw",
            }
        )
    return result


def mounts_etc_hosts(container: ContainerSpec) -> bool:
    """Whether the container brings an /etc/hosts of its own."""
    return any(mount.get("mountPath") == ETC_HOSTS for mount in container.get("volumeMounts") or [])


def absolute(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"
