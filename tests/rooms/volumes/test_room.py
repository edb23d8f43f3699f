import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubelet_mp.config import Settings
from kubelet_mp.host import mounts
from kubelet_mp.rooms.volumes import kinds
from kubelet_mp.rooms.volumes.kinds import Job, Kind, VolumeError
from kubelet_mp.rooms.volumes.room import VolumesRoom
from kubelet_mp.wire.messages import (
    AdmittedSet,
    Event,
    NodeFacts,
    PodAdmitted,
    PodForgotten,
    PodFreed,
    PodStopped,
    PodVolumesReady,
)
from tests.fakes.cgrouptree import FakeTree
from tests.fakes.link import RoomRunner
from tests.support import wait_until

FACTS = NodeFacts(("192.0.2.5",), "n", 1, "cgroupfs", {"memory": 1 << 30}, {"memory": 1 << 30})


def pod(uid: str, *volumes: dict[str, Any], **meta: Any) -> dict[str, Any]:
    mounted = [{"name": volume["name"], "mountPath": "/x"} for volume in volumes]
    return {"metadata": {"uid": uid, "name": "p", "namespace": "d", **meta},
            "spec": {"volumes": list(volumes), "containers": [{"name": "c", "volumeMounts": mounted}]}}


EMPTY = {"name": "e", "emptyDir": {}}


class Slow(Kind):
    """Waits until it is let go, or fails as often as it is told to."""

    plugin = "example.com/slow"

    def __init__(self) -> None:
        self.go, self.failures, self.attempts = threading.Event(), 0, 0

    def set_up(self, job: Job) -> str:
        self.go.wait(10)
        self.attempts += 1
        if self.attempts <= self.failures:
            raise VolumeError("not yet")
        return f"/slow/{job.name}"


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    kind = Slow()
    monkeypatch.setitem(kinds.KINDS, "nfs", kind)  # type: ignore[arg-type]
    monkeypatch.setattr("kubelet_mp.rooms.volumes.podstate.FIRST", 0.02)
    yield kind
    kind.go.set()


@pytest.fixture
def tree(tmp_path: Path) -> FakeTree:
    (tmp_path / "cgroup").mkdir()
    return FakeTree.v1(tmp_path / "cgroup")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    found = tmp_path.resolve() / "root"
    found.mkdir()
    yield found
    for mount in mounts.under(mounts.mount_table(), str(found)):
        mounts.umount(mount.path)


@pytest.fixture
def room(root: Path, tree: FakeTree, monkeypatch: pytest.MonkeyPatch) -> Iterator[RoomRunner]:
    monkeypatch.setattr("kubelet_mp.rooms.volumes.room.SWEEP_DELAY", 0.01)
    monkeypatch.setattr("kubelet_mp.rooms.volumes.orphans.PATIENCE", 0.05)
    settings = Settings(node_name="n", root_dir=str(root))
    with RoomRunner(VolumesRoom, settings, cgroups=tree.cgroups, share_root=False) as running:
        running.give(FACTS)
        yield running


def test_volumes_stand_and_their_paths_are_told(room: RoomRunner, root: Path):
    room.give(PodAdmitted("u", pod("u", EMPTY, {"name": "h", "hostPath": {"path": "/etc", "type": "Directory"}})))
    ready = room.wait_for(PodVolumesReady)
    assert ready.paths == {"e": f"{root}/pods/u/volumes/kubernetes.io~empty-dir/e", "h": "/etc"}
    assert (ready.problem, ready.pending) == ("", ())


def test_a_pod_without_volumes_is_ready_at_once(room: RoomRunner, root: Path):
    room.give(PodAdmitted("u", pod("u")))
    assert room.wait_for(PodVolumesReady).paths == {}
    assert not (root / "pods/u").exists()


def test_an_empty_dir_takes_milliseconds(room: RoomRunner):
    took = []
    for number in range(5):
        start = time.perf_counter()
        room.give(PodAdmitted(f"u{number}", pod(f"u{number}", EMPTY)))
        room.wait_for(PodVolumesReady, lambda m, n=number: m.uid == f"u{n}")  # type: ignore[misc]
        took.append(time.perf_counter() - start)
    assert min(took) < 0.02


def test_pods_before_the_facts_of_the_node_wait_for_them(root: Path, tree: FakeTree):
    settings = Settings(node_name="n", root_dir=str(root))
    with RoomRunner(VolumesRoom, settings, cgroups=tree.cgroups, share_root=False) as room:
        room.give(PodAdmitted("u", pod("u", EMPTY)))
        room.run_here(lambda: None)
        assert room.link.of(PodVolumesReady) == []
        room.give(FACTS)
        assert "e" in room.wait_for(PodVolumesReady).paths


def test_a_failure_is_told_with_an_event_and_tried_again(room: RoomRunner, slow: Slow):
    slow.go.set()
    slow.failures = 2
    room.give(PodAdmitted("u", pod("u", {"name": "s", "nfs": {}})))
    ready = room.wait_for(PodVolumesReady, lambda m: not m.problem)
    assert ready.paths == {"s": "/slow/s"}
    events = room.link.of(Event)
    assert [(e.type, e.reason, e.message) for e in events] == [
        ("Warning", "FailedMount", 'MountVolume.SetUp failed for volume "s" : not yet')] * 2  # fmt: skip
    told = room.link.of(PodVolumesReady)[0]
    assert told.pending == ("s",) and told.problem == events[0].message


def test_an_unsupported_volume_is_said_and_never_pretended(room: RoomRunner):
    room.give(PodAdmitted("u", pod("u", EMPTY, {"name": "s", "secret": {"secretName": "x"}})))
    ready = room.wait_for(PodVolumesReady, lambda m: m.problem != "" and "e" in m.paths)
    assert ready.pending == ("s",) and "s" not in ready.paths
    assert ready.problem == 'volume "s": secret volumes need the API server and are not supported yet'
    assert [e.reason for e in room.link.of(Event)] == ["FailedMount"]


def test_a_stuck_volume_stops_only_its_own_pod_and_is_told(
    room: RoomRunner, slow: Slow, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("kubelet_mp.rooms.volumes.setup.SLOW", 0.05)
    room.give(PodAdmitted("stuck", pod("stuck", {"name": "s", "nfs": {}})), PodAdmitted("fine", pod("fine", EMPTY)))
    room.wait_for(PodVolumesReady, lambda m: m.uid == "fine" and not m.problem)
    assert "has not ended after" in room.wait_for(PodVolumesReady, lambda m: m.uid == "stuck").problem
    slow.go.set()
    room.wait_for(PodVolumesReady, lambda m: m.uid == "stuck" and not m.problem)


def test_a_stop_waits_for_the_set_up_that_runs(room: RoomRunner, slow: Slow):
    room.give(PodAdmitted("u", pod("u", {"name": "s", "nfs": {}})))
    wait_until(lambda: room.run_here(lambda: room.room._setups.busy("u")))
    room.give(PodStopped("u", None))
    room.run_here(lambda: None)
    assert room.link.of(PodFreed) == []
    slow.go.set()
    freed = room.wait_for(PodFreed)
    assert (freed.uid, freed.room, freed.problem) == ("u", "volumes", "")


def test_a_stopped_pod_is_freed_and_a_forgotten_one_leaves_nothing(room: RoomRunner, root: Path):
    room.give(PodAdmitted("u", pod("u", EMPTY)))
    path = Path(room.wait_for(PodVolumesReady).paths["e"])
    (path / "f").write_text("x")
    (root / "pods/u/etc-hosts").write_text("x")
    room.give(PodStopped("u", None))
    room.wait_for(PodFreed)
    assert not path.exists() and (root / "pods/u/etc-hosts").exists()
    room.give(PodForgotten("u"))
    wait_until(lambda: not (root / "pods/u").exists())


def test_what_cannot_be_freed_is_told_until_it_can(room: RoomRunner, root: Path):
    foreign = root / "pods/u/volumes/example.com~disk/v"
    foreign.mkdir(parents=True)
    (foreign / "data").write_text("x")
    room.give(PodStopped("u", None))
    assert "cannot remove directory" in room.wait_for(PodFreed).problem
    (foreign / "data").unlink()
    room.wait_for(PodFreed, lambda m: not m.problem)


def test_a_pod_that_comes_back_while_it_is_taken_down_is_set_up_after(room: RoomRunner, root: Path):
    room.give(PodAdmitted("u", pod("u", EMPTY)))
    path = Path(room.wait_for(PodVolumesReady).paths["e"])
    (path / "old").write_text("x")
    room.link.clear()
    room.give(PodStopped("u", None), PodAdmitted("u", pod("u", EMPTY)))
    room.wait_for(PodVolumesReady)
    assert path.is_dir() and list(path.iterdir()) == []


def test_labels_reach_a_downward_volume_when_the_pod_changes(room: RoomRunner):
    if os.geteuid() != 0:
        pytest.skip("mounts need root")
    items = [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]
    volume = {"name": "w", "downwardAPI": {"items": items}}
    room.give(PodAdmitted("u", pod("u", volume, labels={"a": "1"})))
    path = Path(room.wait_for(PodVolumesReady).paths["w"])
    room.give(PodAdmitted("u", pod("u", volume, labels={"a": "2"})))
    wait_until(lambda: (path / "l").read_text() == 'a="2"')


def test_replay_tells_pods_again(room: RoomRunner):
    room.give(PodAdmitted("u", pod("u", EMPTY)))
    room.wait_for(PodVolumesReady)
    room.link.clear()
    room.come_up("http")
    room.come_up("pods")
    assert room.wait_for(PodVolumesReady).uid == "u"
    assert room.link.of(PodVolumesReady, to="http") == []


def test_orphans_go_once_nothing_of_them_runs(room: RoomRunner, root: Path, tree: FakeTree):
    for uid in ("gone", "running", "known"):
        (root / f"pods/{uid}/volumes/kubernetes.io~empty-dir/e").mkdir(parents=True)
    tree.cgroups.ensure("/kubepods/burstable/podrunning", ())
    tree.put_process("cpu/kubepods/burstable/podrunning", 5)
    room.give(AdmittedSet(frozenset({"known"}), ready=True))
    wait_until(lambda: not (root / "pods/gone").exists(), what="the orphan to be removed")
    assert (root / "pods/running").exists() and (root / "pods/known").exists()
    tree.put_process("cpu/kubepods/burstable/podrunning", None)
    wait_until(lambda: not (root / "pods/running").exists(), what="the other orphan to be removed")


def test_no_orphan_is_removed_before_the_sources_are_ready(room: RoomRunner, root: Path):
    (root / "pods/gone").mkdir(parents=True, exist_ok=True)
    room.give(AdmittedSet(frozenset(), ready=False))
    for _ in range(3):
        room.run_here(room.room._sweep)
    assert (root / "pods/gone").exists()


def test_a_uid_that_is_no_file_name_is_refused(room: RoomRunner, root: Path):
    room.give(PodAdmitted("../../x", pod("../../x", EMPTY)))
    assert "cannot be the name of a directory" in room.wait_for(PodVolumesReady).problem
    room.give(PodStopped("../../x", None))
    room.wait_for(PodFreed)


def test_after_a_restart_what_stands_is_found_again(root: Path, tree: FakeTree):
    settings = Settings(node_name="n", root_dir=str(root))
    paths = []
    for _ in range(2):
        with RoomRunner(VolumesRoom, settings, cgroups=tree.cgroups, share_root=False) as room:
            room.give(FACTS, PodAdmitted("u", pod("u", EMPTY)))
            paths.append(Path(room.wait_for(PodVolumesReady).paths["e"]))
            (paths[-1] / str(len(paths))).write_text("x")
    assert paths[0] == paths[1] and sorted(p.name for p in paths[0].iterdir()) == ["1", "2"]
