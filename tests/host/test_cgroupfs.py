import os
import signal
import subprocess
from pathlib import Path

import pytest

from kubelet_mp.errors import CgroupError, StartError
from kubelet_mp.host import cgroupfs
from kubelet_mp.host.cgroupfs import Cgroups, Hierarchy, detect
from kubelet_mp.host.mounts import mount_table, parse_mountinfo
from kubelet_mp.model.cgroupvalues import Setting, same, settings
from kubelet_mp.model.resources import CgroupValues
from tests.fakes.cgrouptree import FakeTree

POD = "/kubepods/burstable/pod1"
VALUES = CgroupValues(cpu_shares=12, cpu_quota=1200, cpu_period=100000, memory_max=64 << 20, pids_max=99,
                      hugetlb={"2MB": 0, "1GB": 0})

V1_TABLE = """\
30 20 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
33 30 0:29 / /sys/fs/cgroup/systemd rw - cgroup systemd rw,xattr,name=systemd
34 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate
"""


def test_v1_and_hybrid_mounts_are_told_from_the_mount_table():
    found = detect(parse_mountinfo(V1_TABLE))
    assert found.version == 1
    assert found.mounts == {
        "cpu": "/sys/fs/cgroup/cpu,cpuacct", "cpuacct": "/sys/fs/cgroup/cpu,cpuacct",
        "memory": "/sys/fs/cgroup/memory", "name=systemd": "/sys/fs/cgroup/systemd",
        "unified": "/sys/fs/cgroup/unified",
    }  # fmt: skip
    assert found.directories(("cpu", "cpuacct")) == ["/sys/fs/cgroup/cpu,cpuacct"]
    assert found.missing() == ["cpuset"]


def test_v2_is_where_the_root_itself_is_cgroup2(tmp_path: Path):
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu memory pids\n")
    found = detect(parse_mountinfo(f"1 0 0:1 / {tmp_path} rw - cgroup2 cgroup2 rw\n"), str(tmp_path))
    assert found.version == 2 and set(found.mounts) == {"cpuset", "cpu", "memory", "pids"}
    assert found.missing() == []


def test_no_hierarchy_is_a_start_error():
    with pytest.raises(StartError, match="no cgroup hierarchy"):
        detect(parse_mountinfo("34 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"))


def test_v1_values_are_written_once_and_then_found_right(tmp_path: Path):
    tree = FakeTree.v1(tmp_path)
    wanted = settings(VALUES, 1)
    assert "made" in tree.cgroups.ensure(POD, wanted)
    assert tree.read(f"cpu{POD}/cpu.shares") == "12"
    assert tree.read(f"cpu{POD}/cpu.cfs_quota_us") == "1200"
    assert tree.read(f"memory{POD}/memory.limit_in_bytes") == str(64 << 20)
    assert tree.read(f"pids{POD}/pids.max") == "99"
    assert tree.read(f"hugetlb{POD}/hugetlb.2MB.limit_in_bytes") == "0"
    assert tree.cgroups.ensure(POD, wanted) == []


def test_v1_cpusets_are_inherited_on_the_whole_way_down(tmp_path: Path):
    tree = FakeTree.v1(tmp_path)
    tree.cgroups.ensure(POD, ())
    for path in ("/kubepods", "/kubepods/burstable", POD):
        assert tree.read(f"cpuset{path}/cpuset.cpus") == "0-1"
    assert tree.read(f"cpuset{POD}/cpuset.mems") == "0"


def test_v2_controllers_are_switched_on_above_the_pod_and_values_written(tmp_path: Path):
    tree = FakeTree.v2(tmp_path)
    changed = tree.cgroups.ensure(POD, settings(VALUES, 2))
    assert changed[0] == "made"
    on = set(tree.read("cgroup.subtree_control").split("+")) - {""}
    assert on == {"cpu", "cpuset", "memory", "pids", "hugetlb"}
    assert "memory" in tree.read(f"{POD}/cgroup.controllers")
    assert tree.read(f"{POD}/cpu.max") == "1200 100000"
    assert tree.read(f"{POD}/cpu.weight") == "1"
    assert tree.read(f"{POD}/memory.max") == str(64 << 20)
    assert tree.read(f"{POD}/hugetlb.2MB.max") == "0"
    assert tree.cgroups.ensure(POD, settings(VALUES, 2)) == []


def test_v2_parent_removed_by_others_is_made_again(tmp_path: Path):
    tree = FakeTree.v2(tmp_path)
    tree.cgroups.ensure(POD, settings(VALUES, 2))
    assert Cgroups(tree.cgroups.hierarchy, drop=tree.cgroups._drop).remove("/kubepods")
    assert "made" in tree.cgroups.ensure(POD, settings(VALUES, 2))
    assert tree.read(f"{POD}/memory.max") == str(64 << 20)


def test_a_changed_value_is_the_only_one_written(tmp_path: Path):
    tree = FakeTree.v2(tmp_path)
    tree.cgroups.ensure(POD, settings(VALUES, 2))
    tree.root.joinpath(POD[1:], "pids.max").write_text("max")
    assert tree.cgroups.ensure(POD, settings(VALUES, 2)) == ["pids.max"]


def test_a_refused_write_names_file_text_and_fix(tmp_path: Path):
    tree = FakeTree.v2(tmp_path)
    with pytest.raises(CgroupError, match=r"cannot write '5' to .*/pod1/memory.peak.*controller is on"):
        tree.cgroups.ensure(POD, [Setting("memory", "memory.peak", "5")])


def test_files_of_absent_controllers_and_optional_files_are_left_out(tmp_path: Path):
    tree = FakeTree.v1(tmp_path)
    extra = [Setting("rdma", "rdma.max", "1"),
             Setting("hugetlb", "hugetlb.1GB.limit_in_bytes", "0", optional=True)]
    assert tree.cgroups.ensure(POD, extra) == ["made"]


def test_removal_goes_children_first_and_waits_for_processes(tmp_path: Path):
    tree = FakeTree.v1(tmp_path)
    tree.cgroups.ensure(f"{POD}/container", ())
    tree.put_process(f"memory{POD}/container", 77)
    assert tree.cgroups.remove(POD) is False
    assert tree.cgroups.processes(POD) == {77}
    tree.put_process(f"memory{POD}/container", None)
    assert tree.cgroups.remove(POD) is True
    assert not tree.cgroups.exists(POD) and tree.cgroups.children("/kubepods/burstable") == set()
    assert tree.cgroups.remove(POD) is True


def test_what_is_left_in_a_cgroup_is_killed(tmp_path: Path):
    tree = FakeTree.v1(tmp_path)
    tree.cgroups.ensure(f"{POD}/container", ())
    tree.cgroups.ensure("/other", ())
    tree.put_process(f"memory{POD}/container", 77)
    tree.put_process("memory/other", 78)
    assert tree.cgroups.kill(POD) == {77} and tree.killed == [77]
    assert tree.cgroups.remove(POD) is True and tree.cgroups.processes("/other") == {78}
    assert tree.cgroups.kill(POD) == set()


def test_only_the_process_that_is_meant_is_killed():
    child = subprocess.Popen(["sleep", "60"])
    try:
        cgroupfs._kill(child.pid, lambda: False)
        assert child.poll() is None
        cgroupfs._kill(child.pid, lambda: True)
        assert child.wait(10) == -signal.SIGKILL
    finally:
        child.kill()
        child.wait()
    cgroupfs._kill(child.pid, lambda: True)  # gone already: nothing to do


@pytest.mark.parametrize(
    ("file", "now", "wanted", "alike"),
    [
        ("memory.limit_in_bytes", "9223372036854771712", "-1", True),
        ("memory.max", "max", str(1 << 62), True),
        ("memory.max", "4096", "4097", True),
        ("memory.max", "4096", "8192", False),
        ("memory.max", "max", "0", False),
        ("cpu.shares", "2", "3", False),
        ("pids.max", "max", "99", False),
    ],
)
def test_same_knows_how_the_kernel_shows_what_was_written(file: str, now: str, wanted: str, alike: bool):
    assert same(file, now, wanted) is alike


def test_quota_without_limit_in_both_versions():
    values = CgroupValues(cpu_shares=2, cpu_quota=-1, cpu_period=50000)
    assert {s.file: s.text for s in settings(values, 2)} == {"cpu.weight": "1", "cpu.max": "max 50000"}
    assert {s.file: s.text for s in settings(values, 1)} == {
        "cpu.shares": "2", "cpu.cfs_period_us": "50000", "cpu.cfs_quota_us": "-1"}  # fmt: skip


def _real_v1() -> Cgroups | None:
    try:
        cgroups = Cgroups(detect(mount_table()))
    except StartError:
        return None
    writable = os.access(cgroups.hierarchy.mounts.get("cpu", "/nowhere"), os.W_OK)
    return cgroups if os.geteuid() == 0 and writable and not cgroups.hierarchy.missing() else None


@pytest.mark.skipif(_real_v1() is None, reason="needs root and a writable cgroup filesystem")
def test_on_the_kernel_of_this_machine():
    cgroups, top = _real_v1(), f"/kmp-unit-{os.getpid()}"
    assert cgroups is not None
    version = cgroups.hierarchy.version
    values = CgroupValues(cpu_shares=12, cpu_quota=1200, cpu_period=100000, memory_max=64 << 20)
    try:
        assert "made" in cgroups.ensure(f"{top}/kubepods/podX", settings(values, version))
        assert cgroups.ensure(f"{top}/kubepods/podX", settings(values, version)) == []
        assert cgroups.children(f"{top}/kubepods") == {"podX"}
        quota = cgroups.read(f"{top}/kubepods/podX", "cpu", "cpu.max" if version == 2 else "cpu.cfs_quota_us")
        assert quota is not None and quota.startswith("1200")
    finally:
        assert cgroups.remove(top)
    assert not cgroups.exists(top)


def test_hierarchy_lists_every_directory_once():
    assert Hierarchy(2, {"cpu": "/c", "memory": "/c"}).directories() == ["/c"]
