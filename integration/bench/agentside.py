"""The pods through kubelet-mp: manifests are written in one go and removed in one go."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any

from integration.bench import footprint
from integration.bench.footprint import Idle
from integration.bench.workload import (
    Round,
    Times,
    Watch,
    live_containers,
    live_sandboxes,
    look_until,
    manifest,
    names,
    started,
)
from integration.rig.agent import Agent
from integration.rig.console import RigError


def measure(agent: Agent, count: int, *, idle: bool = False) -> tuple[Round, Idle | None]:
    """Start and delete `count` pods; with `idle`, look at the agent at rest in between."""
    manifests = {name: json.dumps(manifest(name)) for name in names(count)}
    cpu_0 = footprint.cpu_seconds(agent)
    running, shown = _start(agent, manifests)
    cpu_1 = footprint.cpu_seconds(agent)
    rest = footprint.measure(agent, count) if idle else None
    cpu_2 = footprint.cpu_seconds(agent)
    stopped, removed, forgotten = _delete(agent, list(manifests))
    cpu = {"start": cpu_1 - cpu_0, "delete": footprint.cpu_seconds(agent) - cpu_2}
    return Round(running, stopped, removed, shown, forgotten, cpu), rest


def _start(agent: Agent, manifests: dict[str, str]) -> tuple[Times, Times]:
    """When the containers started, and when /pods showed the pods running."""
    began_wall, began = time.time(), time.monotonic()
    for name, text in manifests.items():
        agent.put(name, text)
    shown = Watch(began, "shown Running by /pods", [agent.full_name(name) for name in manifests])
    look_until([shown], lambda: shown.saw(_running(agent)))
    times = shown.times()
    return started(agent.cri, live_containers(agent.cri), began_wall), times


def _delete(agent: Agent, pods: list[str]) -> tuple[Times, Times, Times]:
    """When the containers had stopped, the sandboxes were gone, and /pods had forgotten the pods."""
    containers, sandboxes = live_containers(agent.cri), live_sandboxes(agent.cri)
    began = time.monotonic()
    for name in pods:
        agent.remove(name)
    stopped = Watch(began, "stopped", containers)
    removed = Watch(began, "removed", sandboxes)
    forgotten = Watch(began, "gone from /pods", [agent.full_name(name) for name in pods])

    def look() -> None:
        if not stopped.complete:
            stopped.saw_only(live_containers(agent.cri))
        removed.saw_only(live_sandboxes(agent.cri))
        forgotten.saw_only({_name(pod) for pod in _pods(agent)})

    look_until([stopped, removed, forgotten], look)
    return stopped.times(), removed.times(), forgotten.times()


def _running(agent: Agent) -> set[str]:
    return {_name(pod) for pod in _pods(agent) if pod.get("status", {}).get("phase") == "Running"}


def _name(pod: dict[str, Any]) -> str:
    return str(pod["metadata"]["name"])


def _pods(agent: Agent) -> list[dict[str, Any]]:
    code, body = agent.get("/pods", port="readOnlyPort")
    if code != http.client.OK:
        raise RigError(f"/pods answers {code}: {body[:300]!r}")
    return list(json.loads(body).get("items") or [])
