"""`python -m integration.bench standalone|cluster`: see the commands of these names beside this file."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from integration.bench import agentside, clusterreport, clusterside, machine, report, straight
from integration.bench.clusterreport import Node
from integration.bench.clusterside import Served
from integration.bench.footprint import Idle
from integration.bench.report import Pair
from integration.bench.workload import Round
from integration.rig import cache, layout
from integration.rig.agent import Agent
from integration.rig.cluster import Cluster
from integration.rig.console import RigError, say
from integration.rig.layout import Layout
from integration.rig.runtime import Runtime, reserved, start
from integration.rig.upstream import UpstreamKubelet

PLACE = layout.tests() if os.environ.get("KUBELET_MP_INSTANCE") else Layout("bench", "10.217.0.0/22")
RESULTS = cache.TREE / "integration" / "bench" / "RESULTS.md"
_NAMESPACE = "bench"
_ROUNDS = {1: 9, 30: 2}  # a few pods are done so fast that one round says little


def main(words: Sequence[str]) -> int:
    given = _parse(words)
    with reserved(PLACE):
        runtime = start(PLACE, layout.built_binaries())
        try:
            text = (standalone if given.what == "standalone" else cluster)(runtime, given.pods)
        finally:
            runtime.stop()
    print(text)
    if given.write:
        old = RESULTS.read_text() if RESULTS.exists() else ""
        RESULTS.write_text(report.replaced(old, text))
    return 0


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="integration/bench")
    parser.add_argument("what", choices=["standalone", "cluster"])
    parser.add_argument("--pods", type=_counts, default=[1, 30, 110], help="numbers of pods, e.g. 1,30")
    parser.add_argument("--write", action="store_true", help="put the figures into RESULTS.md")
    return parser.parse_args(words)


def _counts(text: str) -> list[int]:
    found = sorted({int(word) for word in text.split(",")})
    if not found or found[0] < 1:
        raise ValueError(text)
    return found


def standalone(runtime: Runtime, counts: Sequence[int]) -> str:
    """Measure each number of pods straight and through an agent; idle costs at the largest."""
    straight.measure(runtime, 1)  # warm up: the first pod of a runtime makes its bridge
    pairs: dict[int, Pair] = {}
    idle: Idle | None = None
    for count in counts:
        say(f"{count} pod(s) by straight calls")
        plain = _joined([straight.measure(runtime, count) for _ in range(_ROUNDS.get(count, 1))])
        say(f"{count} pod(s) through kubelet-mp")
        ours, idle = _through_agent(runtime, count, idle=count == counts[-1])
        pairs[count] = Pair(plain, ours)
    with runtime.cri() as cri:
        return report.markdown(machine.describe(cri), pairs, idle)


def _through_agent(runtime: Runtime, count: int, *, idle: bool) -> tuple[Round, Idle | None]:
    agent = Agent(runtime, Path(runtime.layout.data) / "agents" / "bench")
    try:
        agent.start()
        agentside.measure(agent, 1)  # warm up, as above
        done = [agentside.measure(agent, count) for _ in range(_ROUNDS.get(count, 1) - 1)]
        done.append(agentside.measure(agent, count, idle=idle))
        return _joined([one for one, _ in done]), done[-1][1]
    finally:
        agent.clean()


def cluster(runtime: Runtime, counts: Sequence[int]) -> str:
    """Measure the upstream kubelet and then the agent, on a control plane that both share."""
    straight.measure(runtime, 1)  # as above
    plane = Cluster(runtime.layout, layout.cluster_programs())
    try:
        plane.start()
        plane.make_namespace(_NAMESPACE)
        upstream = _node(plane, runtime, UpstreamKubelet, "upstream", counts)
        ours = _node(plane, runtime, Agent, "kubelet-mp", counts)
    finally:
        plane.stop()
    with runtime.cri() as cri:
        return clusterreport.markdown(machine.describe(cri), upstream, ours)


def _node(plane: Cluster, runtime: Runtime, kind: type[Agent], name: str, counts: Sequence[int]) -> Node:
    agent = kind(runtime, Path(runtime.layout.data) / "agents" / name, node=name, kubeconfig=plane.node(name),
                 address=plane.node_address(name))
    served: dict[int, Served] = {}
    idle: Idle | None = None
    try:
        agent.start()
        plane.wait_node(name)
        clusterside.measure(plane, agent, _NAMESPACE, 1)  # as above
        for count in counts:
            say(f"{count} pod(s) on {name}")
            for number in range(rounds := _ROUNDS.get(count, 1)):
                last = count == counts[-1] and number == rounds - 1
                done, idle = clusterside.measure(plane, agent, _NAMESPACE, count, idle=last)
                served[count] = served[count].joined(done) if count in served else done
        assert idle
        return Node(served, idle)
    finally:
        agent.clean()
        plane.kubectl("delete", "node", "--ignore-not-found", name)


def _joined(rounds: Sequence[Round]) -> Round:
    first, *others = rounds
    for other in others:
        first = first.joined(other)
    return first


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except RigError as error:
        sys.exit(f"error: {error}")
