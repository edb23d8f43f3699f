"""From the text of a flag to the value it has in the v1beta1 document; one entry a kind of flag.

Every parser raises ValueError with a reason. Lists and maps given several times add up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubelet_mp.config import features
from kubelet_mp.model.clock import parse_duration

_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Kind:
    """parse: text → value; alone: the text meant when no value is given (None: a value is required);
    add: joins a later value of the same flag to an earlier one (None: the later one wins)."""

    parse: Callable[[str], Any]
    alone: str | None = None
    add: Callable[[Any, Any], Any] | None = None


def _pairs(text: str, sign: str) -> dict[str, str]:
    """ "a=1,b=2" → {"a": "1", "b": "2"}."""
    found = {}
    for part in filter(None, text.split(",")):
        key, separator, value = part.partition(sign)
        if not separator:
            raise ValueError(f"malformed pair, expect key{sign}value, got {part!r}")
        found[key.strip()] = value.strip()
    return found


def _headers(text: str) -> dict[str, list[str]]:
    """ "a:1,b:2" → {"a": ["1"], "b": ["2"]}."""
    found: dict[str, list[str]] = {}
    for part in filter(None, text.split(",")):
        name, separator, value = part.partition(":")
        if not separator:
            raise ValueError("malformed pair, expect name:value")
        found.setdefault(name.strip(), []).append(value.strip())
    return found


def _add_headers(old: dict[str, list[str]], new: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: old.get(name, []) + new.get(name, []) for name in {**old, **new}}


def _integer(bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = int(text, 0)
        if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
            raise ValueError(f"{text} is out of the range of a {bits}-bit integer")
        return number

    return parse


def _duration(text: str) -> str:
    parse_duration(text)
    return text


def _list(text: str) -> list[str]:
    return text.split(",") if text else []


def _taints(text: str) -> list[dict[str, str]]:
    """ "key=value:Effect,key:Effect" → taints."""
    return [_taint(part) for part in filter(None, text.split(","))]


def _taint(text: str) -> dict[str, str]:
    head, _, effect = text.rpartition(":")
    key, _, value = head.partition("=")
    if not key or effect not in _TAINT_EFFECTS:
        raise ValueError(f"invalid taint {text!r}, expect key=value:{'|'.join(_TAINT_EFFECTS)}")
    return {"key": key, "value": value, "effect": effect}


def _reserved_memory(text: str) -> list[dict[str, Any]]:
    """ "0:memory=1Gi,hugepages-2Mi=1Gi;1:memory=2Gi" → one entry a NUMA node."""
    found = []
    for part in filter(None, text.split(";")):
        node, separator, limits = part.partition(":")
        if not separator or not node.isdigit():
            raise ValueError(f"malformed reservation {part!r}, expect NODE:TYPE=QUANTITY,…")
        found.append({"numaNode": int(node), "limits": _pairs(limits, "=")})
    return found


def _vmodule(text: str) -> list[dict[str, Any]]:
    """ "pod*=4,plan=6" → patterns with their verbosity."""
    return [{"filePattern": name, "verbosity": int(level)} for name, level in _pairs(text, "=").items()]


def _version(text: str) -> str:
    if text == "raw" or text.startswith("v"):
        return text
    return "true" if features.parse_bool(text) else ""


def _join(old: Any, new: Any) -> Any:
    return old + new


def _union(old: Any, new: Any) -> Any:
    return {**old, **new}


KINDS: dict[str, Kind] = {
    "string": Kind(str),
    "bool": Kind(features.parse_bool, alone="true"),
    "int32": Kind(_integer(32)),
    "int64": Kind(_integer(64)),
    "duration": Kind(_duration),
    "list": Kind(_list, add=_join),
    "map": Kind(lambda text: _pairs(text, "="), add=_union),
    "less-than-map": Kind(lambda text: _pairs(text, "<"), add=_union),
    "gates": Kind(features.parse, add=_union),
    "headers": Kind(_headers, add=_add_headers),
    "taints": Kind(_taints, add=_join),
    "reserved-memory": Kind(_reserved_memory, add=_join),
    "vmodule": Kind(_vmodule, add=_join),
    "version": Kind(_version, alone="true"),
}
