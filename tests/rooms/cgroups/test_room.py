import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubelet_mp.config import Settings
from kubelet_mp.config.model import KubeletConfiguration
from kubelet_mp.errors import StartError
from kubelet_mp.host.procfs import Machine
from kubelet_mp.model.runtime import RuntimeState
from kubelet_mp.rooms.cgroups.room import CgroupsRoom
from kubelet_mp.wire.messages import (
    AdmittedSet,
    Event,
    NodeFacts,
    PodAdmitted,
    PodCgroupReady,
    PodForgotten,
    PodFreed,
    PodStopped,
    RuntimeStateChanged,
)
from tests.fakes.cgrouptree import FakeTree
from tests.fakes.link import RoomRunner
from tests.support import wait_until

GI = 1 << 30
MACHINE = Machine(cpus=2, memory=4 * GI, swap=0, max_pids=4000, huge_pages={})


def pod(uid: str, *limits: dict[str, str], requests: dict[str, str] | None = None) -> dict[str, Any]:
    containers = [{"name": f"c{i}", "resources": {"limits": each, "requests": requests or {}}}
                  for i, each in enumerate(limits)]
    return {"metadata": {"name": "p", "namespace": "d", "uid": uid}, "spec": {"containers": containers}}


TINY = pod("tiny", {"cpu": "5m", "memory": "32Mi"}, {"cpu": "7m", "memory": "32Mi"})


def runtime(driver: str | None) -> RuntimeStateChanged:
    return RuntimeStateChanged(RuntimeState(ready=driver is not None, driver=driver))


def runner(tree: FakeTree, root: Path, driver: str | None = "cgroupfs", **fields: Any) -> RoomRunner:
    settings = Settings(node_name="n", root_dir=str(root / "later"), kubelet=KubeletConfiguration(**fields))
    room = RoomRunner(CgroupsRoom, settings, cgroups=tree.cgroups, machine=lambda: MACHINE,
                      find_addresses=lambda *_: ("192.0.2.5",))
    room.give(runtime(driver))
    return room


@pytest.fixture
def tree(tmp_path: Path) -> FakeTree:
    root = tmp_path / "cgroup"
    root.mkdir()
    return FakeTree.v1(root)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("SWEEP_DELAY", 0.05), ("RETRY", 0.05)):
        monkeypatch.setattr(f"kubelet_mp.rooms.cgroups.room.{name}", seconds)


@pytest.fixture
def room(tree: FakeTree, tmp_path: Path) -> Iterator[RoomRunner]:
    with runner(tree, tmp_path) as running:
        running.wait_for(NodeFacts)
        yield running


def test_the_tree_stands_before_facts_are_told(tree: FakeTree, room: RoomRunner):
    facts = room.wait_for(NodeFacts)
    assert (facts.addresses, facts.hostname) == (("192.0.2.5",), "n")
    assert (facts.driver, facts.cgroup_version) == ("cgroupfs", 1)
    assert facts.capacity["cpu"] == 2000 and facts.allocatable["memory"] == 4 * GI
    assert "pid" not in facts.capacity
    assert tree.read("memory/kubepods/memory.limit_in_bytes") == str(4 * GI)
    assert tree.read("cpu/kubepods/besteffort/cpu.shares") == "2"
    assert tree.read("cpu/kubepods/burstable/cpu.shares") == "2"
    assert room.link.of(Event)[0].reason == "NodeAllocatableEnforced"


def test_small_numbers_of_a_guaranteed_pod(tree: FakeTree, room: RoomRunner):
    room.give(PodAdmitted("tiny", TINY))
    ready = room.wait_for(PodCgroupReady)
    assert (ready.parent, ready.problem) == ("/kubepods/podtiny", "")
    assert tree.read("cpu/kubepods/podtiny/cpu.cfs_quota_us") == "1200"
    assert tree.read("cpu/kubepods/podtiny/cpu.shares") == "12"
    assert tree.read("memory/kubepods/podtiny/memory.limit_in_bytes") == str(64 << 20)


def test_a_new_pod_is_answered_within_milliseconds(room: RoomRunner):
    took = []
    for number in range(5):
        start = time.perf_counter()
        room.give(PodAdmitted(f"u{number}", pod(f"u{number}", {})))
        room.wait_for(PodCgroupReady, lambda m, n=number: m.uid == f"u{n}")  # type: ignore[misc]
        took.append(time.perf_counter() - start)
    assert min(took) < 0.02


def test_burstable_shares_follow_the_pods(tree: FakeTree, room: RoomRunner):
    shares = "cpu/kubepods/burstable/cpu.shares"
    for uid in ("a", "b"):
        room.give(PodAdmitted(uid, pod(uid, {}, requests={"cpu": "500m"})))
    wait_until(lambda: tree.read(shares) == "1024", what="shares of two pods")
    room.give(PodStopped("a", None))
    wait_until(lambda: tree.read(shares) == "512", what="shares of one pod")


def test_a_stopped_pod_is_freed_when_its_last_process_is_gone(tree: FakeTree, room: RoomRunner):
    room.give(PodAdmitted("tiny", TINY))
    room.wait_for(PodCgroupReady)
    tree.put_process("memory/kubepods/podtiny", 4)
    room.give(PodStopped("tiny", TINY))
    assert room.run_here(lambda: room.link.of(PodFreed)) == []
    tree.put_process("memory/kubepods/podtiny", None)
    freed = room.wait_for(PodFreed)
    assert (freed.uid, freed.room, freed.problem) == ("tiny", "cgroups", "")
    assert not tree.cgroups.exists("/kubepods/podtiny")


def test_what_the_runtime_forgot_in_a_stopped_pod_is_killed(tree: FakeTree, room: RoomRunner):
    room.give(PodAdmitted("tiny", TINY))
    room.wait_for(PodCgroupReady)
    tree.put_process("memory/kubepods/podtiny", 4)
    room.give(PodStopped("tiny", TINY))
    wait_until(lambda: [freed.problem for freed in room.link.of(PodFreed)][-1:] == [""], 10)
    assert [freed.problem for freed in room.link.of(PodFreed)] == [
        "the pod's cgroup still holds processes, which are killed: 4", ""]
    assert tree.killed == [4] and not tree.cgroups.exists("/kubepods/podtiny")


def test_an_unknown_stopped_pod_is_freed_at_once_and_again(room: RoomRunner):
    room.give(PodStopped("ghost", None))
    room.wait_for(PodFreed)
    room.give(PodStopped("ghost", None))
    wait_until(lambda: len(room.link.of(PodFreed)) == 2)


def test_a_pod_that_comes_back_while_it_is_freed_stays(tree: FakeTree, room: RoomRunner):
    room.give(PodAdmitted("tiny", TINY))
    room.wait_for(PodCgroupReady)
    tree.put_process("memory/kubepods/podtiny", 4)
    room.give(PodStopped("tiny", TINY), PodAdmitted("tiny", TINY))
    wait_until(lambda: len(room.link.of(PodCgroupReady)) == 2)
    assert room.run_here(lambda: room.room._freeing) == {}


def test_orphans_without_processes_go_and_others_stay(tree: FakeTree, room: RoomRunner):
    for path in ("/kubepods/podgone", "/kubepods/besteffort/podbusy", "/kubepods/burstable/other"):
        tree.cgroups.ensure(path, ())
    tree.put_process("memory/kubepods/besteffort/podbusy", 9)
    room.give(PodAdmitted("tiny", TINY), AdmittedSet(frozenset({"tiny"}), ready=True))
    wait_until(lambda: not tree.cgroups.exists("/kubepods/podgone"), what="the orphan to be removed")
    for path in ("/kubepods/besteffort/podbusy", "/kubepods/burstable/other", "/kubepods/podtiny"):
        assert tree.cgroups.exists(path)


def test_a_pod_admitted_after_the_set_was_sent_is_no_orphan(tree: FakeTree, room: RoomRunner):
    tree.cgroups.ensure("/kubepods/podgone", ())
    room.give(AdmittedSet(frozenset(), ready=True), PodAdmitted("tiny", TINY))
    wait_until(lambda: not tree.cgroups.exists("/kubepods/podgone"), what="the orphan to be removed")
    assert tree.cgroups.exists("/kubepods/podtiny")


def test_nothing_is_removed_before_the_sources_are_ready(tree: FakeTree, room: RoomRunner):
    tree.cgroups.ensure("/kubepods/podgone", ())
    room.give(AdmittedSet(frozenset(), ready=False), PodForgotten("gone"))
    room.run_here(room.room._sweep)
    assert tree.cgroups.exists("/kubepods/podgone")


def test_replay_gives_a_new_room_what_it_needs(room: RoomRunner):
    room.give(PodAdmitted("tiny", TINY))
    room.wait_for(PodCgroupReady)
    room.link.clear()
    room.come_up("pods")
    room.come_up("http")
    room.come_up("sources")
    wait_until(lambda: len(room.link.of(NodeFacts)) == 2)
    assert room.link.of(PodCgroupReady, to="pods")[0].uid == "tiny"
    assert not room.link.of(NodeFacts, to="sources")


def test_a_refused_cgroup_is_reported_and_tried_again(tree: FakeTree, room: RoomRunner):
    blocked = tree.root / "cpu/kubepods/besteffort/podx"
    blocked.mkdir()
    room.give(PodAdmitted("x", pod("x", {})))
    assert "cannot write" in room.wait_for(PodCgroupReady).problem
    blocked.rmdir()
    room.wait_for(PodCgroupReady, lambda m: not m.problem)


def test_a_minute_heals_what_others_changed(tree: FakeTree, room: RoomRunner):
    room.give(PodAdmitted("tiny", TINY))
    room.wait_for(PodCgroupReady)
    (tree.root / "cpu/kubepods/podtiny/cpu.shares").write_text("2")
    (tree.root / "cpu/kubepods/burstable/cpu.shares").write_text("77")
    room.run_here(room.room._refresh_all)
    assert tree.read("cpu/kubepods/podtiny/cpu.shares") == "12"
    assert tree.read("cpu/kubepods/burstable/cpu.shares") == "2"


def test_everything_waits_for_a_silent_runtime(tree: FakeTree, tmp_path: Path):
    with runner(tree, tmp_path, None) as room:
        room.give(PodAdmitted("tiny", TINY), PodStopped("ghost", None), runtime("cgroupfs"))
        assert room.wait_for(PodCgroupReady).uid == "tiny"
        assert room.wait_for(PodFreed).uid == "ghost"


def test_a_contradicting_driver_ends_the_room(tree: FakeTree, tmp_path: Path):
    with pytest.raises(StartError, match="cgroupDriver: cgroupfs"), \
            runner(tree, tmp_path, "systemd", cgroup_driver="cgroupfs") as room:  # fmt: skip
        wait_until(room.ended)


def test_a_missing_cgroup_root_ends_the_room(tree: FakeTree, tmp_path: Path):
    with pytest.raises(StartError, match='cgroupRoot "/mine" does not exist'), \
            runner(tree, tmp_path, cgroup_root="/mine") as room:  # fmt: skip
        wait_until(room.ended)


def test_below_a_cgroup_root(tree: FakeTree, tmp_path: Path):
    tree.cgroups.ensure("/mine", ())
    with runner(tree, tmp_path, cgroup_root="/mine") as room:
        room.give(PodAdmitted("x", pod("x", {})))
        assert room.wait_for(PodCgroupReady).parent == "/mine/kubepods/besteffort/podx"
    assert tree.cgroups.exists("/mine/kubepods/besteffort/podx")


def test_without_cgroups_per_qos_nothing_is_made(tree: FakeTree, tmp_path: Path):
    with runner(tree, tmp_path, cgroups_per_qos=False, enforce_node_allocatable=(), cgroup_root="/mine") as room:
        room.give(PodAdmitted("tiny", TINY))
        assert room.wait_for(PodCgroupReady).parent == "/mine"
        room.give(PodStopped("tiny", TINY))
        room.wait_for(PodFreed)
    assert tree.cgroups.children("/") == set()


def test_a_reserved_cgroup_is_limited_and_must_exist(tree: FakeTree, tmp_path: Path):
    fields = {"enforce_node_allocatable": ("pods", "system-reserved"), "system_reserved_cgroup": "/system",
              "system_reserved": {"cpu": "500m", "memory": "1Gi"}}
    with pytest.raises(StartError, match="/system does not exist"), runner(tree, tmp_path, **fields) as room:
        wait_until(room.ended)
    tree.cgroups.ensure("/system", ())
    with runner(tree, tmp_path, **fields) as room:
        room.wait_for(NodeFacts)
    assert tree.read("memory/system/memory.limit_in_bytes") == str(GI)
    assert tree.read("memory/kubepods/memory.limit_in_bytes") == str(3 * GI)


def test_on_v2(tmp_path: Path):
    root = tmp_path / "v2"
    root.mkdir()
    tree = FakeTree.v2(root)
    with runner(tree, tmp_path) as room:
        room.give(PodAdmitted("tiny", TINY))
        assert room.wait_for(PodCgroupReady).problem == ""
    assert tree.read("kubepods/podtiny/cpu.max") == "1200 100000"
    assert tree.read("kubepods/podtiny/memory.max") == str(64 << 20)
    assert tree.read("kubepods/memory.max") == str(4 * GI)
