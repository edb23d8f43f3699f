"""CPU time and memory of all processes of an agent."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

from integration.rig.agent import ROOM_TITLE, Agent

IDLE_SECONDS = 30.0
SETTLE_SECONDS = 10.0  # after the last pod, before the idle time begins
N = TypeVar("N", int, float)
_ASKED = 20  # requests for one latency
_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)


@dataclass(frozen=True)
class Idle:
    """An agent at rest. PSS in bytes, CPU in thousandths of a core, latencies in seconds (median)."""

    pods: int
    pss: dict[str, int]
    millicores: dict[str, float]
    latency: dict[str, float]

    @property
    def total_pss(self) -> int:
        return sum(self.pss.values())

    @property
    def total_millicores(self) -> float:
        return sum(self.millicores.values())


def cpu_seconds(agent: Agent) -> float:
    """User and system time of every process, with that of children which ended and were waited for."""
    return sum(_cpu(pid) for pid in agent.family())


def measure(agent: Agent, pods: int, ports: Sequence[str] = ("readOnlyPort", "port")) -> Idle:
    """Let the agent settle, watch it for IDLE_SECONDS, then ask it for its pods on some of its ports."""
    time.sleep(SETTLE_SECONDS)
    before, began = _by_name(agent, _cpu), time.monotonic()
    time.sleep(IDLE_SECONDS)
    seconds, after = time.monotonic() - began, _by_name(agent, _cpu)
    millicores = {name: 1000 * (after[name] - before.get(name, 0.0)) / seconds for name in after}
    return Idle(pods, _by_name(agent, _pss), millicores, {port: _latency(agent, port) for port in ports})


def _latency(agent: Agent, port: str) -> float:
    taken = []
    for _ in range(_ASKED):
        before = time.monotonic()
        agent.get("/pods", port=port)
        taken.append(time.monotonic() - before)
    return statistics.median(taken)


def _by_name(agent: Agent, look: Callable[[int], N]) -> dict[str, N]:
    found: dict[str, N] = {}
    for pid, words in agent.family().items():
        title = ROOM_TITLE.match(words)
        name = title.group(1) if title else "other"
        found[name] = found.get(name, 0) + look(pid)
    return found


def _cpu(pid: int) -> float:
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0  # it ended between two looks
    return float(times.user + times.system + times.children_user + times.children_system)


def _pss(pid: int) -> int:
    try:
        found = _PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
    except OSError:
        return 0  # it ended between two looks
    return int(found.group(1)) * 1024 if found else 0
