"""Clocks, RFC 3339 times and Go durations.

The only module that reads the system clocks. Deadlines and ages use monotonic(); wall_time() is only for
what people and the API read. Durations are float seconds, absolute instants int nanoseconds since the epoch.
"""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

NS = 1_000_000_000
_MAX_NS = 2**63 - 1
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": NS, "m": 60 * NS, "h": 3600 * NS}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """What code that measures or shows time is given; tests pass one that they move by hand."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary start, never going back; not comparable between machines."""

    def wall_time(self) -> float:
        """Seconds since the epoch, as the machine believes."""

    def wall_time_ns(self) -> int:
        """Nanoseconds since the epoch, as the machine believes."""


class SystemClock:
    """The machine's own clocks. CLOCK_MONOTONIC is the same in every process of one boot."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall_time(self) -> float:
        return time.time()

    def wall_time_ns(self) -> int:
        return time.time_ns()


SYSTEM: Clock = SystemClock()


def monotonic() -> float:
    """Seconds of CLOCK_MONOTONIC, for deadlines and ages."""
    return time.monotonic()


def wall_time() -> float:
    """Seconds since the epoch, for display only."""
    return time.time()


def wall_time_ns() -> int:
    """Nanoseconds since the epoch, for display only."""
    return time.time_ns()


def _civil(ns: int) -> tuple[str, int]:
    """("2024-01-02T03:04:05", nanoseconds within the second) in UTC."""
    seconds, rest = divmod(ns, NS)
    when = _EPOCH + timedelta(seconds=seconds)
    return f"{when.year:04d}-{when:%m-%dT%H:%M:%S}", rest


def rfc3339(ns: int) -> str:
    """metav1.Time: whole seconds in UTC, `2024-01-02T03:04:05Z` (fraction cut)."""
    return _civil(ns)[0] + "Z"


def rfc3339_micro(ns: int) -> str:
    """metav1.MicroTime (leases, events): always six digits."""
    text, rest = _civil(ns)
    return f"{text}.{rest // 1000:06d}Z"


def rfc3339_nano(ns: int) -> str:
    """Go's RFC3339Nano: up to nine digits, trailing zeros cut, no point when zero."""
    text, rest = _civil(ns)
    return f"{text}.{rest:09d}".rstrip("0").rstrip(".") + "Z"


def rfc3339_log(ns: int) -> str:
    """The form of the CRI log files: always nine digits."""
    text, rest = _civil(ns)
    return f"{text}.{rest:09d}Z"


def rfc3339_now(clock: Clock = SYSTEM) -> str:
    """The present in the form of metav1.Time."""
    return rfc3339(clock.wall_time_ns())


def parse_rfc3339(text: str) -> int:
    """Nanoseconds since the epoch of an RFC 3339 time (any fraction, any offset).

    Raises ValueError. Digits beyond the ninth are cut.
    """
    match = _RFC3339.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not an RFC 3339 time")
    *numbers, fraction, zone = match.groups()
    when = datetime(*map(int, numbers), tzinfo=UTC) - _offset(zone)  # type: ignore[misc,arg-type]
    span = when - _EPOCH
    return (span.days * 86400 + span.seconds) * NS + int((fraction or "0").ljust(9, "0")[:9])


def _offset(zone: str) -> timedelta:
    if zone in "Zz":
        return timedelta()
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > 23 or minutes > 59:
        raise ValueError(f"{zone!r} is not a time zone offset")
    return timedelta(hours=hours, minutes=minutes) * (-1 if zone[0] == "-" else 1)


def parse_duration_ns(text: str) -> int:
    """Nanoseconds of a Go duration ("1m20s", "100ms", "-1.5h", "0"). Raises ValueError."""
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return 0
    total = at = 0
    for match in _PART.finditer(body):
        if match.start() != at:
            break
        total += _scaled(match[1], _UNITS[match[2]])
        at = match.end()
    if not body or at != len(body):
        raise ValueError(f"{text!r} is not a duration; write it like 10s, 1m30s or 100ms")
    if total > _MAX_NS:
        raise ValueError(f"{text!r} is longer than a duration can be (292 years)")
    return -total if text[0] == "-" else total


def _scaled(number: str, unit: int) -> int:
    """number × unit, exact, cut to whole nanoseconds."""
    whole, _, fraction = number.partition(".")
    return int(whole or 0) * unit + int(fraction or 0) * unit // 10 ** len(fraction)


def parse_duration(text: str) -> float:
    """Seconds of a Go duration. Raises ValueError."""
    return parse_duration_ns(text) / NS


def format_duration(seconds: float) -> str:
    """The Go text of a duration in seconds, e.g. 80 → "1m20s", 0.1 → "100ms"."""
    return format_duration_ns(round(seconds * NS))


def format_duration_ns(ns: int) -> str:
    """The Go text of a duration in nanoseconds, as time.Duration.String gives it."""
    if ns == 0:
        return "0s"
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    if ns < NS:
        unit = "ns" if ns < 10**3 else "µs" if ns < 10**6 else "ms"
        return sign + _decimal(ns, _UNITS[unit]) + unit
    minutes, rest = divmod(ns, 60 * NS)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{head}{_decimal(rest, NS)}s"


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    digits = len(str(unit)) - 1
    return f"{whole}.{rest:0{digits}d}".rstrip("0").rstrip(".") if rest else str(whole)
