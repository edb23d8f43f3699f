"""Any process of the agent may die or hang at any time: no pod notices, and no change of the manifests is lost."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.rig import sweep
from integration.rig.agent import Agent
from integration.rig.console import poll
from integration.rig.manifests import container, pod

ROOMS = ["sources", "pods", "pleg", "probes", "cgroups", "volumes", "reporter", "housekeeping", "http"]
BACK = 2.0  # s from SIGKILL until the room takes messages again
HANG = 5.0 + 0.5 + 0.5  # s: heartbeat deadline, SIGABRT to SIGKILL, the supervisor's look at the heartbeats
CROWD = [f"calm-{number}" for number in range(10)]
QUICK = ("sh", "-c", "trap 'exit 0' TERM; sleep 1000000 & wait")


class Crowd:
    """An agent with ten pods that must never notice anything, and one more that comes and goes."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._guests = itertools.count()
        for name in CROWD:
            agent.put(name, pod(name, container("c", *QUICK)))
        self.guest = self._next_guest()
        self._ids = {name: agent.wait_running(name) for name in [*CROWD, self.guest]}
        self._ids.pop(self.guest)
        self.agent.wait(lambda: len(self.running()) == len(CROWD) + 1, 30, "all pods shown Running")

    def _next_guest(self) -> str:
        name = f"guest-{next(self._guests)}"
        self.agent.put(name, pod(name, container("c", *QUICK)))
        return name

    def change(self) -> Callable[[], None]:
        """Remove the guest and add another; returns what waits until both has happened."""
        old, new = self.guest, self._next_guest()
        self.agent.remove(old)
        self.guest = new

        def happened() -> None:
            self.agent.wait_running(new, seconds=20)
            self.agent.wait_gone(old, seconds=20)

        return happened

    def running(self) -> dict[str, dict[str, Any]]:
        """The running pods of /pods by the name in their manifest; empty while nobody answers."""
        try:
            pods = self.agent.pods()
        except OSError:
            return {}
        suffix = f"-{self.agent.node}"
        return {p["metadata"]["name"].removesuffix(suffix): p for p in pods if p["status"]["phase"] == "Running"}

    def check_nothing_happened(self) -> None:
        wanted = {*CROWD, self.guest}
        found = self.agent.wait(lambda: (pods := self.running()).keys() == wanted and pods, 10, "exactly these pods")
        for name in wanted:
            [status] = found[name]["status"]["containerStatuses"]
            assert (status["restartCount"], status["lastState"], status["ready"]) == (0, {}, True), status
        for name, ids in self._ids.items():
            assert [c.id for c in self.agent.cri.containers(self.agent.full_name(name))] == ids, "created anew"
            assert [c.id for c in self.agent.cri.containers(self.agent.full_name(name), running=True)] == ids

    def ups(self, room: str) -> int:
        """How often a room has taken up its work."""
        return len(re.findall(rf'room is up.*up="?{room}\b', self.agent.log.read_text()))


@pytest.fixture(scope="module")
def crowd(runtime) -> Iterator[Crowd]:
    agent = Agent(runtime, runtime.layout.data / "agents" / "crowd")
    try:
        yield Crowd(agent.start())
        assert agent.stop() == 0
        assert agent.family() == {}
    finally:
        left = agent.clean()
    assert left == []


def dead(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def strike(crowd: Crowd, room: str, number: int, within: float) -> None:
    """Signal a room; it must be replaced and work `within` seconds, and the rest must be as it was."""
    agent, before = crowd.agent, crowd.agent.rooms()
    ups, began = crowd.ups(room), time.monotonic()
    os.kill(before[room], number)
    happened = crowd.change()
    assert poll(lambda: crowd.ups(room) > ups, within + 5, every=0.02), agent.log_tail()
    assert time.monotonic() - began < within
    happened()
    crowd.check_nothing_happened()
    after = agent.rooms()
    assert dead(before[room]) and after.keys() == before.keys()
    assert [name for name in before if before[name] != after[name]] == [room], "others were touched"
    assert len(agent.family()) == len(before), "a process too many"


def test_each_process_bears_its_name(crowd):
    assert crowd.agent.rooms().keys() == {"supervisor", *ROOMS}
    assert len(crowd.agent.family()) == len(ROOMS) + 1


@pytest.mark.parametrize("room", ROOMS)
def test_a_killed_room(crowd, room):
    strike(crowd, room, signal.SIGKILL, BACK)


def test_a_killed_supervisor(crowd):
    processes = crowd.agent.rooms()
    crowd.agent.kill()
    happened = crowd.change()
    assert poll(lambda: all(dead(pid) for pid in processes.values()), BACK), "rooms outlive their supervisor"
    crowd.agent.start()
    happened()
    crowd.check_nothing_happened()


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_that_hangs(crowd, room):
    strike(crowd, room, signal.SIGSTOP, HANG + BACK)


@pytest.mark.parametrize("room", ["sources", "pods", "pleg", "cgroups", "volumes"])
def test_a_room_killed_amid_work(crowd, room):
    """Killed while pods start and again while they end: each runs once, and nothing of them stays."""
    agent = crowd.agent
    busy = [f"busy-{room}-{number}" for number in range(6)]
    for name in busy:
        agent.put(name, pod(name, container("c", *QUICK)))
    agent.wait(lambda: _sandboxes(agent, busy), 20, "the first sandbox")
    os.kill(agent.rooms()[room], signal.SIGKILL)
    for name in busy:
        agent.wait_running(name)
    agent.wait(lambda: crowd.running().keys() >= set(busy), 20, "all shown Running")
    for name in busy:
        assert len(agent.cri.containers(agent.full_name(name), running=True)) == 1
        agent.remove(name)
    agent.wait(lambda: any(not agent.cri.containers(agent.full_name(name), running=True) for name in busy), 20,
               "the first is stopped")
    os.kill(agent.rooms()[room], signal.SIGKILL)
    agent.wait(lambda: not _sandboxes(agent, busy), 30, "all sandboxes are gone")
    crowd.check_nothing_happened()
    agent.wait(lambda: len(list((agent.root / "pods").iterdir())) == len(CROWD) + 1, 30, "their directories are gone")


def _sandboxes(agent: Agent, pods: list[str]) -> list[Any]:
    return [box for name in pods for box in agent.cri.sandboxes(agent.full_name(name))]


def test_a_process_that_the_runtime_lost_track_of(crowd):
    """As a killed RunPodSandbox may leave one: it is killed when its pod has stopped, and the pod can end."""
    agent = crowd.agent
    agent.put("haunted", pod("haunted", container("c", *QUICK)))
    agent.wait_running("haunted")
    uid = agent.wait(lambda: agent.pod("haunted"), 10, "it is shown")["metadata"]["uid"]
    [folder] = [found for root in sweep.cgroup_roots() for found in root.rglob(f"pod{uid}")][:1]
    with subprocess.Popen(["sleep", "600"]) as ghost:
        (folder / "cgroup.procs").write_text(str(ghost.pid))
        agent.remove("haunted")
        try:
            assert ghost.wait(20) == -signal.SIGKILL
        finally:
            ghost.kill()
    agent.wait(lambda: not _sandboxes(agent, ["haunted"]) and agent.pod("haunted") is None, 20, "the pod is gone")
    assert f"which are killed: {ghost.pid}" in agent.log.read_text()
    crowd.check_nothing_happened()
