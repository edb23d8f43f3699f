"""Reading the plain decoded object of a pod: the small questions that many decisions ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Pod = Mapping[str, Any]
ContainerSpec = Mapping[str, Any]

SOURCE = "kubernetes.io/config.source"
MIRROR = "kubernetes.io/config.mirror"


def spec(pod: Pod) -> Mapping[str, Any]:
    return pod.get("spec") or {}


def metadata(pod: Pod) -> Mapping[str, Any]:
    return pod.get("metadata") or {}


def name(pod: Pod) -> str:
    return metadata(pod).get("name") or ""


def namespace(pod: Pod) -> str:
    return metadata(pod).get("namespace") or "default"


def uid(pod: Pod) -> str:
    return metadata(pod).get("uid") or ""


def labels_of(pod: Pod) -> Mapping[str, str]:
    return metadata(pod).get("labels") or {}


def annotations_of(pod: Pod) -> Mapping[str, str]:
    return metadata(pod).get("annotations") or {}


def full_name(pod: Pod) -> str:
    """NAME_NAMESPACE, the key of a pod among those of one node."""
    return f"{name(pod)}_{namespace(pod)}"


def describe(pod: Pod) -> str:
    """NAME_NAMESPACE(UID), how texts name a pod."""
    return f"{full_name(pod)}({uid(pod)})"


def regular_containers(pod: Pod) -> list[ContainerSpec]:
    return spec(pod).get("containers") or []


def init_containers(pod: Pod) -> list[ContainerSpec]:
    """Init containers, sidecars among them, in spec order."""
    return spec(pod).get("initContainers") or []


def ephemeral_containers(pod: Pod) -> list[ContainerSpec]:
    return spec(pod).get("ephemeralContainers") or []


def lasting_containers(pod: Pod) -> list[ContainerSpec]:
    """Init and regular containers: all that count for the pod, and have resources."""
    return [*init_containers(pod), *regular_containers(pod)]


def all_containers(pod: Pod) -> Iterator[ContainerSpec]:
    """Init, regular and ephemeral containers."""
    yield from init_containers(pod)
    yield from regular_containers(pod)
    yield from ephemeral_containers(pod)


def is_sidecar(pod: Pod, container: ContainerSpec) -> bool:
    """Whether it is an init container that restarts always."""
    return container.get("restartPolicy") == "Always" and any(
        c.get("name") == container.get("name") for c in init_containers(pod)
    )


def host_network(pod: Pod) -> bool:
    return bool(spec(pod).get("hostNetwork"))


def host_users(pod: Pod) -> bool:
    """Whether the pod shares the host's user namespace (the default)."""
    return spec(pod).get("hostUsers") is not False


def volumes(pod: Pod) -> list[Mapping[str, Any]]:
    return spec(pod).get("volumes") or []
