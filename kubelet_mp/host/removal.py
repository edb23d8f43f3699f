"""Removing a directory tree that others have written into.

Never follows a symlink, never enters another mount (not even a bind mount of the same filesystem), however
deep or wide the tree is.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass

from kubelet_mp.errors import HostError
from kubelet_mp.host.files import FileError

DEEPEST = 64  # levels (and open descriptors); what lies deeper is moved up first
_BATCH = 2048  # names held at a time
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class ForeignMount(HostError):
    """Something is mounted inside the tree: it is left as it is."""


@dataclass(slots=True)
class _Level:
    fd: int
    name: str  # in the level above
    path: str


def remove_tree(path: str) -> bool:
    """Remove a directory with all that is in it; False if it was not there.

    Raises ForeignMount, FileError. Part of the tree may be gone then; calling again goes on.
    """
    parent, name = os.path.split(path.rstrip("/"))
    try:
        above = os.open(parent or "/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return _remove_child(above, name, path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise FileError.of("remove", error.filename or path, error) from error
    finally:
        os.close(above)


def _remove_child(above: int, name: str, path: str) -> bool:
    try:
        os.unlink(name, dir_fd=above)
        return True
    except (IsADirectoryError, PermissionError):
        _TreeRemoval(above, name, path).run()
        return True


class _TreeRemoval:
    """Depth first, with an explicit stack of open directories."""

    def __init__(self, above: int, name: str, path: str) -> None:
        self._above = above
        self._levels = [_Level(os.open(name, _OPEN, dir_fd=above), name, path)]
        self._mount = mount_id(self._levels[0].fd)
        self._serial = itertools.count()
        if mount_id(above) != self._mount:
            os.close(self._levels[0].fd)
            raise ForeignMount(f'something is mounted on "{path}"', "unmount it")

    def run(self) -> None:
        try:
            while self._levels:
                if not self._descend():
                    self._leave()
        finally:
            for level in self._levels:
                os.close(level.fd)

    def _descend(self) -> bool:
        """Remove the plain entries of the lowest level; True when it led to a level below."""
        level = self._levels[-1]
        while names := _some_names(level.fd):
            for name in names:
                if self._removed_plain(level, name):
                    continue
                if len(self._levels) < DEEPEST:
                    self._enter(level, name)
                    return True
                self._hoist(level, name)
        return False

    @staticmethod
    def _removed_plain(level: _Level, name: str) -> bool:
        try:
            os.unlink(name, dir_fd=level.fd)
        except IsADirectoryError:
            return False
        except FileNotFoundError:
            return True
        except OSError as error:
            error.filename = f"{level.path}/{name}"
            raise
        return True

    def _enter(self, level: _Level, name: str) -> None:
        path = f"{level.path}/{name}"
        try:
            fd = os.open(name, _OPEN, dir_fd=level.fd)
        except OSError as error:
            error.filename = path
            raise
        if mount_id(fd) != self._mount:
            os.close(fd)
            raise ForeignMount(f'something is mounted on "{path}"', "unmount it")
        self._levels.append(_Level(fd, name, path))

    def _hoist(self, level: _Level, name: str) -> None:
        """Move a directory that lies too deep right below the top, to be removed from there."""
        top = self._levels[0]
        while True:
            target = f".removed-{next(self._serial)}"
            try:
                os.lstat(target, dir_fd=top.fd)
            except FileNotFoundError:
                break
        os.rename(name, target, src_dir_fd=level.fd, dst_dir_fd=top.fd)

    def _leave(self) -> None:
        level = self._levels.pop()
        os.close(level.fd)
        parent = self._levels[-1].fd if self._levels else self._above
        try:
            os.rmdir(level.name, dir_fd=parent)
        except OSError as error:
            error.filename = level.path
            raise


def _some_names(fd: int) -> list[str]:
    with os.scandir(fd) as entries:
        return [entry.name for entry in itertools.islice(entries, _BATCH)]


def mount_id(fd: int) -> int:
    """The id of the mount that an open file lies on."""
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as file:
        for line in file:
            if line.startswith("mnt_id:"):
                return int(line.split()[1])
    raise HostError("the kernel does not tell mount ids in /proc/self/fdinfo", "run Linux 3.15 or later")
