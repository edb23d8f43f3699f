"""Figures as text: a table, the targets met or missed, and the file that keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from integration.bench.footprint import Idle
from integration.bench.workload import Round, Times

FASTER_ONE, FASTER_MANY = 1.25, 1.3  # times straight CRI calls
DELETED = 0.5  # s
PSS = 140e6  # bytes
MILLICORES = 30.0
_MANY = 110


@dataclass(frozen=True)
class Pair:
    """The same pods by straight calls and through the agent."""

    straight: Round
    agent: Round


Row = tuple[str, str, str, str]


def rows(count: int, pair: Pair) -> list[Row]:
    """What happened, straight, with the agent, and their ratio."""
    found: list[Row] = []
    for what in ("running", "shown", "stopped", "removed", "forgotten"):
        found += _compared(count, what, getattr(pair.straight, what), getattr(pair.agent, what))
    cpu = " + ".join(f"{seconds / pair.agent.rounds:.2f}" for seconds in pair.agent.cpu.values())
    return [*found, (f"{count}: CPU s of the agent, start + delete", "", cpu, "")]


_SAID = {
    "running": "container started",
    "shown": "Running in /pods",
    "stopped": "container stopped",
    "removed": "sandbox gone",
    "forgotten": "gone from /pods",
}


def _compared(count: int, what: str, straight: Times | None, agent: Times | None) -> list[Row]:
    """Median and slowest pod. What only the agent does stands beside nothing."""
    if agent is None:
        return []
    found = []
    for label, pick in (("median", "median"), ("slowest" if count == 1 else "all", "all")):
        ours, theirs = getattr(agent, pick), getattr(straight, pick) if straight else None
        ratio = f"{ours / theirs:.2f}" if theirs else ""
        found.append((f"{count}: {_SAID[what]}, {label}", f"{theirs:.2f}" if theirs else "", f"{ours:.2f}", ratio))
    return found


@dataclass(frozen=True)
class Target:
    """What was aimed at and what came of it."""

    name: str
    limit: str
    reached: str
    met: bool


def targets(pairs: Mapping[int, Pair], idle: Idle | None) -> list[Target]:
    """Those that this run can tell about."""
    found = []
    if 1 in pairs:
        found += [_ratio("1 pod running", pairs[1], FASTER_ONE), _deletion(pairs[1].agent)]
    if _MANY in pairs:
        found.append(_ratio(f"{_MANY} pods running, median", pairs[_MANY], FASTER_MANY))
    if idle and idle.pods >= _MANY:
        pss, cores = idle.total_pss, idle.total_millicores
        found.append(Target(f"PSS at {idle.pods} idle pods", f"{PSS / 1e6:.0f} MB", f"{pss / 1e6:.0f} MB", pss <= PSS))
        limit = f"{MILLICORES:.0f} millicores"
        found.append(Target(f"CPU at {idle.pods} idle pods", limit, f"{cores:.1f}", cores <= MILLICORES))
    return found


def _ratio(name: str, pair: Pair, limit: float) -> Target:
    ratio = pair.agent.running.median / pair.straight.running.median
    return Target(name, f"{limit} × straight CRI", f"{ratio:.2f} ×", ratio <= limit)


def _deletion(one: Round) -> Target:
    """Deleted: no sandbox is left and /pods has forgotten it."""
    gone = max(one.removed.median, one.forgotten.median if one.forgotten else 0.0)
    return Target("1 pod deleted", f"{DELETED} s", f"{gone:.2f} s", gone <= DELETED)


def by_room(idle: Idle) -> list[Row]:
    found = [
        (name, f"{idle.pss[name] / 1e6:.1f}", f"{idle.millicores.get(name, 0.0):.1f}", "")
        for name in sorted(idle.pss, key=lambda name: -idle.pss[name])
    ]
    return [*found, ("all", f"{idle.total_pss / 1e6:.1f}", f"{idle.total_millicores:.1f}", "")]


def markdown(machine: Sequence[str], pairs: Mapping[int, Pair], idle: Idle | None) -> str:
    """The whole report; it is printed as it is written."""
    parts = ["## Stand-alone", bullets(machine), target_table(targets(pairs, idle))]
    head = ("pods: what (s after the order)", "straight CRI", "kubelet-mp", "ratio")
    parts.append(table(head, [row for count in sorted(pairs) for row in rows(count, pairs[count])]))
    if idle:
        asked = ", ".join(f"{name} {1000 * seconds:.0f} ms" for name, seconds in idle.latency.items())
        parts += [
            f"At rest with {idle.pods} pods, over 30 s. `/pods` takes: {asked}.",
            table(("process", "PSS, MB", "millicores"), [row[:3] for row in by_room(idle)]),
        ]
    return "\n\n".join(parts) + "\n"


def bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def target_table(found: Sequence[Target]) -> str:
    lines = [(one.name, one.limit, one.reached, "met" if one.met else "MISSED") for one in found]
    return table(("aim", "at most", "reached", ""), lines)


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
    rule = ["-" * width for width in widths]
    return "\n".join("| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in [head, rule, *lines])


HEAD = """# What was measured

Written by the commands of this folder with `--write`; each section by one run on an otherwise quiet machine.
Straight CRI: the same pods, configured as the agent configures them, by plain calls of the runtime, four at a time,
without an agent. Deleted pods exit at once on SIGTERM. A ratio is the agent's time by the straight one.
"""


def replaced(old: str, section: str) -> str:
    """The file's text with the section of the same heading replaced, or added at the end."""
    heading = section.partition("\n")[0]
    _, *sections = ("\n" + (old or HEAD)).split("\n## ")
    kept = [f"## {text.strip()}\n" for text in sections]
    if not any(text.startswith(heading + "\n") for text in kept):
        kept.append(section)
    return "\n".join([HEAD, *(section if text.startswith(heading + "\n") else text for text in kept)])
