"""mount(2), umount2(2) and the mount table.

Through libc by ctypes: one call, no helper program to wait for or to kill. The calls release the GIL; one
that hangs (a dead server) hangs only its thread.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from kubelet_mp.errors import MountError

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MS_SHARED = 1 << 20
MNT_FORCE = 1
MNT_DETACH = 2
UMOUNT_NOFOLLOW = 8

MOUNTINFO = "/proc/self/mountinfo"
_OCTAL = re.compile(r"\\([0-7]{3})")
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)
_libc.umount2.argtypes = (ctypes.c_char_p, ctypes.c_int)
_FIXES = {
    errno.EPERM: "run the agent as root with CAP_SYS_ADMIN",
    errno.ENODEV: "load the kernel module of that filesystem",
    errno.ENOENT: "create the directory",
}


class MountCallError(MountError):
    """A refused mount call. errno: as the kernel gave it."""

    def __init__(self, message: str, fix: str | None, errno: int) -> None:
        super().__init__(message, fix)
        self.errno = errno


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo. `device` is "major:minor", `root` the part of the filesystem that is mounted."""

    id: int
    parent: int
    device: str
    root: str
    path: str
    options: frozenset[str]
    shared: bool
    fs_type: str
    source: str
    super_options: frozenset[str]


def parse_mountinfo(text: str) -> list[Mount]:
    """All lines in the kernel's order (a later mount on one path lies above an earlier one)."""
    return [_parse_line(line) for line in text.splitlines() if line.strip()]


def _parse_line(line: str) -> Mount:
    left, _, right = line.partition(" - ")
    number, parent, device, root, path, options, *tags = left.split(" ")
    fs_type, source, super_options = (right.split(" ") + ["", ""])[:3]
    return Mount(
        int(number), int(parent), device, _plain(root), _plain(path), frozenset(options.split(",")),
        any(tag.startswith("shared:") for tag in tags), fs_type, _plain(source),
        frozenset(super_options.split(",")),
    )  # fmt: skip


def _plain(text: str) -> str:
    """Undo the kernel's octal escapes of blanks and backslashes, keeping any other byte as it is."""
    if "\\" not in text:
        return text
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)


def _escaped(text: str) -> str:
    """As the kernel writes a path in mountinfo."""
    return "".join(f"\\{ord(char):03o}" if char in " \t\n\\" else char for char in text)


def mount_table(path: str = MOUNTINFO, *, only: str = "") -> list[Mount]:
    """The mounts of this process's namespace; `only` those whose line has this text. Raises MountError.

    A node with many pods has thousands of lines, and most questions are about a few.
    """
    hint = _escaped(only)
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return [_parse_line(line) for line in file.read().splitlines() if hint in line and line.strip()]
    except OSError as error:
        raise MountError(f'cannot read the mount table "{path}": {error.strerror}') from error


def at(table: Iterable[Mount], path: str) -> Mount | None:
    """The topmost mount exactly on `path` (a real path), or None."""
    found = None
    for mount in table:
        if mount.path == path:
            found = mount
    return found


def under(table: Iterable[Mount], path: str) -> list[Mount]:
    """The mounts on `path` or below it, in the order to unmount them."""
    prefix = path.rstrip("/") + "/"
    found = [mount for mount in table if mount.path == path or mount.path.startswith(prefix)]
    return found[::-1]


def containing(table: Iterable[Mount], path: str) -> Mount | None:
    """The mount that a real path lies on."""
    best = None
    for mount in table:
        inside = path == mount.path or path.startswith(mount.path.rstrip("/") + "/")
        if inside and (best is None or len(mount.path) >= len(best.path)):
            best = mount
    return best


def mount(source: str, target: str, fs_type: str = "", flags: int = 0, data: str = "") -> None:
    """mount(2). Raises MountCallError."""
    result = _libc.mount(*map(os.fsencode, (source, target, fs_type)), flags, os.fsencode(data))
    if result != 0:
        what = f'cannot mount {fs_type or source} on "{target}"' + (f" with {data}" if data else "")
        raise _failed(what)


def bind(source: str, target: str, flags: int = 0) -> None:
    """Show `source` (not what is mounted below it) on `target` too. Raises MountCallError."""
    mount(source, target, "", MS_BIND | flags)


def umount(target: str, *, lazy: bool = False, force: bool = False) -> bool:
    """Unmount the topmost mount on `target`, never following a symlink there.

    Returns False when nothing was mounted. Raises MountCallError, with errno EBUSY when it is in use.
    """
    flags = UMOUNT_NOFOLLOW | (MNT_DETACH if lazy else 0) | (MNT_FORCE if force else 0)
    if _libc.umount2(os.fsencode(target), flags) == 0:
        return True
    if ctypes.get_errno() in (errno.EINVAL, errno.ENOENT):
        return False
    raise _failed(f'cannot unmount "{target}"')


def _failed(what: str) -> MountCallError:
    number = ctypes.get_errno()
    return MountCallError(f"{what}: {os.strerror(number)}", _FIXES.get(number), number)


def make_shared(path: str, table: Iterable[Mount] | None = None) -> None:
    """Have mounts below `path` (a real directory) reach other namespaces and back, as kubelets need.

    Binds the directory on itself first when it is no mount of its own. Raises MountError.
    """
    table = list(mount_table() if table is None else table)
    holder = containing(table, path)
    if holder is not None and holder.shared:
        return
    if at(table, path) is None:
        mount(path, path, "", MS_BIND | MS_REC)
    mount("", path, "", MS_SHARED | MS_REC)
