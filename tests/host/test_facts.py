"""Facts about the host from real files in a temporary root, and from this machine."""

import fcntl
import os
import socket
from pathlib import Path

import pytest

from kubelet_mp.host import facts

MOUNTINFO_V1 = """\
1 0 0:1 / / rw - ext4 /dev/sda1 rw
2 1 0:2 / {root} rw - tmpfs tmpfs rw
3 2 0:3 / {root}/cpu rw - cgroup cgroup rw,cpu,cpuacct
4 2 0:4 / {root}/memory rw - cgroup cgroup rw,memory
"""
MOUNTINFO_V2 = "1 0 0:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:2 / {root} rw - cgroup2 cgroup2 rw\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """An empty proc; put() fills it."""
    return tmp_path / "proc"


def put(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_swaps(proc: Path) -> None:
    assert facts.active_swaps(str(proc)) == ()
    put(proc / "swaps", "Filename\tType\tSize\tUsed\tPriority\n")
    assert facts.active_swaps(str(proc)) == ()
    put(proc / "swaps", "Filename\tType\tSize\n/dev/sda2  partition 1 0 -2\n/swapfile file 1 0 -3\n")
    assert facts.active_swaps(str(proc)) == ("/dev/sda2", "/swapfile")


def test_cgroup_v1(proc: Path, tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    put(proc / "self/mountinfo", MOUNTINFO_V1.format(root=root))
    found = facts.cgroups(str(proc), str(root))
    assert (found.version, found.cfs_period) == (1, False)
    assert found.controllers == {"cpu", "cpuacct", "memory"}
    put(root / "cpu/cpu.cfs_period_us", "100000")
    assert facts.cgroups(str(proc), str(root)).cfs_period


def test_cgroup_v2(proc: Path, tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    put(proc / "self/mountinfo", MOUNTINFO_V2.format(root=root))
    put(root / "cgroup.controllers", "cpu memory pids\n")
    assert facts.cgroups(str(proc), str(root)) == facts.Cgroups(2, frozenset({"cpu", "memory", "pids"}), True)


def test_no_cgroups_at_all(proc: Path, tmp_path: Path) -> None:
    put(proc / "self/mountinfo", "1 0 0:1 / / rw - ext4 /dev/sda1 rw\n")
    assert facts.cgroups(str(proc), str(tmp_path)).version == 0
    assert facts.cgroups(str(proc / "none"), str(tmp_path)).version == 0


def test_a_directory_to_be(proc: Path, tmp_path: Path) -> None:
    put(proc / "self/mountinfo", f"1 0 0:1 / / rw - ext4 d rw\n2 1 0:2 / {tmp_path} rw - nfs4 server:/x rw\n")
    there = facts.directory(str(tmp_path), str(proc))
    missing = facts.directory(str(tmp_path / "a/b"), str(proc))
    assert (there.exists, missing.exists, missing.nearest) == (True, False, str(tmp_path))
    assert (there.fs_type, missing.fs_type) == ("nfs4", "nfs4")
    assert there.writable
    assert 0 < there.free <= there.size


def test_a_file_in_the_way_is_not_a_directory(tmp_path: Path) -> None:
    path = put(tmp_path / "root", "")
    found = facts.directory(path)
    assert (found.exists, found.nearest) == (False, str(tmp_path))


def test_sysctls(proc: Path) -> None:
    put(proc / "sys/vm/overcommit_memory", "1\n")
    put(proc / "sys/kernel/panic", "junk\n")
    put(proc / "sys/fs/inotify/max_user_watches", "8192\n")
    found = facts.sysctls(str(proc))
    assert (found["vm.overcommit_memory"], found["kernel.panic"], found["vm.panic_on_oom"]) == (1, None, None)
    assert facts.sysctls_writable(str(proc))
    assert facts.inotify_limits(str(proc)) == {
        "fs.inotify.max_user_instances": None,
        "fs.inotify.max_user_watches": 8192,
    }


def test_ports() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        assert facts.try_port("port", "127.0.0.1", number).problem == os.strerror(98)
    assert facts.try_port("port", "127.0.0.1", number).problem == ""
    assert facts.try_port("port", "192.0.2.1", 1).problem


def test_the_holder_of_a_lock_is_found_without_trying_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert facts.lock_holder(str(path)) is None
    with path.open("w") as file:
        file.write(f"{os.getpid()}\n")
        file.flush()
        assert facts.lock_holder(str(path)) is None
        fcntl.flock(file, fcntl.LOCK_EX)
        assert facts.lock_holder(str(path)) == os.getpid()
    assert facts.lock_holder(str(path)) is None
