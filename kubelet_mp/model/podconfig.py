"""PodSandboxConfig and ContainerConfig as nested dicts with the field and enum names of the CRI.

Kubernetes 1.37 pkg/kubelet/kuberuntime. What a pod asks for and cannot get raises ContainerConfigError:
nothing that a pod says is left out silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubelet_mp.errors import ContainerConfigError
from kubelet_mp.model import criname, podspec
from kubelet_mp.model.containermounts import (
    ETC_HOSTS,
    BlockDevice,
    MountedVolume,
    SubPath,
    absolute,
    block_devices,
    mounts_etc_hosts,
    subpaths_to_prepare,
    volume_mounts,
)
from kubelet_mp.model.dns import DNSResult
from kubelet_mp.model.environment import EnvFiles, Lookup, environment, no_files
from kubelet_mp.model.expansion import expand_all
from kubelet_mp.model.hostname import Hostname
from kubelet_mp.model.namespaces import UserNamespace, check_user_namespace
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.podspec import ContainerSpec, Pod
from kubelet_mp.model.resources import linux_resources, overhead_resources, sandbox_resources
from kubelet_mp.model.security import container_security, sandbox_security, sysctls
from kubelet_mp.model.servicevars import Service

__all__ = [
    "BlockDevice",
    "ContainerInputs",
    "DeviceGrant",
    "MountedVolume",
    "NodeView",
    "SubPath",
    "UserNamespace",
    "container_config",
    "container_environment",
    "sandbox_config",
    "subpaths_to_prepare",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceGrant:
    """What device plugins and claims give to a container; mounts and devices have the CRI's field names."""

    envs: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mapping[str, Any], ...] = ()
    devices: tuple[Mapping[str, str], ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    cdi_devices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerInputs:
    """What the world has to say before one container can be created.

    image_ref: reference or id that the image pull gave. image_uid, image_user: user of the image.
    volumes, block_devices: by volume name. subpaths: position in volumeMounts → host path, for each of
    subpaths_to_prepare(). termination_log: host path of the message file, None for none.
    etc_hosts: host path of the pod's hosts file, None when it has no address and is not on the host network.
    lookup: None without an API server. services: None while not read yet.
    extra_groups: groups of the pod's persistent volumes.
    target_id: runtime id of the target of an ephemeral container.
    """

    restart_count: int = 0
    image_ref: str = ""
    image_uid: int | None = None
    image_user: str = ""
    pod_ips: tuple[str, ...] = ()
    volumes: Mapping[str, MountedVolume] = field(default_factory=dict)
    subpaths: Mapping[int, str] = field(default_factory=dict)
    block_devices: Mapping[str, BlockDevice] = field(default_factory=dict)
    termination_log: str | None = None
    etc_hosts: str | None = None
    lookup: Lookup | None = None
    env_files: EnvFiles = no_files
    services: Iterable[Service] | None = ()
    extra_groups: tuple[int, ...] = ()
    userns: UserNamespace | None = None
    runtime_handler: str = ""
    target_id: str = ""
    exclusive_cpus: bool = False
    cpuset_cpus: str = ""
    cpuset_mems: str = ""
    grant: DeviceGrant | None = None


# ---------------------------------------------------------------- sandbox


def sandbox_config(
    pod: Pod,
    node: NodeView,
    *,
    attempt: int,
    cgroup_parent: str,
    dns: DNSResult,
    hostname: Hostname,
    extra_groups: Sequence[int] = (),
    userns: UserNamespace | None = None,
    runtime_handler: str = "",
) -> dict[str, Any]:
    """The PodSandboxConfig of a pod. Raises ContainerConfigError (event FailedCreatePodSandBox)."""
    check_user_namespace(pod, node, runtime_handler, userns)
    return {
        "metadata": {
            "name": podspec.name(pod),
            "uid": podspec.uid(pod),
            "namespace": podspec.namespace(pod),
            "attempt": attempt,
        },
        "hostname": "" if podspec.host_network(pod) else hostname.kernel or hostname.name,
        "log_directory": criname.pod_log_dir(node.pod_logs_dir, pod),
        "dns_config": dns.as_config(),
        "port_mappings": port_mappings(pod),
        "labels": criname.sandbox_labels(pod),
        "annotations": criname.sandbox_annotations(pod),
        "linux": {
            "cgroup_parent": cgroup_parent,
            "security_context": sandbox_security(pod, extra_groups=extra_groups, userns=userns),
            "sysctls": sysctls(pod),
            "overhead": overhead_resources(pod, node),
            "resources": sandbox_resources(pod, node),
        },
    }


def port_mappings(pod: Pod) -> list[dict[str, Any]]:
    """Every port of the regular containers, with or without a host port."""
    ports = [port for c in podspec.regular_containers(pod) for port in c.get("ports") or []]
    return [
        {
            "protocol": _protocol(port),
            "container_port": port["containerPort"],
            "host_port": port.get("hostPort") or 0,
            "host_ip": port.get("hostIP") or "",
        }
        for port in ports
    ]


def _protocol(port: Mapping[str, Any]) -> str:
    protocol = port.get("protocol") or "TCP"
    if protocol not in ("TCP", "UDP", "SCTP"):
        raise ContainerConfigError(f'unknown protocol "{protocol}" of port {port.get("containerPort")}')
    return str(protocol)


# ---------------------------------------------------------------- container


def container_environment(
    pod: Pod, container: ContainerSpec, node: NodeView, inputs: ContainerInputs
) -> dict[str, str]:
    """All variables of a container, those of device plugins first. Raises ContainerConfigError."""
    granted = inputs.grant.envs if inputs.grant else {}
    own = environment(
        pod, container, node, pod_ips=inputs.pod_ips, lookup=inputs.lookup, services=inputs.services,
        files=inputs.env_files
    )
    return {**granted, **own}


def container_config(
    pod: Pod, container: ContainerSpec, node: NodeView, inputs: ContainerInputs
) -> dict[str, Any]:
    """The ContainerConfig of one container (init, regular or ephemeral). Raises ContainerConfigError."""
    _check_claims(container, inputs)
    name, grant = container["name"], inputs.grant or DeviceGrant()
    env = container_environment(pod, container, node, inputs)
    return {
        "metadata": {"name": name, "attempt": inputs.restart_count},
        "image": {"image": inputs.image_ref, "user_specified_image": container.get("image") or ""},
        "command": expand_all(container.get("command") or [], env),
        "args": expand_all(container.get("args") or [], env),
        "working_dir": container.get("workingDir") or "",
        "envs": [{"key": key, "value": value} for key, value in env.items()],
        "mounts": _mounts(pod, container, node, inputs, env),
        "devices": [*map(dict, grant.devices), *block_devices(container, inputs.block_devices)],
        "CDI_devices": [{"name": device} for device in grant.cdi_devices],
        "labels": criname.container_labels(pod, container),
        "annotations": criname.container_annotations(pod, container, inputs.restart_count, grant.annotations),
        "log_path": criname.container_log_path(name, inputs.restart_count),
        "stdin": bool(container.get("stdin")),
        "stdin_once": bool(container.get("stdinOnce")),
        "tty": bool(container.get("tty")),
        **_stop_signal(container, node),
        "linux": _linux(pod, container, node, inputs),
    }


def _linux(pod: Pod, container: ContainerSpec, node: NodeView, inputs: ContainerInputs) -> dict[str, Any]:
    return {
        "resources": linux_resources(
            pod,
            container,
            node,
            exclusive_cpus=inputs.exclusive_cpus,
            cpuset_cpus=inputs.cpuset_cpus,
            cpuset_mems=inputs.cpuset_mems,
        ),
        "security_context": container_security(
            pod,
            container,
            node,
            image_uid=inputs.image_uid,
            image_user=inputs.image_user,
            extra_groups=inputs.extra_groups,
            userns=inputs.userns,
            target_id=inputs.target_id,
        ),
    }


def _mounts(
    pod: Pod, container: ContainerSpec, node: NodeView, inputs: ContainerInputs, env: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Device plugins' mounts, volumes, the hosts file, the termination message file; all of them id-mapped
    when the pod has a user namespace."""
    mounts = [dict(mount) for mount in (inputs.grant.mounts if inputs.grant else ())]
    mounts += volume_mounts(
        pod,
        container,
        inputs.volumes,
        inputs.subpaths,
        env,
        rro=node.handler(inputs.runtime_handler).recursive_read_only_mounts,
        selinux=node.selinux,
    )
    if inputs.etc_hosts and not mounts_etc_hosts(container):
        mounts.append(_own_file(inputs.etc_hosts, ETC_HOSTS, node))
    if inputs.termination_log and container.get("terminationMessagePath"):
        path = absolute(container["terminationMessagePath"])
        mounts.append(_own_file(inputs.termination_log, path, node))
    return [mount | _id_mappings(pod, inputs.userns) for mount in mounts]


def _own_file(host_path: str, container_path: str, node: NodeView) -> dict[str, Any]:
    """A file of the kubelet's own that the container may write."""
    return {"host_path": host_path, "container_path": container_path, "selinux_relabel": node.selinux}


def _id_mappings(pod: Pod, userns: UserNamespace | None) -> dict[str, Any]:
    if podspec.host_users(pod) or userns is None:
        return {}
    return {"uidMappings": userns.mappings(), "gidMappings": userns.mappings()}


def _stop_signal(container: ContainerSpec, node: NodeView) -> dict[str, str]:
    """lifecycle.stopSignal under the feature ContainerStopSignals; otherwise the image's is used."""
    signal = (container.get("lifecycle") or {}).get("stopSignal")
    if not signal or not node.container_stop_signals:
        return {}
    return {"stop_signal": signal.replace("+", "PLUS").replace("-", "MINUS")}


def _check_claims(container: ContainerSpec, inputs: ContainerInputs) -> None:
    if (container.get("resources") or {}).get("claims") and inputs.grant is None:
        raise ContainerConfigError(
            f'container "{container["name"]}" uses resource claims, which have not been prepared',
            "dynamic resources need an API server and a driver on this node",
        )
