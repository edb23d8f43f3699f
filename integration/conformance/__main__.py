"""See integration/conformance/run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from integration.bench import machine
from integration.conformance import images, report, specs
from integration.conformance.outcome import Outcome
from integration.rig import layout
from integration.rig.agent import Agent
from integration.rig.cluster import Cluster
from integration.rig.console import RigError, say
from integration.rig.runtime import Runtime, reserved, start
from integration.rig.upstream import UpstreamKubelet

_RESULTS = Path(__file__).parent / "RESULTS.md"
_KINDS: dict[str, type[Agent]] = {"upstream": UpstreamKubelet, "kubelet-mp": Agent}


def main(words: Sequence[str]) -> int:
    args = _arguments(words)
    chosen = [args.only] if args.only else list(_KINDS)
    place = layout.tests()
    with reserved(place):
        Runtime(place, layout.built_binaries()).stop()
        runtime = start(place, layout.built_binaries())
        try:
            _load(runtime)
            runs = {name: _on(runtime, name, args.set, args.focus) for name in chosen}
            with runtime.cri() as cri:
                facts = machine.describe(cri)
        finally:
            runtime.stop()
    text = report.markdown(facts, args.set, runs)
    print(text)
    if args.write:
        _RESULTS.write_text(text)
    if len(runs) == 1:
        return int(any(one.failed for outcomes in runs.values() for one in outcomes.values()))
    return int(bool(report.worse(runs["upstream"], runs["kubelet-mp"])))


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="integration/conformance/run")
    parser.add_argument("--set", choices=list(specs.SETS), default="conformance")
    parser.add_argument("--only", choices=list(_KINDS))
    parser.add_argument("--focus", default="", metavar="REGEX")
    parser.add_argument("--write", action="store_true")
    return parser.parse_args(words)


def _load(runtime: Runtime) -> None:
    say("the images are loaded")
    runtime.load(images.ensure())


def _on(runtime: Runtime, name: str, chosen: str, focus: str) -> dict[str, Outcome]:
    """Run the specs on one kind of node agent, with a control plane of its own."""
    plane = Cluster(runtime.layout, layout.cluster_programs())
    agent: Agent | None = None
    try:
        plane.start()
        agent = _KINDS[name](runtime, runtime.layout.data / "agents" / name, node=name, kubeconfig=plane.node(name),
                             address=plane.node_address(name))
        agent.start()
        plane.wait_node(name)
        say(f"node {name} is Ready")
        return specs.run(plane, chosen, focus, runtime.layout.log / "conformance" / name)
    finally:
        if agent:
            if agent.log.exists():
                agent.log.replace(runtime.layout.log / f"{name}.log")
            agent.clean()
        plane.stop()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except RigError as error:
        sys.exit(f"error: {error}")
