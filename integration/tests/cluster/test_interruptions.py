"""The agent killed, the API server away, the runtime restarted: with many pods on their way."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from integration.rig import agreement, workloads
from integration.rig.agent import Agent
from integration.rig.cluster import Cluster, condition

COUNT = 30


@contextmanager
def readiness_watched(cluster: Cluster, namespace: str) -> Iterator[list[str]]:
    """Collect the names of pods that were Ready and then were not while they existed."""
    lost: list[str] = []
    ready: set[str] = set()
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.2):
            for one in cluster.pods(namespace):
                name, now = one["metadata"]["name"], condition(one, "Ready") == "True"
                if name in ready and not now:
                    lost.append(name)
                ready.add(name) if now else ready.discard(name)

    looker = threading.Thread(target=look)
    looker.start()
    try:
        yield lost
    finally:
        done.set()
        looker.join()


def test_the_agent_is_killed_while_pods_start(cluster: Cluster, node, namespace):
    made = node()
    with readiness_watched(cluster, namespace) as lost:
        cluster.apply(workloads.deployment("many", namespace, COUNT))
        made.wait(lambda: len(made.cri.containers(running=True)) >= 5, 60, "the first pods run")
        made.kill()
        early = {one.id for one in made.cri.containers(running=True)}
        made.start()
        cluster.wait_pods(namespace, COUNT, seconds=120)
    assert lost == []
    running = made.cri.containers(running=True)
    assert len(running) == COUNT and early <= {one.id for one in running}
    agreement.wait(cluster, made)


OUTAGE = 120.0  # s without an API server


def test_the_api_server_is_away_while_pods_change(cluster: Cluster, node, namespace):
    """Pods go on and are restarted by policy; what was decided before is done after."""
    made = node()
    cluster.apply(workloads.deployment("many", namespace, 10))
    cluster.wait_pods(namespace, 10)
    before = {one.id for one in made.cri.containers(running=True)}
    cluster.kubectl("scale", "deployment/many", "--replicas=20", "-n", namespace)
    cluster.stop_api()
    back = time.monotonic() + OUTAGE
    victims = sorted(before)[:3]
    while victims and time.monotonic() < back:  # churn: one container after the other is killed
        victim = victims.pop()
        made.runtime.ctr("tasks", "kill", "-s", "SIGKILL", victim)
        before.discard(victim)
        _wait_replaced(made, victim, 10)
    made.wait(lambda: time.monotonic() >= back, OUTAGE + 5, "the end of the outage")
    assert before <= {one.id for one in made.cri.containers(running=True)}
    cluster.start_api()
    cluster.wait_node(made.node)
    cluster.wait_pods(namespace, 20, seconds=120)
    assert before <= {one.id for one in made.cri.containers(running=True)}
    agreement.wait(cluster, made)


def test_the_runtime_restarts_while_pods_change(cluster: Cluster, node, namespace):
    made = node()
    cluster.apply(workloads.deployment("many", namespace, 10))
    cluster.wait_pods(namespace, 10)
    cluster.kubectl("scale", "deployment/many", "--replicas=20", "-n", namespace)
    made.runtime.stop_daemon()
    made.runtime.start_daemon()
    cluster.kubectl("scale", "deployment/many", "--replicas=15", "-n", namespace)
    cluster.wait_pods(namespace, 15, seconds=120)
    agreement.wait(cluster, made)


def test_both_are_away_while_pods_change(cluster: Cluster, node, namespace):
    """First the API server goes, then the runtime too; a container dies meanwhile; both come back."""
    made = node()
    cluster.apply(workloads.deployment("many", namespace, 10))
    cluster.wait_pods(namespace, 10)
    before = {one.id for one in made.cri.containers(running=True)}
    cluster.kubectl("scale", "deployment/many", "--replicas=15", "-n", namespace)
    cluster.stop_api()
    victim = sorted(before)[0]
    made.runtime.ctr("tasks", "kill", "-s", "SIGKILL", victim)
    made.runtime.stop_daemon()
    made.runtime.start_daemon()
    _wait_replaced(made, victim, 10)
    cluster.start_api()
    cluster.wait_node(made.node)
    cluster.kubectl("scale", "deployment/many", "--replicas=8", "-n", namespace)
    cluster.wait_pods(namespace, 8, seconds=120)
    agreement.wait(cluster, made)


def _wait_replaced(made: Agent, victim: str, count: int) -> None:
    def replaced() -> bool:
        running = {one.id for one in made.cri.containers(running=True)}
        return victim not in running and len(running) >= count

    made.wait(replaced, 60, "a killed container is replaced")
