"""subPath: a part of a volume on a mount point of its own, safe from symlinks that a container planted.

The way from the volume's root to the part is resolved once, checked to stay inside the volume, then opened
component by component without following anything, and what was opened is what is bound (Kubernetes 1.37
pkg/volume/util/subpath). Whoever swaps a component meanwhile makes this fail, not escape.
"""

from __future__ import annotations

import os
import stat

from kubelet_mp.errors import MountError
from kubelet_mp.host import mounts
from kubelet_mp.host.files import FileError, make_dirs, read_limited

_STEP = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class SubPathError(MountError):
    """The sub-path leaves its volume, or cannot be made ready."""


def target_path(root_dir: str, uid: str, volume: str, container: str, index: int) -> str:
    """Where the part is bound, below the pod's directory; `index` is the mount's position in volumeMounts."""
    return f"{root_dir}/pods/{uid}/volume-subpaths/{volume}/{container}/{index}"


def prepare(volume: str, part: str, target: str) -> str:
    """Bind `part` of the volume directory (or file) `volume` on `target`; returns `target`.

    A part that is missing is made as directories with the mode of the volume's root. A bind that is there
    and shows the same object is kept. Raises SubPathError, FileError, MountError; blocks as long as the
    volume's filesystem does.
    """
    try:
        root = os.path.realpath(volume, strict=True)
        _make_missing(root, part)
        fd = _open_inside(root, os.path.join(root, part))
    except OSError as error:
        raise FileError.of("open the subPath in", error.filename or volume, error) from error
    try:
        _bind(fd, target)
    except OSError as error:
        raise FileError.of("bind the subPath on", target, error) from error
    finally:
        os.close(fd)
    return target


def read_text(volume: str, part: str, limit: int) -> str:
    """The text of a regular file of at most `limit` bytes inside the volume directory, bytes that are no UTF-8
    replaced. Raises SubPathError, FileError (MissingFile).
    """
    try:
        root = os.path.realpath(volume, strict=True)
        fd = _open_inside(root, os.path.join(root, part))
    except OSError as error:
        raise FileError.of("open", part, error) from error
    try:
        return read_limited(f"/proc/self/fd/{fd}", limit).decode("utf-8", "replace")
    finally:
        os.close(fd)


def _make_missing(root: str, part: str) -> None:
    """Make the directories that are missing, walking without following symlinks below what exists."""
    full = os.path.join(root, part)
    if os.path.lexists(full):
        return
    existing = full
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    missing = os.path.relpath(full, existing).split("/")
    mode = stat.S_IMODE(os.stat(root).st_mode)
    fd = _open_inside(root, existing)
    try:
        for name in missing:
            below = _make_step(fd, name, mode)
            os.close(fd)
            fd = below
    finally:
        os.close(fd)


def _make_step(above: int, name: str, mode: int) -> int:
    """Make one directory and open it."""
    try:
        os.mkdir(name, 0o750, dir_fd=above)
    except FileExistsError:
        return os.open(name, _STEP | os.O_DIRECTORY, dir_fd=above)
    made = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    os.fchmod(made, mode)
    return made


def _open_inside(root: str, path: str) -> int:
    """Open the real path of `path`, which must be inside `root`, step by step. Raises SubPathError, OSError."""
    real = os.path.realpath(path, strict=True)
    if real != root and not real.startswith(root.rstrip("/") + "/"):
        raise SubPathError("the subPath leads out of its volume", "remove the symlink that leads out of it")
    fd = os.open(root, _STEP)
    try:
        for name in _parts(os.path.relpath(real, root)):
            below = os.open(name, _STEP, dir_fd=fd)
            os.close(fd)
            fd = below
            if stat.S_ISLNK(os.fstat(fd).st_mode):
                raise SubPathError("the subPath changed while it was looked at", "stop what changes it")
    except BaseException:
        os.close(fd)
        raise
    return fd


def _parts(relative: str) -> list[str]:
    return [] if relative == "." else relative.split("/")


def _bind(fd: int, target: str) -> None:
    status = os.fstat(fd)
    _make_target(target, stat.S_ISDIR(status.st_mode))
    real = os.path.realpath(target)
    if mounts.at(mounts.mount_table(only=real), real) is not None:
        there = os.lstat(real)
        if (there.st_dev, there.st_ino) == (status.st_dev, status.st_ino):
            return
        mounts.umount(real, lazy=True)
        _make_target(target, stat.S_ISDIR(status.st_mode))
    mounts.bind(f"/proc/{os.getpid()}/fd/{fd}", real)


def _make_target(target: str, directory: bool) -> None:
    """An empty directory (0750) or file (0640) to bind on."""
    container = os.path.dirname(target)
    volume = os.path.dirname(container)
    for path in (os.path.dirname(volume), volume, container):
        make_dirs(path, 0o750)
    if directory:
        make_dirs(target, 0o750)
    elif not os.path.lexists(target):
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o640))
