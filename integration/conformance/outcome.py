"""What became of each spec, read from ginkgo's report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LABELS = re.compile(r"\s*\[[^\]]*\]")
PASSED, SKIPPED = "passed", "skipped"


@dataclass(frozen=True)
class Outcome:
    """One spec that ran. state: ginkgo's word, of which only `passed` and `skipped` are no failures; seconds."""

    name: str
    state: str
    seconds: float
    why: str = ""

    @property
    def failed(self) -> bool:
        return self.state not in (PASSED, SKIPPED)

    @property
    def short(self) -> str:
        """The name without its labels."""
        return _LABELS.sub("", self.name).strip()


def read(report: Path) -> dict[str, Outcome]:
    """Name → outcome of the specs that were chosen. Raises ValueError and OSError for a file that is no report."""
    found = {}
    for suite in json.loads(report.read_text()):
        for spec in _chosen(suite):
            one = _outcome(spec)
            found[one.name] = one
    return found


def _chosen(suite: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Specs proper; those that the selection left out were skipped without a word."""
    for spec in suite.get("SpecReports") or ():
        left_out = spec["State"] in (SKIPPED, "pending") and not (spec.get("Failure") or {}).get("Message")
        if spec["LeafNodeType"] == "It" and not left_out:
            yield spec


def _outcome(spec: Mapping[str, Any]) -> Outcome:
    name = " ".join([*(spec.get("ContainerHierarchyTexts") or ()), spec["LeafNodeText"]])
    why = str((spec.get("Failure") or {}).get("Message") or "")
    return Outcome(name, spec["State"], spec["RunTime"] / 1e9, why)
