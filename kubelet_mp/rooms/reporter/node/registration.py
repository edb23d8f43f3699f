"""The Node that registers this machine, and what an existing one lacks. Pure.

Source: Kubernetes 1.37 pkg/kubelet/kubelet_node_status.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubelet_mp.config import Settings
from kubelet_mp.model.requests import HUGEPAGES
from kubelet_mp.rooms.reporter.node.seen import Host
from kubelet_mp.rooms.reporter.node.status import Status, is_extended, provided

ATTACH_DETACH = "volumes.kubernetes.io/controller-managed-attach-detach"
PROVIDED_IP = "alpha.kubernetes.io/provided-node-ip"
_UNINITIALIZED = {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"}
_DEFAULT_LABELS = (
    "kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch", "node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)

Json = dict[str, Any]


def labels(settings: Settings, host: Host) -> dict[str, str]:
    """The labels of a new Node; --node-labels override the others."""
    who = host.identity
    return {
        "kubernetes.io/hostname": settings.hostname or settings.node_name,
        "kubernetes.io/os": who.operating_system, "kubernetes.io/arch": who.architecture,
        "beta.kubernetes.io/os": who.operating_system, "beta.kubernetes.io/arch": who.architecture,
        **settings.node_labels,
    }


def taints(settings: Settings) -> list[Json]:
    given = [_taint(one.key, one.value, one.effect) for one in settings.kubelet.register_with_taints]
    if settings.cloud_provider == "external" and _UNINITIALIZED not in given:
        given.append(dict(_UNINITIALIZED))
    return given


def _taint(key: str, value: str, effect: str) -> Json:
    return {"key": key, **({"value": value} if value else {}), "effect": effect}


def marks(settings: Settings) -> dict[str, str | None]:
    """The annotations that a kubelet keeps; None for one that must not be there."""
    external = settings.cloud_provider == "external"
    return {
        ATTACH_DETACH: "true" if settings.kubelet.enable_controller_attach_detach else None,
        PROVIDED_IP: ",".join(provided(settings)) or None if external else None,
    }


def initial(settings: Settings, host: Host, status: Status) -> Json:
    """The Node to create. `status`: the one that it shall have from the start."""
    spec: Json = {}
    if found := taints(settings):
        spec["taints"] = found
    if settings.kubelet.provider_id:
        spec["providerID"] = settings.kubelet.provider_id
    told = {name: text for name, text in marks(settings).items() if text}
    meta = {"name": settings.node_name, "labels": labels(settings, host), **({"annotations": told} if told else {})}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": status}


def reconciled(node: Mapping[str, Any], wanted: Mapping[str, Any], settings: Settings) -> Json:
    """The patch that makes an existing Node one of ours; {} for none. `wanted`: what `initial` made.

    Labels and taints beside the default ones are left alone: they may have been set by an administrator.
    """
    meta = node.get("metadata") or {}
    have, want = meta.get("labels") or {}, wanted["metadata"]["labels"]
    changed = {name: want[name] or None for name in _DEFAULT_LABELS if name in want and have.get(name) != want[name]}
    mark = marks(settings)[ATTACH_DETACH]
    patch: Json = {"labels": changed} if changed else {}
    if (meta.get("annotations") or {}).get(ATTACH_DETACH) != mark:
        patch["annotations"] = {ATTACH_DETACH: mark}
    found: Json = {"metadata": patch} if patch else {}
    if reset := _reset(node.get("status") or {}, wanted["status"]):
        found["status"] = reset
    return found


def _reset(old: Mapping[str, Any], wanted: Mapping[str, Any]) -> Json:
    """Extended resources are none until a device plugin comes; huge pages may not be there any more."""
    found = {}
    for field in ("capacity", "allocatable"):
        have = old.get(field) or {}
        zero = {name: "0" for name, text in have.items() if is_extended(name) and str(text) != "0"}
        gone = [name for name in have if name.startswith(HUGEPAGES) and name not in wanted.get(field, have)]
        if zero or gone:
            found[field] = {**zero, **dict.fromkeys(gone)}
    return found


def upkeep(node: Mapping[str, Any], settings: Settings, host: Host) -> Json:
    """The patch of the metadata that every pass of the status makes where it is missing; {} for none."""
    meta = node.get("metadata") or {}
    want = {"kubernetes.io/os": host.identity.operating_system, "kubernetes.io/arch": host.identity.architecture}
    have = meta.get("labels") or {}
    patch: Json = {}
    if changed := {name: text for name, text in want.items() if have.get(name) != text}:
        patch["labels"] = changed
    told = marks(settings)[PROVIDED_IP]
    if (meta.get("annotations") or {}).get(PROVIDED_IP) != told:
        patch["annotations"] = {PROVIDED_IP: told}
    return patch
