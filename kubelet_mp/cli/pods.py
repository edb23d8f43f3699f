"""`kubelet-mp pods`: the pods of this node, and the manifests that cannot be used."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from kubelet_mp.cli.client import Agent, add_root_dir
from kubelet_mp.cli.table import age, table
from kubelet_mp.errors import KubeletError

_HEAD = ("NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "SOURCE", "WAITING FOR")


def run(argv: Sequence[str]) -> int:
    args = _parser().parse_args(argv)
    try:
        answer = Agent(args.root_dir).get("/local/pods")
    except KubeletError as error:
        print(f"kubelet-mp pods: {error}", file=sys.stderr)
        return 1
    print(json.dumps(answer, indent=2) if args.output == "json" else "\n".join(lines(answer)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("kubelet-mp pods", description="List the pods of this node.")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    add_root_dir(parser)
    return parser


def lines(answer: Mapping[str, Any]) -> list[str]:
    """The answer of /local/pods for a terminal."""
    text = table(_HEAD, map(_cells, answer["pods"])) if answer["pods"] else ["There are no pods on this node."]
    if answer["problems"]:
        text += ["", "Manifests that cannot be used:", *map(_problem, answer["problems"])]
    if answer["obstacles"]:
        text += ["", *(f"Attention: {obstacle}" for obstacle in answer["obstacles"])]
    return text


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["namespace"],
        row["name"],
        row["ready"],
        row["state"],
        str(row["restarts"]),
        age(row["age"]),
        row["ip"] or "-",
        row["source"],
        row["waiting_for"],
    )


def _problem(problem: Mapping[str, str]) -> str:
    of = f" (pod {problem['pod']})" if problem["pod"] else ""
    other = f"; see also {problem['other']}" if problem["other"] and problem["other"] not in problem["problem"] else ""
    return f"  {problem['origin']}{of}: {problem['problem']}{other}"
