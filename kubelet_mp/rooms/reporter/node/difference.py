"""The strategic merge patch from the Node that is to the one that should be. Pure.

Only what differs is written, and of the conditions only those that do, by their merge key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HEARTBEAT = "lastHeartbeatTime"
_WHOLE = ("capacity", "allocatable")  # a name that should not be there is taken out
_OWN_KEYS = {"nodeInfo": ("swap",)}  # what is taken out of others where it should not be

Json = dict[str, Any]


def of_status(old: Mapping[str, Any], new: Mapping[str, Any]) -> Json:
    """What to write of the fields in `new`; {} for nothing. What `new` does not have is left alone."""
    found = {}
    for name, value in new.items():
        changed = _field(name, old.get(name), value)
        if changed is not None:
            found[name] = changed
    return found


def matters(patch: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Whether the patch says more than that the node still lives."""
    if set(patch) - {"conditions"}:
        return True
    return "conditions" in patch and _news(patch["conditions"], old.get("conditions") or ())


def _news(patched: list[Json], old: Any) -> bool:
    before = {one["type"]: _lasting(one) for one in old}
    return any(before.get(one["type"]) != _lasting(one) for one in patched)


def _lasting(condition: Mapping[str, Any]) -> Json:
    return {name: value for name, value in condition.items() if name != HEARTBEAT}


def _field(name: str, old: Any, new: Any) -> Any:
    """The patch of one field, None for none."""
    if name == "conditions":
        before = {one["type"]: one for one in old or ()}
        return [one for one in new if before.get(one["type"]) != one] or None
    if _bare(old or type(new)()) == _bare(new):
        return None
    if name == "addresses":  # two of one type would be merged into one
        return [*new, {"$patch": "replace"}]
    if isinstance(new, dict):
        return _map(name, old or {}, new) or None
    return new


def _map(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Json:
    gone = [key for key in old if key not in new and (name in _WHOLE or key in _OWN_KEYS.get(name, ()))]
    changed = {key: value for key, value in new.items() if _bare(old.get(key)) != _bare(value)}
    return {**changed, **dict.fromkeys(gone)}


def _bare(value: Any) -> Any:
    """Without what is empty, which the server may write or leave out."""
    if isinstance(value, dict):
        return {name: inner for name, one in value.items() if (inner := _bare(one)) not in (None, "", [], {})}
    if isinstance(value, list):
        return [_bare(one) for one in value]
    return None if value == "" else value
