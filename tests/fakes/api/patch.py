"""Merge patch, JSON patch (add, replace, remove) and as much of the strategic one as core/v1 needs."""

from __future__ import annotations

import copy
from typing import Any

MERGE_KEYS = {
    "conditions": "type", "addresses": "type", "podIPs": "ip", "hostIPs": "ip", "ownerReferences": "uid",
    "containers": "name", "initContainers": "name", "ephemeralContainers": "name", "volumes": "name", "env": "name",
    "imagePullSecrets": "name", "hostAliases": "ip", "volumeMounts": "mountPath", "resourceClaimStatuses": "name",
}
"""Lists that are merged by key; all others (containerStatuses, taints, images …) are replaced."""

UNIONS = {"finalizers"}


def merge(old: Any, new: Any, *, strategic: bool = False) -> Any:
    """The value that a patch `new` makes of `old`."""
    if not isinstance(new, dict):
        return copy.deepcopy(new)
    if strategic and new.get("$patch") == "replace":
        return {name: copy.deepcopy(value) for name, value in new.items() if name != "$patch"}
    result = dict(old) if isinstance(old, dict) else {}
    for name, value in new.items():
        if name.startswith("$"):
            _directive(result, name, value)
        elif value is None:
            result.pop(name, None)
        elif strategic and isinstance(value, list):
            result[name] = _merge_list(name, result.get(name) or [], value)
        else:
            result[name] = merge(result.get(name), value, strategic=strategic)
    return result


def _directive(result: dict[str, Any], name: str, value: Any) -> None:
    kind, _, field = name.partition("/")
    if kind == "$deleteFromPrimitiveList":
        result[field] = [item for item in result.get(field) or [] if item not in value]


def _merge_list(name: str, old: list[Any], new: list[Any]) -> list[Any]:
    if name in UNIONS:
        return [*old, *(item for item in new if item not in old)]
    key = MERGE_KEYS.get(name)
    if key is None:
        return copy.deepcopy(new)
    if any(item.get("$patch") == "replace" for item in new):
        return [copy.deepcopy(item) for item in new if "$patch" not in item]
    result = list(old)
    for item in new:
        at = next((at for at, one in enumerate(result) if one.get(key) == item.get(key)), None)
        if item.get("$patch") == "delete":
            result = [one for one in result if one.get(key) != item.get(key)]
        elif at is None:
            result.append(copy.deepcopy(item))
        else:
            result[at] = merge(result[at], item, strategic=True)
    return result


def json_patch(old: Any, operations: list[dict[str, Any]]) -> Any:
    """RFC 6902 without move, copy and test."""
    result = copy.deepcopy(old)
    for operation in operations:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        at = result
        for part in way:
            at = at[int(part)] if isinstance(at, list) else at[part]
        _apply(at, last, operation)
    return result


def _apply(at: Any, last: str, operation: dict[str, Any]) -> None:
    if isinstance(at, list):
        index = len(at) if last == "-" else int(last)
        if operation["op"] == "add":
            at.insert(index, operation["value"])
        elif operation["op"] == "remove":
            del at[index]
        else:
            at[index] = operation["value"]
    elif operation["op"] == "remove":
        del at[last]
    else:
        at[last] = operation["value"]
