"""Keeps what a file said for a moment when it vanishes or breaks, because it is often only being replaced.

Editors move a file away and write a new one; scripts truncate and write again. Taken at its word, each would
stop a running pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kubelet_mp.rooms.sources.source import Item

GONE_HOLD = 0.05  # s that a vanished file still counts
BROKEN_HOLD = 1.0  # s that the last good content of a broken file still counts, and its problem is kept back


@dataclass(frozen=True, slots=True)
class Kept:
    """What is remembered of an origin: the good item that still counts, and since when it is not good."""

    good: Item | None
    bad_since: float | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """`items`: what counts now; `kept`: to be given to the next call; `recheck`: seconds until a hold ends."""

    items: dict[str, Item]
    kept: dict[str, Kept]
    recheck: float | None


def settle(kept: Mapping[str, Kept], found: Iterable[Item], now: float) -> Settled:
    """Judge what was `found` at monotonic `now`, knowing what was `kept` before."""
    by_origin = {item.origin: item for item in found}
    result = Settled({}, {}, None)
    waits: list[float] = []
    for origin in [*by_origin, *(origin for origin in kept if origin not in by_origin)]:
        item, before = by_origin.get(origin), kept.get(origin, Kept(None))
        if item is not None and not item.problem:
            result.items[origin] = item
            result.kept[origin] = Kept(item)
            continue
        since = now if before.bad_since is None else before.bad_since
        wait = since + (GONE_HOLD if item is None else BROKEN_HOLD) - now
        if wait > 0:
            waits.append(wait)
            result.kept[origin] = Kept(before.good, since)
            if before.good is not None:
                result.items[origin] = before.good
        elif item is not None:
            result.items[origin] = item
            result.kept[origin] = Kept(None, since)
    return Settled(result.items, result.kept, min(waits, default=None))
