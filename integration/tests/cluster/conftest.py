"""Fixtures: a control plane for the session, nodes and a namespace for a test."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.rig import layout
from integration.rig.agent import Agent
from integration.rig.cluster import Cluster
from integration.rig.runtime import Runtime
from integration.rig.upstream import UpstreamKubelet

NodeFactory = Callable[..., Agent]

# The same tests for either: KUBELET_MP_NODE=upstream shows what the upstream kubelet does.
_UPSTREAM = os.environ.get("KUBELET_MP_NODE") == "upstream"


@pytest.fixture(scope="session")
def cluster(runtime: Runtime) -> Iterator[Cluster]:
    """etcd, API server, controllers and scheduler of integration/cluster/go.mod."""
    plane = Cluster(runtime.layout, layout.cluster_programs())
    try:
        yield plane.start()
    finally:
        problems = plane.stop()
    if problems:
        pytest.fail("the control plane did not end well:\n" + "\n".join(problems), pytrace=False)


@pytest.fixture
def nodes(cluster: Cluster) -> Iterator[set[str]]:
    """The names of the nodes of a test, whose Node objects go once the agents are gone."""
    names: set[str] = set()
    yield names
    cluster.start_api()  # a test may have stopped it
    for name in sorted(names):
        cluster.kubectl("delete", "node", "--ignore-not-found", name)


@pytest.fixture
def node(cluster: Cluster, nodes: set[str], agent: Callable[..., Agent]) -> NodeFactory:
    """Start a node: `node(NAME, config={…}, flags=[…], runtime=…, upstream=True)`, and wait until it is Ready.

    `kubeconfig` replaces the node's own credentials; with `start=False` it is only made.
    """

    def make(
        name: str = "node-1",
        *,
        upstream: bool = _UPSTREAM,
        start: bool = True,
        kubeconfig: Path | None = None,
        **more: Any,
    ) -> Agent:
        nodes.add(name)
        made = agent(
            kind=UpstreamKubelet if upstream else Agent,
            node=name,
            kubeconfig=kubeconfig or cluster.node(name),
            address=cluster.node_address(name),
            **more,
        )
        if start:
            made.start()
            cluster.wait_node(name)
        return made

    return make


@pytest.fixture
def namespace(cluster: Cluster, node: NodeFactory, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own; it goes with all it holds while the nodes are still there."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")[:50]
    cluster.make_namespace(name)
    yield name
    cluster.start_api()  # a test may have stopped it
    cluster.remove_namespace(name)
