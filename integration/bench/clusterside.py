"""The pods through an API server: created and deleted in one go, timed by what a watch of the API shows."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from integration.bench import footprint
from integration.bench.footprint import Idle
from integration.bench.workload import PATIENCE, Times, manifest, names
from integration.rig.agent import Agent
from integration.rig.cluster import Cluster, condition
from integration.rig.console import RigError
from integration.rig.workloads import placed

_CALLERS = 8  # at a time, who create and delete
_LOOK = 0.05  # s between two looks at what the watch has seen


@dataclass(frozen=True)
class Served:
    """Seconds from each pod's creation to Ready and from its deletion to its end in the API; CPU by what was done."""

    ready: Times
    gone: Times
    cpu: dict[str, float] = field(default_factory=dict)
    rounds: int = 1

    def joined(self, other: Served) -> Served:
        cpu = {name: self.cpu[name] + other.cpu[name] for name in self.cpu}
        return Served(self.ready.joined(other.ready), self.gone.joined(other.gone), cpu, self.rounds + other.rounds)


class Seen:
    """When (monotonic) each pod was first seen Ready, and gone. Filled by a thread."""

    def __init__(self) -> None:
        self.ready: dict[str, float] = {}
        self.gone: dict[str, float] = {}

    def take(self, kind: str, pod: dict[str, Any]) -> None:
        name, now = str(pod["metadata"]["name"]), time.monotonic()
        if kind == "DELETED":
            self.gone.setdefault(name, now)
        elif condition(pod, "Ready") == "True":
            self.ready.setdefault(name, now)


@contextlib.contextmanager
def watched(cluster: Cluster, namespace: str) -> Iterator[Seen]:
    """Watch the pods of a namespace, which has none yet."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    version = cluster.get(path)["metadata"]["resourceVersion"]
    seen, connection = Seen(), cluster.connection(2 * PATIENCE)
    connection.request("GET", f"{path}?watch=1&resourceVersion={version}")
    answer, raw = connection.getresponse(), connection.sock
    follower = threading.Thread(target=_follow, args=(answer, seen), daemon=True)
    follower.start()
    try:
        yield seen
    finally:
        raw.shutdown(socket.SHUT_RDWR)
        follower.join(5)
        connection.close()


def _follow(answer: http.client.HTTPResponse, seen: Seen) -> None:
    """Until the connection is cut; whoever waits for a pod tells what was not seen."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        for line in answer:
            event = json.loads(line)
            seen.take(event["type"], event["object"])


def measure(
    cluster: Cluster, agent: Agent, namespace: str, count: int, *, idle: bool = False
) -> tuple[Served, Idle | None]:
    """Create and delete `count` pods; with `idle`, look at the agent at rest in between."""
    with watched(cluster, namespace) as seen:
        cpu_0 = footprint.cpu_seconds(agent)
        ready = _order(count, lambda name: _create(cluster, namespace, name), seen.ready, "Ready")
        cpu_1 = footprint.cpu_seconds(agent)
        rest = footprint.measure(agent, count, ports=()) if idle else None
        cpu_2 = footprint.cpu_seconds(agent)
        gone = _order(count, lambda name: _delete(cluster, namespace, name), seen.gone, "gone")
        cpu = {"start": cpu_1 - cpu_0, "delete": footprint.cpu_seconds(agent) - cpu_2}
    return Served(ready, gone, cpu), rest


def _order(count: int, act: Callable[[str], None], seen: dict[str, float], what: str) -> Times:
    """Give the order for each pod and wait until all were seen; each pod's time begins with its own order."""
    began: dict[str, float] = {}

    def one(name: str) -> None:
        began[name] = time.monotonic()
        act(name)

    with ThreadPoolExecutor(_CALLERS) as pool:
        list(pool.map(one, names(count)))
    deadline = time.monotonic() + PATIENCE
    while len(seen) < count and time.monotonic() < deadline:
        time.sleep(_LOOK)
    missing = sorted(began.keys() - seen.keys())
    if missing:
        raise RigError(f"{len(missing)} of {count} pods are not {what} after {PATIENCE:.0f} s, e.g. {missing[0]}")
    return Times(tuple(seen[name] - began[name] for name in began))


def _create(cluster: Cluster, namespace: str, name: str) -> None:
    cluster.request("POST", f"/api/v1/namespaces/{namespace}/pods", placed(manifest(name), namespace), timeout=60)


def _delete(cluster: Cluster, namespace: str, name: str) -> None:
    cluster.request("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}", timeout=60)
