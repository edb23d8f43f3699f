"""What a source is, and what it says each time it is read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Pod = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Item:
    """What one origin (file path or URL) defines. An origin with a `problem` may still define pods.

    pod: namespace/name that the problem is about, where known. age: when the origin got its present form,
    in seconds since the epoch (only compared: of two that define one pod the older is preferred).
    warnings: what was ignored in it.
    """

    origin: str
    pods: tuple[Pod, ...] = ()
    problem: str = ""
    pod: str = ""
    age: float = 0.0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """All that a source says now: origin → item.

    ready: the source has said at least once what it wants, be it nothing. note: a remark on the source as a
    whole. recheck: seconds until it should be read again (before its next turn), None if not.
    """

    source: str
    items: Mapping[str, Item] = field(default_factory=dict)
    ready: bool = True
    note: str = ""
    recheck: float | None = None


class Source(ABC):
    """One place that pods come from. `name` is file, http or api; `period` the seconds between readings."""

    name: str
    period: float

    @abstractmethod
    def read(self) -> Reading:
        """Say everything. May block for long: it is called on a thread of its own, never twice at a time."""

    @abstractmethod
    def close(self) -> None:
        """Free what is held."""
