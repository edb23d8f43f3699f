"""Which events are worth a request, and as what: repeats are counted, floods are combined or dropped. Pure.

Source: Kubernetes 1.37 k8s.io/client-go/tools/record (events_cache.go): its defaults.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TypeVar

from kubelet_mp.wire.messages import Event

COMBINED = "(combined from similar events): "
SIMILAR, SIMILAR_SPAN = 10, 600.0  # so many messages of one reason, no further apart than so many s, are combined
BURST, REFILL = 25.0, 1 / 300  # events of one object and type at once, and a second after
KEPT = 4096  # keys remembered of each kind

Key = tuple[str, ...]
V = TypeVar("V")


@dataclass(slots=True)
class Series:
    """One object in the API: name "" before it was created. Times in seconds since the epoch."""

    name: str
    message: str
    first: float
    last: float
    count: int = 0


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


@dataclass(slots=True)
class _Similar:
    last: float
    messages: set[str] = field(default_factory=set)


class Correlator:
    """For one source; by one thread."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._buckets: OrderedDict[Key, _Bucket] = OrderedDict()
        self._similar: OrderedDict[Key, _Similar] = OrderedDict()
        self._series: OrderedDict[Key, Series] = OrderedDict()

    def take(self, event: Event, now: float) -> Series | None:
        """The series that the event belongs to, counted already; None: it is dropped as spam. now: monotonic s."""
        about = (event.kind, event.namespace, event.name, event.uid, event.type)
        alike = (*about, event.reason)
        combined = self._combines(alike, event.message, now)
        key = alike if combined else (*alike, event.field_path, event.message)
        message = COMBINED + event.message if combined else event.message
        series = self._series.pop(key, None) or Series("", message, event.wall, event.wall)
        series.message, series.last, series.count = message, event.wall, series.count + 1
        self._put(self._series, key, series)
        return series if self._allowed(about, now) else None

    def _allowed(self, about: Key, now: float) -> bool:
        bucket = self._buckets.pop(about, None) or _Bucket(BURST, now)
        bucket.tokens = min(BURST, bucket.tokens + (now - bucket.at) * REFILL)
        bucket.at = now
        self._put(self._buckets, about, bucket)
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    def _combines(self, alike: Key, message: str, now: float) -> bool:
        known = self._similar.pop(alike, None)
        if known is None or now - known.last > SIMILAR_SPAN:
            known = _Similar(now)
        known.last = now
        known.messages.add(message)
        self._put(self._similar, alike, known)
        if len(known.messages) < SIMILAR:
            return False
        known.messages.pop()
        return True

    def _put(self, cache: OrderedDict[Key, V], key: Key, value: V) -> None:
        cache[key] = value
        while len(cache) > self._kept:
            cache.popitem(last=False)
