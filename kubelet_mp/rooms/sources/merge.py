"""Makes one set of desired pods of what all sources say: pure, and told everything.

One pod name is never desired twice. If several origins define it, the one that is desired already stays as
long as it defines it; among newcomers the first source, then the older origin, then the first by name. The
others are reported, each with the origin that it collides with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubelet_mp.model.staticpod import SEEN
from kubelet_mp.rooms.sources.source import Item, Pod, Reading
from kubelet_mp.wire.messages import DesiredPod, DesiredSet, Message, SourceProblem

BY_NAME = frozenset({"file", "http"})
"""Sources whose pods are told apart by name. The API server has its own rule: names are unique there, and a
mirror pod bears the name of the static pod that it shows."""

Place = tuple[str, str]  # source and origin


@dataclass(frozen=True, slots=True)
class Claim:
    """One pod as one origin defines it; `rank` is the place of its source among the configured ones."""

    pod: Pod
    source: str
    rank: int
    item: Item
    index: int

    @property
    def name(self) -> str:
        return full_name(self.pod)

    @property
    def place(self) -> Place:
        return self.source, self.item.origin


@dataclass(frozen=True, slots=True)
class Clash:
    """`loser` is not desired because `winner` has its name or uid."""

    loser: Claim
    winner: Claim


def full_name(pod: Pod) -> str:
    """namespace/name"""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def choose(claims: Iterable[Claim], incumbents: Mapping[str, Place]) -> tuple[list[Claim], list[Clash]]:
    """Which claims are desired. `incumbents`: name → where its pod comes from until now."""

    def order(claim: Claim) -> tuple[Any, ...]:
        newcomer = incumbents.get(claim.name) != claim.place
        return newcomer, claim.rank, claim.item.age, claim.item.origin, claim.index

    names: dict[str, Claim] = {}
    uids: dict[str, Claim] = {}
    winners, clashes = [], []
    for claim in sorted(claims, key=order):
        by_name = names.get(claim.name) if claim.source in BY_NAME else None
        winner = by_name or uids.get(claim.pod["metadata"]["uid"])
        if winner is not None:
            clashes.append(Clash(claim, winner))
            continue
        winners.append(claim)
        uids[claim.pod["metadata"]["uid"]] = claim
        if claim.source in BY_NAME:
            names[claim.name] = claim
    return winners, clashes


@dataclass
class Merger:
    """What was said and sent so far. `sources`: the configured ones, the most important first."""

    sources: Sequence[str]
    _readings: dict[str, Reading] = field(default_factory=dict)
    _desired: dict[str, Claim] = field(default_factory=dict)  # by uid
    _problems: dict[str, SourceProblem] = field(default_factory=dict)  # by origin
    _announced: DesiredSet | None = None
    clashes: list[Clash] = field(default_factory=list)

    def apply(self, reading: Reading) -> list[Message]:
        """The messages that follow from a reading: pods gone, pods new or changed, the set, problems."""
        self._readings[reading.source] = reading
        incumbents = {c.name: c.place for c in self._desired.values() if c.source in BY_NAME}
        winners, self.clashes = choose(self._claims(), incumbents)
        before = self._desired
        self._desired = {claim.pod["metadata"]["uid"]: claim for claim in winners}
        messages: list[Message] = [
            DesiredPod(uid, None, claim.source) for uid, claim in before.items() if uid not in self._desired
        ]
        for uid, claim in self._desired.items():
            old = before.get(uid)
            if old is None or old.source != claim.source or not _same(old.pod, claim.pod):
                messages.append(_desired_pod(claim))
            elif old.place == claim.place:
                self._desired[uid] = old  # with its time of first reading
        return messages + self._set_if_changed() + self._changed_problems()

    def everything(self) -> list[Message]:
        """All that a room that starts must be told."""
        pods = [_desired_pod(claim) for claim in self._desired.values()]
        return [*pods, self._set(), *self._problems.values()]

    @property
    def ready(self) -> bool:
        """Whether every configured source has said what it wants."""
        return all(name in self._readings and self._readings[name].ready for name in self.sources)

    def _claims(self) -> Iterable[Claim]:
        for source, reading in self._readings.items():
            for item in reading.items.values():
                for index, pod in enumerate(item.pods):
                    yield Claim(pod, source, self.sources.index(source), item, index)

    def _set(self) -> DesiredSet:
        return DesiredSet(frozenset(self._desired), self.ready)

    def _set_if_changed(self) -> list[Message]:
        now = self._set()
        if now == self._announced:
            return []
        self._announced = now
        return [now]

    def _changed_problems(self) -> list[Message]:
        now = self._find_problems()
        healed = [
            SourceProblem(origin, "", pod=old.pod) for origin, old in self._problems.items() if origin not in now
        ]
        fresh = [problem for origin, problem in now.items() if self._problems.get(origin) != problem]
        self._problems = now
        return [*healed, *fresh]

    def _find_problems(self) -> dict[str, SourceProblem]:
        found: dict[str, SourceProblem] = {}
        for reading in self._readings.values():
            for item in reading.items.values():
                if item.problem:
                    found[item.origin] = SourceProblem(item.origin, item.problem, pod=item.pod)
        for clash in self.clashes:
            found.setdefault(clash.loser.item.origin, _clash_problem(clash))
        return found


def _desired_pod(claim: Claim) -> DesiredPod:
    return DesiredPod(claim.pod["metadata"]["uid"], claim.pod, claim.source)


def _clash_problem(clash: Clash) -> SourceProblem:
    origin, other = clash.loser.item.origin, clash.winner.item.origin
    what = f'pod "{clash.loser.name}"'
    if clash.loser.name != clash.winner.name:
        what += f' has the uid of "{clash.winner.name}" and'
    return SourceProblem(
        origin, f'{what} is defined by "{other}" already; "{origin}" is not used (remove one of them)',
        other=other, pod=clash.loser.name,
    )


def _same(old: Pod, new: Pod) -> bool:
    """Equal but for the time of reading."""
    return old is new or _without_seen(old) == _without_seen(new)


def _without_seen(pod: Pod) -> Pod:
    meta = pod["metadata"]
    annotations = {name: value for name, value in meta.get("annotations", {}).items() if name != SEEN}
    return {**pod, "metadata": {**meta, "annotations": annotations}}
