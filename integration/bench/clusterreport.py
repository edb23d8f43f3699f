"""Figures of the agent beside those of the upstream kubelet, and the targets met or missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from integration.bench.clusterside import Served
from integration.bench.footprint import Idle
from integration.bench.report import Row, Target, bullets, by_room, table, target_table

READY_ONE, READY_MANY, GONE, PSS, CPU = 1.1, 0.5, 0.4, 1.0, 0.7  # times the upstream kubelet


@dataclass(frozen=True)
class Node:
    """What one kind of node did with each number of pods, and its costs at rest with the largest."""

    served: Mapping[int, Served]
    idle: Idle


def markdown(machine: Sequence[str], upstream: Node, agent: Node) -> str:
    """The section of RESULTS.md."""
    head = ("pods: what (s after the order)", "upstream", "kubelet-mp", "ratio")
    found = [row for count in agent.served for row in rows(count, upstream.served[count], agent.served[count])]
    parts = ["## Cluster", bullets(machine), target_table(targets(upstream, agent)), table(head, found)]
    parts.append(f"kubelet-mp at rest with {agent.idle.pods} pods, over 30 s:")
    parts.append(table(("process", "PSS, MB", "millicores"), [row[:3] for row in by_room(agent.idle)]))
    return "\n\n".join(parts) + "\n"


def rows(count: int, upstream: Served, agent: Served) -> list[Row]:
    found = []
    for what in ("ready", "gone"):
        theirs, ours = getattr(upstream, what), getattr(agent, what)
        for label, pick in (("median", "median"), ("slowest" if count == 1 else "all", "all")):
            one, other = getattr(theirs, pick), getattr(ours, pick)
            said = {"ready": "created to Ready", "gone": "deleted to gone"}[what]
            found.append((f"{count}: {said}, {label}", f"{one:.2f}", f"{other:.2f}", f"{other / one:.2f}"))
    spent = [" + ".join(f"{value / one.rounds:.2f}" for value in one.cpu.values()) for one in (upstream, agent)]
    total = [sum(one.cpu.values()) / one.rounds for one in (upstream, agent)]
    return [*found, (f"{count}: CPU s, start + delete", spent[0], spent[1], f"{total[1] / total[0]:.2f}")]


def targets(upstream: Node, agent: Node) -> list[Target]:
    found = []
    for count, ours in agent.served.items():
        theirs = upstream.served[count]
        limit = READY_ONE if count == 1 else READY_MANY
        found.append(_target(f"{count} created to Ready, median", limit, theirs.ready.median, ours.ready.median))
        found.append(_target(f"{count} deleted to gone, median", GONE, theirs.gone.median, ours.gone.median))
    found.append(_target(f"PSS at {agent.idle.pods} idle pods, MB", PSS, upstream.idle.total_pss / 1e6,
                         agent.idle.total_pss / 1e6))
    found.append(_target(f"millicores at {agent.idle.pods} idle pods", CPU, upstream.idle.total_millicores,
                         agent.idle.total_millicores))
    return found


def _target(name: str, limit: float, theirs: float, ours: float) -> Target:
    ratio = ours / theirs if theirs else float("inf")
    return Target(name, f"{limit} × upstream", f"{ratio:.2f} × ({ours:.2f} / {theirs:.2f})", ratio <= limit)
