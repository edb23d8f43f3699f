"""Checks of references to the pod's own fields and resources (the downward API), and of mapped keys."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from kubelet_mp.model.validation import names
from kubelet_mp.model.validation.errors import Errors

ENV_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)
VOLUME_FIELDS = (
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
)
RESOURCES = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
MODE_TEXT = "must be a number between 0 and 0777 (octal), both inclusive"

_LABELS = (
    *VOLUME_FIELDS, "spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "spec.schedulerName",
    "status.phase", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs", "spec.host",
)
_SUBSCRIPT = re.compile(r"([^\[\]]*)\['(.*)'\]", re.DOTALL)
_SHOWN = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}
_DECIMAL = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"


def check_field_ref(ref: dict[str, Any], supported: Iterable[str], path: str, errors: Errors) -> None:
    """A fieldRef: one of `supported`, or a subscripted annotation or label."""
    field = ref.get("fieldPath", "")
    if not field:
        errors.required(f"{path}.fieldPath")
        return
    if ref.get("apiVersion") != "v1":
        detail = f"error converting fieldPath: unsupported pod version: {ref.get('apiVersion')}"
        errors.invalid(f"{path}.fieldPath", field, detail)
        return
    match = _SUBSCRIPT.fullmatch(field)
    if match:
        _subscripted(match[1], match[2], field, path, errors)
    elif field not in _LABELS:
        detail = f"error converting fieldPath: field label not supported: {field}"
        errors.invalid(f"{path}.fieldPath", field, detail)
    elif ("spec.nodeName" if field == "spec.host" else field) not in supported:
        errors.unsupported(f"{path}.fieldPath", field, supported)


def _subscripted(base: str, key: str, field: str, path: str, errors: Errors) -> None:
    if base == "metadata.annotations":
        errors.each_invalid(path, key.lower(), names.qualified_name(key.lower()))
    elif base == "metadata.labels":
        errors.each_invalid(path, key, names.qualified_name(key))
    else:
        detail = f"error converting fieldPath: field label does not support subscript: {field}"
        errors.invalid(f"{path}.fieldPath", field, detail)


def check_resource_ref(ref: dict[str, Any], path: str, errors: Errors, *, in_volume: bool = False) -> None:
    """A resourceFieldRef; in a volume it names its container."""
    resource = ref.get("resource", "")
    if in_volume and not ref.get("containerName"):
        errors.required(f"{path}.containerName")
    elif not resource:
        errors.required(f"{path}.resource")
    elif resource not in RESOURCES and not _is_hugepages(resource):
        errors.unsupported(f"{path}.resource", resource, RESOURCES)
    _divisor(ref, resource, f"{path}.divisor", errors)


def _is_hugepages(resource: str) -> bool:
    return resource.startswith(("limits.hugepages-", "requests.hugepages-"))


def _divisor(ref: dict[str, Any], resource: str, path: str, errors: Errors) -> None:
    divisor = ref.get("divisor", "0")
    if divisor == "0":
        return
    if resource.endswith(".cpu"):
        what, good = "cpu", ("1m and 1" if divisor not in ("1m", "1") else "")
    else:
        what = _SHOWN.get(resource.partition(".")[2], "hugepages" if _is_hugepages(resource) else "")
        good = _DECIMAL if what and divisor not in _DECIMAL.split(", ") else ""
    if good:
        errors.invalid(path, resource, f"only divisor's values {good} are supported with the {what} resource")


def check_mode(item: dict[str, Any], name: str, path: str, errors: Errors) -> None:
    """A file mode, where given."""
    if name in item and not 0 <= item[name] <= 0o777:
        errors.invalid(f"{path}.{name}", item[name], MODE_TEXT)


def check_user(item: dict[str, Any], name: str, path: str, errors: Errors) -> None:
    """A numeric user, where given."""
    if name in item:
        errors.each_invalid(f"{path}.{name}", item[name], names.user_id(item[name]))


def check_downward_items(items: list[dict[str, Any]], path: str, errors: Errors) -> None:
    for at, item in enumerate(items):
        _downward_item(item, f"{path}[{at}]", errors)


def _downward_item(item: dict[str, Any], path: str, errors: Errors) -> None:
    check_item_path(item, path, errors)
    if "fieldRef" in item:
        check_field_ref(item["fieldRef"], VOLUME_FIELDS, f"{path}.fieldRef", errors)
        if "resourceFieldRef" in item:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.invalid(path, "resource", detail)
    elif "resourceFieldRef" in item:
        check_resource_ref(item["resourceFieldRef"], f"{path}.resourceFieldRef", errors, in_volume=True)
    else:
        errors.required(path, "one of fieldRef and resourceFieldRef is required")


def check_key_items(items: list[dict[str, Any]], path: str, errors: Errors) -> None:
    """keyToPath lists of ConfigMap and Secret volumes."""
    for at, item in enumerate(items):
        if not item.get("key"):
            errors.required(f"{path}[{at}].key")
        check_item_path(item, f"{path}[{at}]", errors)


def check_item_path(item: dict[str, Any], path: str, errors: Errors) -> None:
    """The path, mode and user of one file of a volume."""
    target = item.get("path", "")
    if not target:
        errors.required(f"{path}.path")
    errors.each_invalid(f"{path}.path", target, names.unreserved_path(target))
    check_mode(item, "mode", path, errors)
    check_user(item, "user", path, errors)
