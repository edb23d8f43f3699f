"""Names, labels, annotations and log paths of what the kubelet creates in the runtime.

Kubernetes 1.37 pkg/kubelet/kuberuntime/labels.go, legacy.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubelet_mp.model import podspec, runtime
from kubelet_mp.model.containerhash import container_hash
from kubelet_mp.model.gotext import go_json
from kubelet_mp.model.podspec import ContainerSpec, Pod

MAX_FILE_NAME = 255
LOG_SUFFIX = ".log"
_PORT_FIELDS = ("name", "hostPort", "containerPort", "protocol", "hostIP")


def sandbox_labels(pod: Pod) -> dict[str, str]:
    """The pod's labels and the three that find a pod again."""
    return {**podspec.labels_of(pod), **_identity(pod)}


def sandbox_annotations(pod: Pod) -> dict[str, str]:
    return dict(podspec.annotations_of(pod))


def container_labels(pod: Pod, container: ContainerSpec) -> dict[str, str]:
    return {**_identity(pod), runtime.CONTAINER_NAME: container["name"]}


def _identity(pod: Pod) -> dict[str, str]:
    return {
        runtime.POD_NAME: podspec.name(pod),
        runtime.POD_NAMESPACE: podspec.namespace(pod),
        runtime.POD_UID: podspec.uid(pod),
    }


def container_annotations(
    pod: Pod, container: ContainerSpec, restart_count: int, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What a restarted kubelet has to know of a container. extra: annotations of device plugins."""
    grace = podspec.spec(pod).get("terminationGracePeriodSeconds")
    deletion_grace = podspec.metadata(pod).get("deletionGracePeriodSeconds")
    pre_stop = (container.get("lifecycle") or {}).get("preStop")
    ports = container.get("ports")
    return {
        **(extra or {}),
        runtime.CONTAINER_HASH: container_hash(container),
        runtime.RESTART_COUNT: str(restart_count),
        runtime.TERMINATION_PATH: container.get("terminationMessagePath") or "",
        runtime.TERMINATION_POLICY: container.get("terminationMessagePolicy") or "",
        **({runtime.POD_GRACE: str(grace)} if grace is not None else {}),
        **({runtime.POD_DELETION_GRACE: str(deletion_grace)} if deletion_grace is not None else {}),
        **({runtime.PRE_STOP: go_json(pre_stop)} if pre_stop else {}),
        **({runtime.PORTS: go_json([_port(port) for port in ports])} if ports else {}),
    }


def _port(port: Mapping[str, Any]) -> dict[str, Any]:
    """A ContainerPort in the order of its Go type, empty fields left out."""
    return {name: port[name] for name in _PORT_FIELDS if port.get(name)}


def pod_log_dir(pod_logs_dir: str, pod: Pod) -> str:
    """PODLOGSDIR/NAMESPACE_NAME_UID."""
    return f"{pod_logs_dir}/{podspec.namespace(pod)}_{podspec.name(pod)}_{podspec.uid(pod)}"


def container_log_path(container_name: str, restart_count: int) -> str:
    """The log file of one instance, relative to the pod's log directory."""
    return f"{container_name}/{restart_count}{LOG_SUFFIX}"


def parse_pod_log_dir(name: str) -> tuple[str, str, str] | None:
    """(namespace, name, UID) of the last part of a pod's log directory, None when it is no such name."""
    parts = tuple(name.split("_"))
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 and all(parts) else None


def log_link_name(pod_name: str, namespace: str, container_name: str, container_id: str) -> str:
    """The name of a container's link in /var/log/containers, at most 255 bytes."""
    stem = f"{pod_name}_{namespace}_{container_name}-{container_id}"
    return stem[: MAX_FILE_NAME - len(LOG_SUFFIX)] + LOG_SUFFIX


def parse_log_link(name: str) -> str | None:
    """The container id in the name of a link, None when it has none or it was cut."""
    stem, suffix = name.removesuffix(LOG_SUFFIX), name.endswith(LOG_SUFFIX)
    identifier = stem.rpartition("-")[2]
    return identifier if suffix and "-" in stem and len(name) < MAX_FILE_NAME else None


def restart_count(last_restart_count: int | None, highest_log: int | None) -> int:
    """Of the next instance: one more than the last's, else than the newest log file's, else 0."""
    previous = last_restart_count if last_restart_count is not None else highest_log
    return 0 if previous is None else previous + 1
