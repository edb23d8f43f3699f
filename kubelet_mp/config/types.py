"""Field types of the configuration: Go durations, quantities, integers of Go's widths, and the base section.

Types are strict, as Go's JSON decoder is: "10250" is no integer, 10 is no duration, yes-or-no is a boolean.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, Strict

from kubelet_mp.model.clock import format_duration, parse_duration

T = TypeVar("T")

_ACRONYMS = {
    "api": "API", "ca": "CA", "cfs": "CFS", "cidr": "CIDR", "cpus": "CPUs", "dns": "DNS", "gc": "GC",
    "id": "ID", "iptables": "IPTables", "oom": "OOM", "qos": "QOS", "qps": "QPS", "tls": "TLS",
    "ttl": "TTL", "url": "URL",
}  # fmt: skip


class ZeroIsDefault:
    """Marks a field whose zero value ("" or 0 or 0s) in a file stands for "not set", hence the default."""


def camel(name: str) -> str:
    """The name in the file of a field: `image_gc_high_threshold_percent` → imageGCHighThresholdPercent."""
    first, *rest = name.split("_")
    return first + "".join(_ACRONYMS.get(word, word.capitalize()) for word in rest)


def _duration(value: Any) -> float:
    if not isinstance(value, str):
        raise ValueError("must be a duration in quotes or letters, like 10s or 1m30s")
    return parse_duration(value)


def _flush_frequency(value: Any) -> float:
    if isinstance(value, int) and not isinstance(value, bool):
        return value / 1e9
    return _duration(value)


def _shown(seconds: float) -> str:
    return format_duration(seconds)


_AS_TEXT = PlainSerializer(_shown, return_type=str)
Duration = Annotated[float, BeforeValidator(_duration), _AS_TEXT]
"""Seconds; a Go duration in files and flags."""
TimeOrDuration = Annotated[float, BeforeValidator(_flush_frequency), _AS_TEXT]
"""Seconds; a Go duration or a number of nanoseconds in files."""
Bool = Annotated[bool, Strict()]
Str = Annotated[str, Strict()]
Float = Annotated[float, Field(strict=False)]
Int32 = Annotated[int, Strict(), Field(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Strict(), Field(ge=-(2**63), le=2**63 - 1)]
Filled = Annotated[T, ZeroIsDefault()]
"""A field that cannot be set to its zero value from a file."""


class Section(BaseModel):
    """Base of KubeletConfiguration and its nested objects: frozen, camelCase in files, unknown ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=camel, populate_by_name=True)
