"""Checks of resource names and amounts, of containers and of the pod."""

from __future__ import annotations

from typing import Any

from kubelet_mp.model import quantity
from kubelet_mp.model.quantity import Quantity
from kubelet_mp.model.validation import names
from kubelet_mp.model.validation.errors import Errors

Json = dict[str, Any]

_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_STANDARD = frozenset([
    *_COMPUTE, *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _COMPUTE),
    "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
    "persistentvolumeclaims", "storage", "requests.storage", "services.nodeports", "services.loadbalancers",
])
_HUGE = "hugepages-"


def check_container_resources(resources: Json, path: str, errors: Errors, claims: frozenset[str]) -> None:
    """limits, requests and claims of a container; `claims`: the pod's resource claims by name."""
    _check(resources, path, errors, pod_level=False)
    for at, claim in enumerate(resources.get("claims", [])):
        if not claim.get("name"):
            errors.required(f"{path}.claims[{at}]")
        elif claim["name"] not in claims:
            errors.not_found(f"{path}.claims[{at}]", claim["name"])


def check_pod_resources(resources: Json, path: str, errors: Errors) -> None:
    """Pod-level resources: cpu, memory and huge pages, no claims."""
    if "claims" in resources:
        errors.forbidden(f"{path}.claims", "claims may not be set for Resources at pod-level")
    _check(resources, path, errors, pod_level=True)


def check_overhead(overhead: dict[str, str], path: str, errors: Errors) -> None:
    _check({"limits": overhead}, path, errors, pod_level=False)


def _check(resources: Json, path: str, errors: Errors, *, pod_level: bool) -> None:
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            where = f"{path}.{kind}[{name}]"
            _name(name, where, errors, pod_level=pod_level)
            _amount(name, quantity.parse(text), where, errors)
    for name, text in requests.items():
        _against_limit(name, text, limits.get(name), path, errors)
    used = {*limits, *requests}
    if any(name.startswith(_HUGE) for name in used) and not used & {"cpu", "memory"}:
        errors.forbidden(path, "HugePages require cpu or memory")


def _name(name: str, path: str, errors: Errors, *, pod_level: bool) -> None:
    problems = names.qualified_name(name)
    if problems:
        errors.each_invalid(path, name, problems)
    elif pod_level:
        if name not in ("cpu", "memory") and not name.startswith(_HUGE):
            errors.unsupported(path, name, ("cpu", "hugepages-", "memory"))
    elif "/" not in name:
        if name not in _STANDARD and not name.startswith((_HUGE, "requests." + _HUGE)):
            errors.invalid(path, name, "must be a standard resource type or fully qualified")
        if name not in _COMPUTE and not name.startswith(_HUGE):
            errors.invalid(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        errors.invalid(path, name, "doesn't follow extended resource name standard")


def is_native(name: str) -> bool:
    """A resource of Kubernetes itself, not of a device plugin."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """A resource that a device plugin or an operator offers."""
    if is_native(name) or name.startswith("requests."):
        return False
    return not names.qualified_name("requests." + name)


def _overcommits(name: str) -> bool:
    return is_native(name) and not name.startswith(_HUGE)


def _amount(name: str, amount: Quantity, path: str, errors: Errors) -> None:
    if amount < quantity.ZERO:
        errors.invalid(path, str(amount), "must be greater than or equal to 0")
    if is_extended(name) and amount.nano % quantity.NANO:
        errors.invalid(path, str(amount), "must be an integer")
    if name.startswith(_HUGE) and not _divisible(name, amount):
        errors.invalid(path, str(amount), f"{amount} is not positive integer multiple of {name}")


def _divisible(name: str, amount: Quantity) -> bool:
    try:
        page = quantity.value(name.removeprefix(_HUGE))
    except ValueError:
        return False
    return page > 0 and amount.value() % page == 0


def _against_limit(name: str, text: str, limit: str | None, path: str, errors: Errors) -> None:
    if limit is None:
        if not _overcommits(name):
            errors.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    request, most = quantity.parse(text), quantity.parse(limit)
    if request != most and not _overcommits(name):
        errors.invalid(f"{path}.requests", text, f"must be equal to {name} limit of {limit}")
    elif request > most:
        errors.invalid(f"{path}.requests", text, f"must be less than or equal to {name} limit of {limit}")
