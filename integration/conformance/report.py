"""What came of the specs on both nodes, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from integration.bench.report import bullets, table
from integration.conformance.outcome import PASSED, Outcome

Outcomes = Mapping[str, Outcome]
_TEXT = 160  # characters of a reason in the table


def worse(theirs: Outcomes, ours: Outcomes) -> list[Outcome]:
    """Specs that the upstream kubelet passes and kubelet-mp does not."""
    return [one for name, one in sorted(ours.items()) if one.state != PASSED and _passed(theirs, name)]


def _passed(outcomes: Outcomes, name: str) -> bool:
    return name in outcomes and outcomes[name].state == PASSED


def markdown(machine: Sequence[str], chosen: str, runs: Mapping[str, Outcomes]) -> str:
    """The page. runs: name of the node agent → its outcomes, upstream first where there are two."""
    parts = [f"# Upstream's specs\n\nMade by `integration/conformance/run --set {chosen} --write`.", bullets(machine)]
    parts.append(table(("", *runs), [(word, *map(str, row)) for word, row in _totals(runs)]))
    parts.append(_differences(runs))
    parts.append("Every spec, with the seconds that it took:")
    parts.append(table(("spec", *runs), _rows(runs)))
    return "\n\n".join(parts) + "\n"


def _totals(runs: Mapping[str, Outcomes]) -> list[tuple[str, list[int]]]:
    states = sorted({one.state for outcomes in runs.values() for one in outcomes.values()})
    return [(state, [sum(one.state == state for one in outcomes.values()) for outcomes in runs.values()])
            for state in states]


def _differences(runs: Mapping[str, Outcomes]) -> str:
    names = sorted({name for outcomes in runs.values() for name in outcomes})
    lines = []
    for name in names:
        found = {agent: outcomes[name] for agent, outcomes in runs.items() if name in outcomes}
        states = {one.state for one in found.values()}
        if len(states) > 1 or len(found) < len(runs) or any(one.failed for one in found.values()):
            said = "; ".join(f"{agent} {one.state}{_because(one)}" for agent, one in found.items())
            lines.append(f"{next(iter(found.values())).short}: {said}")
    return "Failed, or not the same on both:\n\n" + bullets(lines) if lines else "All passed."


def _because(one: Outcome) -> str:
    text = " ".join(one.why.split())
    return f" ({text[:_TEXT]}{'…' if len(text) > _TEXT else ''})" if text else ""


def _rows(runs: Mapping[str, Outcomes]) -> list[tuple[str, ...]]:
    names = sorted({name for outcomes in runs.values() for name in outcomes})
    return [(name, *(_cell(outcomes.get(name)) for outcomes in runs.values())) for name in names]


def _cell(one: Outcome | None) -> str:
    return "–" if one is None else f"{one.state} {one.seconds:.0f}"
