"""The cgroup filesystem: where it is mounted, making, setting, reading and removing cgroups; v1 and v2.

Paths of cgroups begin with "/" and are relative to the root of each hierarchy. What values a cgroup should
have is decided elsewhere (kubelet_mp.model.resources).
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from kubelet_mp.errors import CgroupError, StartError
from kubelet_mp.host.mounts import Mount, at
from kubelet_mp.model.cgroupvalues import Setting, same

REQUIRED_V1 = ("cpu", "cpuacct", "cpuset", "memory")
MANAGED = ("cpu", "cpuacct", "cpuset", "memory", "pids", "hugetlb")
DELEGATED = ("cpu", "cpuset", "memory", "pids", "hugetlb")
UNIFIED = "unified"  # key of the v2 tree beside v1 hierarchies, which holds no controllers of ours
_BUSY = (errno.EBUSY, errno.ENOTEMPTY)


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Where each controller is mounted; with version 2 all of them on the same directory."""

    version: int
    mounts: Mapping[str, str]

    def directories(self, controllers: Iterable[str] | None = None) -> list[str]:
        """The mount directories of those controllers (all by default), each once."""
        wanted = self.mounts if controllers is None else controllers
        return list(dict.fromkeys(self.mounts[name] for name in wanted if name in self.mounts))

    def missing(self) -> list[str]:
        """Controllers that a kubelet cannot do without and that are not there."""
        required = REQUIRED_V1 if self.version == 1 else ("cpu", "memory")
        return [name for name in required if name not in self.mounts]


def detect(table: Iterable[Mount], root: str = "/sys/fs/cgroup") -> Hierarchy:
    """Version 2 when `root` itself is a cgroup2 mount, else the v1 (or hybrid) hierarchies.

    Raises StartError when there is neither.
    """
    table = list(table)
    top = at(table, root)
    if top is not None and top.fs_type == "cgroup2":
        return unified(root)
    found: dict[str, str] = {}
    for mount in table:
        for name in _controllers(mount):
            found.setdefault(name, mount.path)
    if not found.keys() - {UNIFIED}:
        raise StartError(f"no cgroup hierarchy is mounted on {root}",
                         "mount cgroup2 on it (systemd does at boot)")
    return Hierarchy(1, found)


def unified(root: str) -> Hierarchy:
    """The v2 hierarchy mounted on `root`. Raises StartError."""
    try:
        with open(f"{root}/cgroup.controllers", encoding="ascii") as file:
            return Hierarchy(2, dict.fromkeys(file.read().split(), root))
    except OSError as error:
        raise StartError(f"cannot read {root}/cgroup.controllers: {error.strerror}",
                         "mount cgroup2 there, or run the agent where it can see it") from error


def _controllers(mount: Mount) -> list[str]:
    if mount.fs_type == "cgroup2":
        return [UNIFIED]
    if mount.fs_type != "cgroup":
        return []
    return sorted(mount.super_options - {"rw", "ro", "xattr", "noprefix", "clone_children", "none"})


class Cgroups:
    """Acts on one hierarchy. `make` and `drop` are os.mkdir and os.rmdir; a test's tree has its own.

    kill: sends SIGKILL to a process id, if `still` says that this is the process meant.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        make: Callable[[str], None] = os.mkdir,
        drop: Callable[[str], None] = os.rmdir,
        kill: Callable[[int, Callable[[], bool]], None] | None = None,
    ) -> None:
        self.hierarchy = hierarchy
        self._make, self._drop, self._kill = make, drop, kill or _kill
        self._delegated: set[str] = set()

    def exists(self, path: str) -> bool:
        """Whether the cgroup is there in each hierarchy that the kubelet manages."""
        return all(os.path.isdir(base + path) for base in self._managed())

    def ensure(self, path: str, wanted: Iterable[Setting]) -> list[str]:
        """Make the cgroup where it is missing, and write the values that differ.

        Returns what was changed: "made", and names of files. Raises CgroupError.
        """
        made = self._create(path)
        changed = ["made"] if made else []
        for setting in wanted:
            if setting.controller not in self.hierarchy.mounts:
                continue
            if self._set(path, setting):
                changed.append(setting.file)
        return changed

    def read(self, path: str, controller: str, file: str) -> str | None:
        """The text of one control file without its end of line, None when it is not there."""
        base = self.hierarchy.mounts.get(controller)
        return None if base is None else _read(f"{base}{path}/{file}")

    def children(self, path: str) -> set[str]:
        """Names of the cgroups directly below, in any hierarchy."""
        found: set[str] = set()
        for base in self.hierarchy.directories():
            found.update(_subdirectories(base + path))
        return found

    def processes(self, path: str) -> set[int]:
        """Process ids in the cgroup and below it, in any hierarchy."""
        found: set[int] = set()
        for base in self.hierarchy.directories():
            for directory in _bottom_up(base + path):
                found.update(map(int, (_read(f"{directory}/cgroup.procs") or "").split()))
        return found

    def kill(self, path: str) -> set[int]:
        """Kill every process in the cgroup and below it. Returns the process ids; ends are not waited for."""
        found = self.processes(path)
        for pid in found:
            self._kill(pid, lambda pid=pid: pid in self.processes(path))  # type: ignore[misc]
        return found

    def remove(self, path: str) -> bool:
        """Remove the cgroup and those below it, children first, in every hierarchy.

        Returns False while a process in it (or the end of one) still holds it. Raises CgroupError.
        """
        self._delegated.discard(path)
        return all([self._remove_tree(base + path) for base in self.hierarchy.directories()])

    # ---- making ----

    def _managed(self) -> list[str]:
        return self.hierarchy.directories(MANAGED)

    def _create(self, path: str) -> bool:
        if self.hierarchy.version == 2:
            self._delegate(path)
        return any([self._make_chain(base, path) for base in self._managed()])

    def _make_chain(self, base: str, path: str) -> bool:
        """Make base + path and what is missing above it. True when it was made now."""
        try:
            self._make(base + path)
        except FileExistsError:
            return False
        except FileNotFoundError as error:
            parent = os.path.dirname(path)
            if parent == path:
                raise _failed("make", base + path, error) from error
            self._make_chain(base, parent)
            return self._make_chain(base, path)
        except OSError as error:
            raise _failed("make", base + path, error) from error
        if base == self.hierarchy.mounts.get("cpuset") and self.hierarchy.version == 1:
            self._inherit_cpuset(base, path)
        return True

    def _inherit_cpuset(self, base: str, path: str) -> None:
        """A new v1 cpuset is empty, and an empty one takes no process: fill it from its parent."""
        for file in ("cpuset.cpus", "cpuset.mems"):
            own = f"{base}{path}/{file}"
            if not _read(own):
                parent = _read(f"{base}{os.path.dirname(path)}/{file}".replace("//", "/")) or ""
                if parent:
                    _write(own, parent)

    def _delegate(self, path: str) -> None:
        """On v2 switch our controllers on for the children of each cgroup above `path`."""
        base = self.hierarchy.directories()[0]
        for parent in _above(path):
            if parent in self._delegated and os.path.isdir(base + parent):
                continue
            if parent != "/":
                with contextlib.suppress(FileExistsError):
                    self._make(base + parent)
            self._switch_on((base + parent).rstrip("/"))
            self._delegated.add(parent)

    def _switch_on(self, directory: str) -> None:
        file = f"{directory}/cgroup.subtree_control"
        available = (_read(f"{directory}/cgroup.controllers") or "").split()
        on = (_read(file) or "").split()
        for name in DELEGATED:
            if name in available and name not in on:
                _write(file, f"+{name}", append=True)

    def _set(self, path: str, setting: Setting) -> bool:
        file = f"{self.hierarchy.mounts[setting.controller]}{path}/{setting.file}"
        now = _read(file)
        if now is None and setting.optional:
            return False
        if now is not None and same(setting.file, now, setting.text):
            return False
        _write(file, setting.text)
        return True

    # ---- removing ----

    def _remove_tree(self, top: str) -> bool:
        free = True
        for directory in _bottom_up(top):
            try:
                self._drop(directory)
            except FileNotFoundError:
                continue
            except OSError as error:
                if error.errno not in _BUSY:
                    raise _failed("remove", directory, error) from error
                free = False
        return free


def _kill(pid: int, still: Callable[[], bool]) -> None:
    """For what a container left, never for a process of ours: those are the supervisor's children."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if still():  # the id may have gone to another process before it was held fast
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)  # noqa: TID251
    except ProcessLookupError:
        return  # it has just ended
    finally:
        os.close(pidfd)


def _above(path: str) -> Iterator[str]:
    """The cgroups above `path`, from the root down."""
    parts = path.strip("/").split("/")
    for depth in range(len(parts)):
        yield "/" + "/".join(parts[:depth])


def _bottom_up(top: str) -> Iterator[str]:
    """The cgroup directories of a tree, children before parents; nothing when it is not there."""
    for directory, _, _ in os.walk(top, topdown=False, followlinks=False):
        yield directory


def _subdirectories(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _read(file: str) -> str | None:
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(fd, 1 << 20).decode("ascii", "replace").strip()
    except OSError:
        return None
    finally:
        os.close(fd)


def _write(file: str, text: str, *, append: bool = False) -> None:
    """Write a control file with one write. Raises CgroupError."""
    try:
        fd = os.open(file, os.O_WRONLY | os.O_CLOEXEC | (os.O_APPEND if append else os.O_TRUNC))
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)
    except OSError as error:
        raise _failed(f"write {text!r} to", file, error) from error


def _failed(verb: str, path: str, error: OSError) -> CgroupError:
    fixes = {errno.EACCES: "run the agent as root", errno.EPERM: "run the agent as root",
             errno.EROFS: "mount the cgroup filesystem writable",
             errno.ENOENT: "check that the controller is on for the cgroup above",
             errno.EBUSY: "move the processes of the cgroup above into a cgroup of their own"}
    return CgroupError(f"cannot {verb} {path}: {error.strerror}", fixes.get(error.errno or 0))
