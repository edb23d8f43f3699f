"""Environment variables that name the services of a namespace (Kubernetes 1.37 pkg/kubelet/envvars)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubelet_mp.model import podspec
from kubelet_mp.model.podspec import Pod

Service = Mapping[str, Any]
MASTER = ("default", "kubernetes")


def service_variables(pod: Pod, services: Iterable[Service]) -> dict[str, str]:
    """Variables of the services that the pod is told of: those of its namespace (unless enableServiceLinks
    is false) and default/kubernetes, each only if it has a cluster IP. services: plain Service objects."""
    links = podspec.spec(pod).get("enableServiceLinks") is not False
    chosen: dict[str, Service] = {}
    for service in services:
        namespace, name = podspec.namespace(service), podspec.name(service)
        if not _has_ip(service):
            continue
        if links and namespace == podspec.namespace(pod):
            chosen[name] = service
        elif (namespace, name) == MASTER:
            chosen.setdefault(name, service)
    return {key: value for name in sorted(chosen) for key, value in _variables(chosen[name]).items()}


def _has_ip(service: Service) -> bool:
    return podspec.spec(service).get("clusterIP") not in (None, "", "None")


def _variables(service: Service) -> dict[str, str]:
    prefix, address = _upper(podspec.name(service)), podspec.spec(service)["clusterIP"]
    ports = podspec.spec(service).get("ports") or []
    found = {f"{prefix}_SERVICE_HOST": address}
    if ports:
        found[f"{prefix}_SERVICE_PORT"] = str(ports[0]["port"])
    found |= {f"{prefix}_SERVICE_PORT_{_upper(p['name'])}": str(p["port"]) for p in ports if p.get("name")}
    for position, port in enumerate(ports):
        found |= _link(prefix, address, port, first=position == 0)
    return found


def _link(prefix: str, address: str, port: Mapping[str, Any], *, first: bool) -> dict[str, str]:
    """The variables that container links once had."""
    protocol, number = port.get("protocol") or "TCP", str(port["port"])
    host = f"[{address}]" if ":" in address else address
    url = f"{protocol.lower()}://{host}:{number}"
    base = f"{prefix}_PORT_{number}_{protocol.upper()}"
    head = {f"{prefix}_PORT": url} if first else {}
    return head | {
        base: url,
        f"{base}_PROTO": protocol.lower(),
        f"{base}_PORT": number,
        f"{base}_ADDR": address,
    }


def _upper(name: str) -> str:
    return name.replace("-", "_").upper()
