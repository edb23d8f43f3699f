"""Prometheus text of several rooms as one: families joined by name, counters that survive a room's restart."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_SUMMED = frozenset({"counter", "histogram", "summary"})
_MAX_BASE = 5000  # series kept of the former incarnations of one room


@dataclass(slots=True)
class Family:
    """`samples`: series (name with its labels) → value, in the order of the text."""

    name: str
    help: str = ""
    type: str = "untyped"
    samples: dict[str, float] = field(default_factory=dict)

    @property
    def summed(self) -> bool:
        return self.type in _SUMMED


Families = dict[str, Family]


def parse(text: str) -> Families:
    """The families of a text in the exposition format 0.0.4; times of samples and `_created` are dropped."""
    families: Families = {}
    current = Family("")
    for line in text.splitlines():
        if line.startswith("# "):
            current = _head(families, current, line)
        elif line and not line.startswith("#"):
            _sample(families, current, line)
    return {name: family for name, family in families.items() if family.samples and not name.endswith("_created")}


def _head(families: Families, current: Family, line: str) -> Family:
    kind, _, rest = line[2:].partition(" ")
    if kind not in ("HELP", "TYPE"):
        return current
    name, _, value = rest.partition(" ")
    family = families.setdefault(name, Family(name))
    if kind == "HELP":
        family.help = value
    else:
        family.type = value
    return family


def _sample(families: Families, current: Family, line: str) -> None:
    end = line.rfind("}") + 1 or line.find(" ")
    series, rest = line[:end], line[end:].split()
    name = series.partition("{")[0]
    family = current if current.name and name.startswith(current.name) else families.setdefault(name, Family(name))
    try:
        family.samples[series] = float(rest[0])
    except (IndexError, ValueError):
        return  # not a sample


def merge(parts: Iterable[Families]) -> Families:
    """One set of families: equal series of counters, histograms and summaries add up, of others the last stands."""
    merged: Families = {}
    for families in parts:
        for name, family in families.items():
            into = merged.setdefault(name, Family(name, family.help, family.type))
            for series, value in family.samples.items():
                into.samples[series] = into.samples.get(series, 0.0) + value if into.summed else value
    return merged


def render(families: Families) -> str:
    return "".join(_lines(families[name]) for name in sorted(families))


def _lines(family: Family) -> str:
    head = f"# HELP {family.name} {family.help}\n# TYPE {family.name} {family.type}\n"
    return head + "".join(f"{series} {_value(value)}\n" for series, value in family.samples.items())


def _value(value: float) -> str:
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value).replace("inf", "Inf").replace("nan", "NaN")


class Ledger:
    """The newest text of every room, and the counts of its former incarnations."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: dict[str, str] = {}
        self._base: dict[str, Families] = {}

    def update(self, room: str, text: str) -> None:
        with self._lock:
            self._texts[room] = text

    def restarted(self, room: str) -> None:
        """The room begins to count from zero: what it had counted is added from now on."""
        with self._lock:
            text = self._texts.pop(room, "")
            if not text:
                return
            counted = {name: family for name, family in parse(text).items() if family.summed}
            base = merge([self._base.get(room, {}), counted])
            if sum(len(family.samples) for family in base.values()) <= _MAX_BASE:
                self._base[room] = base

    def families(self, *more: Families) -> Families:
        """Everything together; `more` comes from the asker itself."""
        with self._lock:
            bases, texts = list(self._base.values()), list(self._texts.values())
        return merge([*bases, *map(parse, texts), *more])

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            return iter(list(self._texts))
