"""`kubelet-mp logs`: a container's log, also while it grows."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from kubelet_mp.cli.client import Agent, AgentError, add_root_dir, quote
from kubelet_mp.cli.names import pick
from kubelet_mp.errors import KubeletError
from kubelet_mp.model import clock

_KINDS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


def run(argv: Sequence[str]) -> int:
    """0, or 1 after an error; ends quietly when the reader of the output does, or at Ctrl-C."""
    args = _parser().parse_args(argv)
    try:
        _show(args)
    except KubeletError as error:
        print(f"kubelet-mp logs: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more to flush into the pipe
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("kubelet-mp logs", description="Print the log of a container.")
    parser.add_argument("pod", metavar="[NAMESPACE/]POD", help="a static pod also without the node's name")
    parser.add_argument("-c", "--container", help="needed if the pod has several")
    parser.add_argument("-f", "--follow", action="store_true", help="go on as the log grows")
    parser.add_argument("-p", "--previous", action="store_true", help="of the instance before this one")
    parser.add_argument("--tail", type=int, metavar="N", help="only the last N lines")
    parser.add_argument("--since", type=_seconds, metavar="DURATION", help="only what is newer, like 10s, 5m, 1h30m")
    parser.add_argument("--timestamps", action="store_true", help="put its time before each line")
    add_root_dir(parser)
    return parser


def _seconds(text: str) -> int:
    try:
        seconds = clock.parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if seconds <= 0:
        raise argparse.ArgumentTypeError("must be longer than 0")
    return max(1, round(seconds))


def _show(args: argparse.Namespace) -> None:
    agent = Agent(args.root_dir)
    namespace, name = pick(agent.get("/local/pods"), args.pod)
    container = args.container or only_container(agent.get(f"/local/why/{quote(namespace, name)}"))
    for chunk in agent.stream(f"/containerLogs/{quote(namespace, name, container)}", query(args)):
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()


def query(args: argparse.Namespace) -> dict[str, str]:
    """The parameters of /containerLogs for the options given."""
    found = {name: "true" for name in ("follow", "previous", "timestamps") if getattr(args, name)}
    if args.tail is not None:
        found["tailLines"] = str(args.tail)
    if args.since is not None:
        found["sinceSeconds"] = str(args.since)
    return found


def only_container(answer: Mapping[str, Any]) -> str:
    """The pod's container, if there is no choice. Raises AgentError that names them otherwise."""
    where = f"pod {answer['namespace']}/{answer['name']}"
    if answer["pod"] is None:
        raise AgentError(f"{where} is not on this node any more, and its logs went with it")
    names = {kind: [c["name"] for c in answer["status"].get(kind) or ()] for kind in _KINDS}
    regular = names["containerStatuses"]
    if len(regular) == 1:
        return str(regular[0])
    every = ", ".join(name for kind in _KINDS for name in names[kind])
    if not every:
        raise AgentError(f"{where} has no containers yet", "`kubelet-mp why` tells what it waits for")
    raise AgentError(f"{where} has several containers: {every}", "choose one with -c")
