"""fsGroup: giving a volume's content to a group (Kubernetes 1.37 pkg/volume/volume_linux.go)."""

from __future__ import annotations

import os
import stat

from kubelet_mp import log

READ_WRITE, READ_ONLY = 0o660, 0o440
_DIRECTORY = stat.S_ISGID | 0o110
_ON_ROOT = 0o770 | stat.S_ISGID, 0o550 | stat.S_ISGID  # what OnRootMismatch looks for: writable, read-only
_log = log.get("volumes")


def give_to_group(path: str, gid: int, *, read_only: bool = False, on_mismatch_only: bool = False) -> int:
    """Give everything in `path` to the group, children before parents, `path` itself last.

    Symlinks are given, not followed. An entry that refuses is logged and passed over. Returns how many
    entries were visited. on_mismatch_only: leave all as it is where `path` itself looks right already.
    """
    if on_mismatch_only and _looks_right(path, gid, read_only):
        return 0
    count = 0
    for _, directories, files, fd in os.fwalk(path, topdown=False, follow_symlinks=False):
        for name in (*files, *(d for d in directories if _is_link(d, fd))):
            _give(name, fd, gid, read_only)
            count += 1
        _give(".", fd, gid, read_only)
        count += 1
    return count


def _looks_right(path: str, gid: int, read_only: bool) -> bool:
    status, wanted = os.lstat(path), _ON_ROOT[read_only]
    return status.st_gid == gid and status.st_mode & wanted == wanted


def _is_link(name: str, fd: int) -> bool:
    return stat.S_ISLNK(os.lstat(name, dir_fd=fd).st_mode)


def _give(name: str, fd: int, gid: int, read_only: bool) -> None:
    try:
        mode = os.lstat(name, dir_fd=fd).st_mode
        os.chown(name, -1, gid, dir_fd=fd, follow_symlinks=False)
        if not stat.S_ISLNK(mode):
            os.chmod(name, stat.S_IMODE(mode) | _wanted(mode, read_only), dir_fd=fd)
    except OSError as error:
        _log.warning("ownership not changed", path=name, gid=gid, err=error.strerror)


def _wanted(mode: int, read_only: bool) -> int:
    bits = READ_ONLY if read_only else READ_WRITE
    return bits | _DIRECTORY if stat.S_ISDIR(mode) else bits
