"""Namespaces of a pod and its containers, with the field and enum names of the CRI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubelet_mp.errors import ContainerConfigError
from kubelet_mp.model import podspec
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.podspec import ContainerSpec, Pod


@dataclass(frozen=True, slots=True)
class UserNamespace:
    """Ids 0 to length-1 of the pod are host_id to host_id+length-1 of the host, users and groups alike."""

    host_id: int
    length: int = 65536

    def mappings(self) -> list[dict[str, int]]:
        return [{"host_id": self.host_id, "container_id": 0, "length": self.length}]


def namespace_options(pod: Pod, userns: UserNamespace | None = None) -> dict[str, Any]:
    """namespace_options of the sandbox and of its ordinary containers."""
    spec = podspec.spec(pod)
    options: dict[str, Any] = {
        "network": "NODE" if spec.get("hostNetwork") else "POD",
        "ipc": "NODE" if spec.get("hostIPC") else "POD",
        "pid": "NODE" if spec.get("hostPID") else "POD" if spec.get("shareProcessNamespace") else "CONTAINER",
    }
    if not podspec.host_users(pod) and userns is not None:
        options["userns_options"] = {"mode": "POD", "uids": userns.mappings(), "gids": userns.mappings()}
    return options


def container_namespaces(
    pod: Pod, container: ContainerSpec, userns: UserNamespace | None = None, target_id: str = ""
) -> dict[str, Any]:
    """namespace_options of a container; an ephemeral one may join the processes of its target.

    target_id: runtime id of the container that `targetContainerName` names. Raises ContainerConfigError
    when that is needed and not known.
    """
    options, target = namespace_options(pod, userns), container.get("targetContainerName") or ""
    if not target or options["pid"] != "CONTAINER":
        return options
    if not target_id:
        raise ContainerConfigError(f"unable to find target container {target}")
    return options | {"pid": "TARGET", "target_id": target_id}


def check_user_namespace(pod: Pod, node: NodeView, handler: str, userns: UserNamespace | None) -> None:
    """Raises ContainerConfigError when the pod wants a user namespace that it cannot get."""
    if podspec.host_users(pod):
        return
    if not node.handler(handler).user_namespaces:
        raise ContainerConfigError(
            f"pod {podspec.describe(pod)} needs a user namespace, "
            f'which runtime handler "{handler}" does not support',
            "set hostUsers to true, or use a runtime with user namespaces (containerd 2.0 or newer)",
        )
    if userns is None:
        raise ContainerConfigError(f"no user ids have been allocated to pod {podspec.describe(pod)}")
