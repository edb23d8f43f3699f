"""fieldRef and resourceFieldRef: what a pod may learn of itself (Kubernetes 1.37 pkg/fieldpath)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kubelet_mp.errors import ContainerConfigError
from kubelet_mp.model import podspec, quantity
from kubelet_mp.model.gotext import go_quote
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.podspec import ContainerSpec, Pod
from kubelet_mp.model.requests import HUGEPAGES, container_limits, container_requests, pod_level_limits

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]", re.DOTALL)
_RESOURCE = re.compile(rf"(limits|requests)\.(cpu|memory|ephemeral-storage|{HUGEPAGES}.+)")
_ONE = quantity.from_value(1)


def field_value(field_path: str, pod: Pod, node: NodeView, pod_ips: Sequence[str] = ()) -> str:
    """The value of a fieldRef of an environment variable; raises ContainerConfigError for an unknown path.

    pod_ips: addresses of the sandbox; on the host network the node's are taken.
    """
    ips = node.node_ips if podspec.host_network(pod) else pod_ips
    values = {
        "spec.nodeName": podspec.spec(pod).get("nodeName") or "",
        "spec.serviceAccountName": podspec.spec(pod).get("serviceAccountName") or "",
        "status.hostIP": "".join(node.node_ips[:1]),
        "status.hostIPs": ",".join(node.node_ips),
        "status.podIP": "".join(ips[:1]),
        "status.podIPs": ",".join(ips),
    }
    return values[field_path] if field_path in values else metadata_value(field_path, pod, whole_maps=False)


def metadata_value(field_path: str, pod: Pod, *, whole_maps: bool = True) -> str:
    """The value of a metadata.* fieldRef. Whole labels and annotations (one `key="value"` a line, sorted) are
    only for volumes. Raises ContainerConfigError for an unknown path."""
    maps = {"labels": podspec.labels_of(pod), "annotations": podspec.annotations_of(pod)}
    plain = {
        "metadata.name": podspec.name,
        "metadata.namespace": podspec.namespace,
        "metadata.uid": podspec.uid,
    }
    if field_path in plain:
        return plain[field_path](pod)
    if match := _SUBSCRIPT.fullmatch(field_path):
        return maps[match[1]].get(match[2], "")
    kind = field_path.removeprefix("metadata.")
    if whole_maps and kind in maps and kind != field_path:
        return format_map(maps[kind])
    raise ContainerConfigError(f"unsupported fieldPath: {field_path}")


def format_map(entries: Mapping[str, str]) -> str:
    """Labels or annotations as the file of a volume shows them."""
    return "\n".join(f"{key}={go_quote(entries[key])}" for key in sorted(entries))


def resource_value(ref: Mapping[str, Any], pod: Pod, container: ContainerSpec, node: NodeView) -> str:
    """The value of a resourceFieldRef in units of its divisor (1 when none), rounded up.

    container: the one that asks; `containerName` may point to another. Raises ContainerConfigError for an
    unknown container or resource, or a divisor that is not above zero.
    """
    target = _container(ref.get("containerName") or "", pod, container)
    match = _RESOURCE.fullmatch(ref.get("resource") or "")
    if not match:
        raise ContainerConfigError(f"unsupported container resource: {ref.get('resource')}")
    kind, name = match.groups()
    whole = container_requests(target).get(name, 0) if kind == "requests" else _limit(name, pod, target, node)
    exact = quantity.from_milli(whole) if name == "cpu" else quantity.from_value(whole)
    return str(exact.divided_up(_divisor(ref)))


def _container(name: str, pod: Pod, asking: ContainerSpec) -> ContainerSpec:
    if name in ("", asking.get("name")):
        return asking
    found = next((c for c in podspec.all_containers(pod) if c.get("name") == name), None)
    if found is None:
        raise ContainerConfigError(f"container {name} not found")
    return found


def _limit(name: str, pod: Pod, container: ContainerSpec, node: NodeView) -> int:
    """The limit that holds: the container's, else the pod's, else all that pods may use of the node."""
    own = container_limits(container).get(name) or pod_level_limits(pod).get(name)
    if own or (name == "ephemeral-storage" and not node.local_storage_isolation):
        return own or 0
    return node.allocatable.get(name, 0)


def _divisor(ref: Mapping[str, Any]) -> quantity.Quantity:
    try:
        divisor = quantity.parse(ref.get("divisor") or "0")
    except ValueError as error:
        raise ContainerConfigError(f"divisor of resourceFieldRef {ref.get('resource')}: {error}") from error
    if divisor.nano < 0:
        raise ContainerConfigError(f"divisor of resourceFieldRef {ref.get('resource')} is below zero")
    return divisor if divisor else _ONE
