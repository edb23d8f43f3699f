"""Facts about the host that decide whether the agent can start; gathered by reading only.

Source of what is asked: Kubernetes 1.37 cmd/kubelet/app and pkg/kubelet/cm. Roots are passed in.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kubelet_mp.errors import HostError, StartError
from kubelet_mp.host import cgroupfs, mounts

SYSCTLS = {
    "vm.overcommit_memory": 1,
    "vm.panic_on_oom": 0,
    "kernel.panic": 10,
    "kernel.panic_on_oops": 1,
    "kernel.keys.root_maxkeys": 1000000,
    "kernel.keys.root_maxbytes": 25000000,
}
"""Kernel settings that the kubelet enforces (pkg/kubelet/cm, k8s.io/component-helpers/node/util/sysctl)."""


@dataclass(frozen=True, slots=True)
class Port:
    """One port that the agent will listen on. problem: why it cannot be bound now, "" when it can."""

    field: str
    address: str
    number: int
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory to be. exists: it is there; nearest: the deepest directory above it (or itself) that is;
    writable: that one can be written; fs_type: of its mount, "" unknown; sizes in bytes."""

    path: str
    exists: bool
    nearest: str
    writable: bool
    fs_type: str = ""
    free: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class Cgroups:
    """version: 1, 2, or 0 for none; cfs_period: cpu.cfs_period_us (v1) or cpu.max (v2) can be had."""

    version: int
    controllers: frozenset[str] = frozenset()
    cfs_period: bool = True


@dataclass(frozen=True, slots=True)
class HostFacts:
    """swaps: active swap areas; sysctls: None for one that cannot be read; lock_holder: pid or None."""

    uid: int
    swaps: tuple[str, ...]
    cgroups: Cgroups
    root: Directory
    wall_time: float
    ports: tuple[Port, ...] = ()
    sysctls: Mapping[str, int | None] = field(default_factory=dict)
    sysctls_writable: bool = True
    inotify: Mapping[str, int | None] = field(default_factory=dict)
    lock_holder: int | None = None


def active_swaps(proc: str = "/proc") -> tuple[str, ...]:
    """Names of the swap areas in use; none when the kernel has no swap."""
    lines = _text(f"{proc}/swaps").splitlines()[1:]
    return tuple(line.split()[0] for line in lines if line.strip())


def cgroups(proc: str = "/proc", root: str = "/sys/fs/cgroup") -> Cgroups:
    """Which cgroup version is in force and what it offers; version 0 when nothing is mounted."""
    try:
        found = cgroupfs.detect(mounts.mount_table(f"{proc}/self/mountinfo"), root)
    except (StartError, HostError):
        return Cgroups(0)
    cpu = found.mounts.get("cpu", "")
    quota = found.version == 2 or bool(cpu and os.path.exists(f"{cpu}/cpu.cfs_period_us"))
    return Cgroups(found.version, frozenset(found.mounts), quota)


def directory(path: str, proc: str = "/proc") -> Directory:
    """What is known of a directory that the agent will make or use."""
    nearest = Path(path)
    while not nearest.is_dir() and nearest != nearest.parent:
        nearest = nearest.parent
    real = os.path.realpath(nearest)
    status = os.statvfs(real)
    return Directory(
        path=path,
        exists=str(nearest) == path,
        nearest=str(nearest),
        writable=os.access(real, os.W_OK | os.X_OK),
        fs_type=_fs_type(real, proc),
        free=status.f_bavail * status.f_frsize,
        size=status.f_blocks * status.f_frsize,
    )


def _fs_type(path: str, proc: str) -> str:
    try:
        found = mounts.containing(mounts.mount_table(f"{proc}/self/mountinfo"), path)
    except HostError:
        return ""
    return found.fs_type if found else ""


def sysctls(proc: str = "/proc", names: Iterable[str] = tuple(SYSCTLS)) -> dict[str, int | None]:
    """Kernel settings as whole numbers."""
    return {name: _number(f"{proc}/sys/{name.replace('.', '/')}") for name in names}


def sysctls_writable(proc: str = "/proc") -> bool:
    """Whether /proc/sys can be written here (in a container it usually cannot)."""
    return os.access(f"{proc}/sys/vm/overcommit_memory", os.W_OK)


def inotify_limits(proc: str = "/proc") -> dict[str, int | None]:
    """fs.inotify.max_user_instances and max_user_watches."""
    return sysctls(proc, ("fs.inotify.max_user_instances", "fs.inotify.max_user_watches"))


def try_port(field: str, address: str, number: int) -> Port:
    """The port with the reason why it cannot be bound, bound and let go of at once."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address, number))
            probe.listen(1)
    except OSError as error:
        return Port(field, address, number, error.strerror or str(error))
    return Port(field, address, number)


def lock_holder(path: str, proc: str = "/proc") -> int | None:
    """The pid that holds a flock on the file, found without trying the lock, which could disturb its owner."""
    try:
        inode = os.stat(path).st_ino
    except OSError:
        return None
    said = _text(path).strip()
    for line in _text(f"{proc}/locks").splitlines():
        parts = line.split()
        if len(parts) < 6 or parts[1] != "FLOCK" or parts[5].rpartition(":")[2] != str(inode):
            continue
        if parts[4] == said or not said:
            return int(parts[4])
    return None


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1 << 20)
    except OSError:
        return ""


def _number(path: str) -> int | None:
    text = _text(path).strip()
    return int(text) if text.lstrip("-").isdigit() else None
