"""`kubelet-mp why`: the story of one pod, and the one thing that it waits for now."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kubelet_mp.cli.client import Agent, add_root_dir, quote
from kubelet_mp.cli.names import pick
from kubelet_mp.cli.table import age, table
from kubelet_mp.errors import KubeletError


def run(argv: Sequence[str]) -> int:
    args = _parser().parse_args(argv)
    agent = Agent(args.root_dir)
    try:
        namespace, name = pick(agent.get("/local/pods"), args.pod)
        answer = agent.get(f"/local/why/{quote(namespace, name)}")
    except KubeletError as error:
        print(f"kubelet-mp why: {error}", file=sys.stderr)
        return 1
    print("\n".join(lines(answer)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("kubelet-mp why", description="Tell what happened to a pod and what it waits for.")
    parser.add_argument("pod", metavar="[NAMESPACE/]POD", help="a static pod also without the node's name")
    add_root_dir(parser)
    return parser


def lines(answer: Mapping[str, Any]) -> list[str]:
    """The answer of /local/why for a terminal."""
    text = [_headline(answer), ""]
    if answer["timeline"]:
        text += table(("TIME", "TYPE", "REASON", "WHAT"), map(_entry, answer["timeline"]))
    else:
        text.append("Nothing has happened to it yet.")
    text += ["", *(f"Manifest {p['origin']}: {p['problem']}" for p in answer["problems"])]
    return [*text, f"Waiting for: {waiting_for(answer)}"]


def _headline(answer: Mapping[str, Any]) -> str:
    name, row = f"Pod {answer['namespace']}/{answer['name']}", answer["pod"]
    if row is None:
        return f"{name} is not on this node" + (" any more" if answer["timeline"] else "")
    return (
        f"{name}: {row['state']}, {row['ready']} containers ready, {row['restarts']} restarts, "
        f"age {age(row['age'])}, from {row['source']}"
    )


def _entry(entry: Mapping[str, Any]) -> tuple[str, str, str, str]:
    when = datetime.fromtimestamp(entry["last"], UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    where = entry["fieldPath"].partition("{")[2].rstrip("}")
    what = " ".join(filter(None, [f"[{where}]" if where else "", " ".join(entry["message"].split())]))
    if entry["count"] > 1:
        what += f" (×{entry['count']} over {age(entry['last'] - entry['first'])})"
    return when, entry["type"], entry["reason"], what


def waiting_for(answer: Mapping[str, Any]) -> str:
    """One line: what keeps the pod from being what its manifest says."""
    row, status = answer["pod"], answer["status"]
    if row is not None and row["waiting_for"]:
        since = row["waiting_seconds"]
        return row["waiting_for"] + (f" (for {age(since)})" if since is not None else "")
    if answer["problems"] and row is None:
        return "its manifest to be corrected"
    if row is not None and answer["obstacles"] and row["phase"] not in ("Succeeded", "Failed"):
        return str(answer["obstacles"][0])
    if row is None:
        return "nothing, it is gone"
    if row["phase"] in ("Succeeded", "Failed"):
        told = ": ".join(filter(None, [status.get("reason", ""), status.get("message", "")]))
        return f"nothing, it has ended ({row['phase']}{', ' + told if told else ''})"
    return "nothing, it runs" if row["phase"] == "Running" else "the agent to take it up"
