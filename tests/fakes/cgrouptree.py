"""A cgroup hierarchy in plain directories, so that the real code runs without a kernel's consent.

`FakeTree.v2(tmp_path)` and `.v1(tmp_path)`; `.cgroups` is a host.cgroupfs.Cgroups on it. Control files appear
with mkdir as the kernel makes them appear; rmdir is refused while cgroup.procs names a process. No process is
really killed: `.killed` lists those that would be.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from kubelet_mp.host.cgroupfs import Cgroups, Hierarchy

V1 = {
    "cpu": {"cpu.shares": "1024", "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "-1"},
    "cpuacct": {},
    "cpuset": {"cpuset.cpus": "", "cpuset.mems": ""},
    "memory": {"memory.limit_in_bytes": "9223372036854771712"},
    "pids": {"pids.max": "max"},
    "hugetlb": {"hugetlb.2MB.limit_in_bytes": "9223372036852678656"},
    "name=systemd": {},
}
V2 = {
    "cpu": {"cpu.weight": "100", "cpu.max": "max 100000"},
    "cpuset": {"cpuset.cpus": ""},
    "memory": {"memory.max": "max", "memory.min": "0", "memory.low": "0"},
    "pids": {"pids.max": "max"},
    "hugetlb": {"hugetlb.2MB.max": "max", "hugetlb.2MB.rsvd.max": "max"},
}


class FakeTree:
    def __init__(self, version: int, root: Path) -> None:
        self.version, self.root = version, root
        if version == 2:
            mounts = dict.fromkeys(V2, str(root))
            self._fill(root, ("cgroup.controllers", " ".join(V2)), ("cgroup.subtree_control", ""))
        else:
            mounts = {name: str(root / name) for name in V1}
            for name in V1:
                (root / name).mkdir()
                self._fill(root / name, *V1[name].items())
            (root / "cpuset/cpuset.cpus").write_text("0-1")
            (root / "cpuset/cpuset.mems").write_text("0")
        self.cgroups = Cgroups(Hierarchy(version, mounts), self._mkdir, self._rmdir, self._kill)
        self.killed: list[int] = []

    @classmethod
    def v1(cls, root: Path) -> FakeTree:
        return cls(1, root)

    @classmethod
    def v2(cls, root: Path) -> FakeTree:
        return cls(2, root)

    def read(self, path: str) -> str:
        """The text of a file below the root; on v1 the path begins with the controller."""
        return (self.root / path.lstrip("/")).read_text()

    def put_process(self, path: str, pid: int | None) -> None:
        """Have a process in a cgroup, or with None none."""
        (self.root / path.lstrip("/") / "cgroup.procs").write_text(f"{pid}\n" if pid else "")

    def _kill(self, pid: int, still: Callable[[], bool]) -> None:
        """The process vanishes from every cgroup."""
        assert still()
        self.killed.append(pid)
        for file in self.root.rglob("cgroup.procs"):
            file.write_text("".join(f"{p}\n" for p in file.read_text().split() if int(p) != pid))

    def _mkdir(self, path: str) -> None:
        os.mkdir(path)
        directory = Path(path)
        self._fill(directory, ("cgroup.procs", ""))
        if self.version == 1:
            self._fill(directory, *V1[directory.relative_to(self.root).parts[0]].items())
            return
        on = (directory.parent / "cgroup.subtree_control").read_text().replace("+", " ").split()
        self._fill(directory, ("cgroup.controllers", " ".join(on)), ("cgroup.subtree_control", ""))
        for name in on:
            self._fill(directory, *V2[name].items())

    @staticmethod
    def _fill(directory: Path, *files: tuple[str, str]) -> None:
        for name, text in files:
            (directory / name).write_text(text)

    @staticmethod
    def _rmdir(path: str) -> None:
        directory = Path(path)
        if not directory.exists():
            raise FileNotFoundError(errno.ENOENT, "no such cgroup", path)
        entries = list(directory.iterdir())
        if any(entry.is_dir() for entry in entries) or (directory / "cgroup.procs").read_text():
            raise OSError(errno.EBUSY, "Device or resource busy", path)
        for entry in entries:
            entry.unlink()
        directory.rmdir()
