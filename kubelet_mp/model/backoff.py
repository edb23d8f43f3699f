"""Back-off entries that grow while something keeps failing, on a clock whose readings are passed in.

All times are seconds of one monotonic clock. Source: Kubernetes 1.37 k8s.io/client-go/util/flowcontrol
and pkg/kubelet/kuberuntime (container restarts), pkg/kubelet/images (pulls).
"""

from __future__ import annotations

from dataclasses import dataclass

INITIAL = 10.0
MAXIMUM = 300.0
FORGET_AFTER = 600.0  # fixed, even when the maximum is configured lower


@dataclass(slots=True)
class Entry:
    """`delay` is what the next attempt has to wait, counted from what it is measured against."""

    delay: float
    updated: float


class Backoff:
    """Delays by key: `initial`, then twice the last one up to `maximum`; used by one thread at a time."""

    def __init__(self, initial: float = INITIAL, maximum: float = MAXIMUM) -> None:
        self.initial, self.maximum = min(initial, maximum), maximum
        self._entries: dict[str, Entry] = {}

    def delay(self, key: str) -> float:
        """The delay now in force, 0 without an entry."""
        entry = self._entries.get(key)
        return entry.delay if entry else 0.0

    def ready_at(self, key: str, event: float) -> float:
        """When an attempt may follow the event (a container's finish): `event` itself if nothing is held back."""
        entry = self._entries.get(key)
        if entry is None or self._forgotten(entry, event):
            return event
        return event + entry.delay

    def ready_since_update(self, key: str, now: float) -> float:
        """When an attempt may follow the last failed one; `now` if nothing is held back."""
        entry = self._entries.get(key)
        if entry is None or self._forgotten(entry, now):
            return now
        return max(now, entry.updated + entry.delay)

    def next(self, key: str, event: float, now: float) -> float:
        """Note an attempt at `now` that follows `event`; returns the delay before the one after it."""
        entry = self._entries.get(key)
        if entry is None or self._forgotten(entry, event):
            self._entries[key] = Entry(self.initial, now)
            return self.initial
        entry.delay = min(entry.delay * 2, self.maximum)
        entry.updated = now
        return entry.delay

    def reset(self, key: str) -> None:
        self._entries.pop(key, None)

    def prune(self, now: float) -> None:
        """Drop entries that are forgotten anyway."""
        self._entries = {k: e for k, e in self._entries.items() if now - e.updated <= FORGET_AFTER + e.delay}

    def _forgotten(self, entry: Entry, event: float) -> bool:
        return event - entry.updated > FORGET_AFTER
