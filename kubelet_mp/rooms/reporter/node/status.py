"""The status that the Node should have, as far as a kubelet says it. Pure.

Source: Kubernetes 1.37 pkg/kubelet/nodestatus/setters.go and pkg/kubelet/kubelet_node_status.go.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any

from kubelet_mp.config import Settings
from kubelet_mp.model import quantity
from kubelet_mp.model.requests import HUGEPAGES
from kubelet_mp.model.runtime import Image, RuntimeState
from kubelet_mp.rooms.reporter.node import conditions
from kubelet_mp.rooms.reporter.node.seen import Host, Seen
from kubelet_mp.wire.messages import NodeFacts

Status = dict[str, Any]
MAX_NAMES = 5  # of one image
_SEMANTIC = re.compile(r"v?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)")
_GENERIC = re.compile(r"\s*v?(\d+(?:\.\d+)*)")


def status(settings: Settings, host: Host, seen: Seen, old: Mapping[str, Any], now: str) -> Status:
    """`old`: the status that the Node has, {} for a new one; what is not known yet stays as it is there.

    now: RFC 3339, for the conditions.
    """
    storage = settings.kubelet.local_storage_capacity_isolation
    found: Status = {}
    if seen.facts is not None:
        found["addresses"] = addresses(settings, seen.facts, old.get("addresses") or ())
        found["capacity"] = resources(seen.facts.capacity, old.get("capacity") or {})
        found["allocatable"] = resources(seen.facts.allocatable, old.get("capacity") or {})
    found["nodeInfo"] = node_info(settings, host, seen.runtime)
    found["daemonEndpoints"] = {"kubeletEndpoint": {"Port": settings.kubelet.port}}
    if seen.images is not None:
        found["images"] = images(seen.images, settings.kubelet.node_status_max_images)
    if seen.runtime is not None and seen.runtime.name:
        found["runtimeHandlers"] = handlers(seen.runtime)
        found["features"] = {"supplementalGroupsPolicy": seen.runtime.supplemental_groups_policy}
    found["conditions"] = conditions.stamp(
        conditions.conditions(seen, storage), old.get("conditions") or (), now)
    return found


def addresses(settings: Settings, facts: NodeFacts, old: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """With an external cloud provider the addresses are its own to write, once there are any."""
    hostname = {"type": "Hostname", "address": facts.hostname}
    if settings.cloud_provider == "external":
        known = [dict(one) for one in old]
        if known:
            return known
        if not provided(settings):
            return [hostname]
    return [*({"type": "InternalIP", "address": ip} for ip in facts.addresses), hostname]


def provided(settings: Settings) -> tuple[str, ...]:
    """The addresses given by --node-ip; one that is unspecified only prefers a family."""
    return tuple(ip for ip in settings.node_ips if not ipaddress.ip_address(ip).is_unspecified)


def resources(have: Mapping[str, int], old: Mapping[str, Any]) -> dict[str, str]:
    """A ResourceList; extended resources in the capacity `old`, which somebody else wrote, stay.

    have: cpu in millicores, the others in whole units.
    """
    extended = {name: str(text) for name, text in old.items() if is_extended(name)}
    return {**extended, **{name: _quantity(name, amount) for name, amount in have.items()}}


def is_extended(name: str) -> bool:
    """Whether a resource is neither Kubernetes' own nor hugepages."""
    return "/" in name and not name.partition("/")[0].endswith("kubernetes.io")


def _quantity(name: str, amount: int) -> str:
    if name == "cpu":
        return str(quantity.from_milli(amount))
    binary = name in ("memory", "ephemeral-storage") or name.startswith(HUGEPAGES)
    return str(quantity.from_value(amount, "BinarySI" if binary else "DecimalSI"))


def node_info(settings: Settings, host: Host, runtime: RuntimeState | None) -> dict[str, Any]:
    """Without the runtime's version as long as it has not told it."""
    who = host.identity
    found: dict[str, Any] = {
        "machineID": who.machine_id, "systemUUID": who.system_uuid, "bootID": who.boot_id,
        "kernelVersion": who.kernel_version, "osImage": who.os_image,
        "kubeletVersion": settings.kubernetes_version, "operatingSystem": who.operating_system,
        "architecture": who.architecture,
    }
    if runtime is not None and runtime.name:
        found["containerRuntimeVersion"] = f"{runtime.name}://{plain_version(runtime.version)}"
    if host.swap:
        found["swap"] = {"capacity": host.swap}
    return found


def plain_version(text: str) -> str:
    """A version without a leading v; of one that is not semantic only its numbers."""
    if match := _SEMANTIC.fullmatch(text):
        return match[1]
    match = _GENERIC.match(text)
    return match[1] if match else text


def images(found: Iterable[Image], most: int) -> list[dict[str, Any]]:
    """The largest ones, their digests before their tags; `most` below 0: all of them."""
    ordered = sorted(found, key=lambda image: (-image.size, image.id))
    return [_image(image) for image in (ordered if most < 0 else ordered[:most])]


def _image(image: Image) -> dict[str, Any]:
    names = [*image.digests, *image.tags][:MAX_NAMES]
    return {"names": names, "sizeBytes": image.size} if names else {"sizeBytes": image.size}


def handlers(runtime: RuntimeState) -> list[dict[str, Any]]:
    """The default handler has no name."""
    found = []
    for handler in runtime.handlers:
        features = {"recursiveReadOnlyMounts": handler.recursive_read_only_mounts,
                    "userNamespaces": handler.user_namespaces}
        found.append({**({"name": handler.name} if handler.name else {}), "features": features})
    return found
