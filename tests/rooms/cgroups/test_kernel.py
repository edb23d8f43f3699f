"""The room on the cgroups of this machine's kernel."""

import os
from pathlib import Path

import pytest

from kubelet_mp.config import Settings
from kubelet_mp.config.model import KubeletConfiguration
from kubelet_mp.errors import StartError
from kubelet_mp.host.cgroupfs import Cgroups, detect
from kubelet_mp.host.mounts import mount_table
from kubelet_mp.model.runtime import RuntimeState
from kubelet_mp.rooms.cgroups.room import CgroupsRoom
from kubelet_mp.wire.messages import PodAdmitted, PodCgroupReady, PodFreed, PodStopped, RuntimeStateChanged
from tests.fakes.link import RoomRunner


def runner(cgroups: Cgroups, root: Path, **fields: object) -> RoomRunner:
    config = KubeletConfiguration(**fields)  # type: ignore[arg-type]
    return RoomRunner(CgroupsRoom, Settings(node_name="n", root_dir=str(root), kubelet=config), cgroups=cgroups,
                      find_addresses=lambda *_: ("192.0.2.5",))


def _kernel() -> Cgroups | None:
    try:
        found = Cgroups(detect(mount_table()))
    except StartError:
        return None
    writable = os.access(found.hierarchy.mounts.get("cpu", "/nowhere"), os.W_OK)
    return found if os.geteuid() == 0 and writable and not found.hierarchy.missing() else None


@pytest.mark.skipif(_kernel() is None, reason="needs root and a writable cgroup filesystem")
def test_small_numbers_on_this_kernel(tmp_path: Path):
    cgroups, root = _kernel(), f"/kmp-unit-{os.getpid()}-room"
    assert cgroups is not None
    limits = ({"cpu": "5m", "memory": "32Mi"}, {"cpu": "7m", "memory": "32Mi"})
    containers = [{"name": f"c{i}", "resources": {"limits": each}} for i, each in enumerate(limits)]
    pod = {"metadata": {"uid": "t", "name": "t", "namespace": "d"}, "spec": {"containers": containers}}
    cgroups.ensure(root, ())
    try:
        with runner(cgroups, tmp_path, cgroup_root=root) as room:
            room.give(RuntimeStateChanged(RuntimeState(driver="")), PodAdmitted("t", pod))
            ready = room.wait_for(PodCgroupReady)
            assert (ready.parent, ready.problem) == (f"{root}/kubepods/podt", "")
            v2 = cgroups.hierarchy.version == 2
            quota = cgroups.read(ready.parent, "cpu", "cpu.max" if v2 else "cpu.cfs_quota_us")
            memory = cgroups.read(ready.parent, "memory", "memory.max" if v2 else "memory.limit_in_bytes")
            assert quota is not None and quota.split()[0] == "1200" and memory == str(64 << 20)
            room.give(PodStopped("t", pod))
            assert room.wait_for(PodFreed).problem == ""
            assert not cgroups.exists(ready.parent)
    finally:
        assert cgroups.remove(root)
