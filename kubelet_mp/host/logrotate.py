"""Rotating one container log: which old files go, which are compressed, and the renaming.

LOG becomes LOG.<yyyymmdd-hhmmss>; of the rotated files only the newest stays uncompressed; with the current
one there are never more than `max_files`. Source: Kubernetes 1.37 pkg/kubelet/logs.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kubelet_mp.host.files import FileError

_SUFFIX = re.compile(r"\.(\d{8}-\d{6})(\.gz)?(\.tmp)?")
_STAMP = "%Y%m%d-%H%M%S"
_COPY = 256 * 1024


@dataclass(frozen=True)
class Plan:
    """Base names: `remove` these, then compress those, before the log itself is renamed."""

    remove: tuple[str, ...]
    compress: tuple[str, ...]


def is_rotated(log_name: str, name: str) -> bool:
    """Whether `name` is a rotated form of the log (compressed or not, finished or not)."""
    return name.startswith(log_name) and _SUFFIX.fullmatch(name, len(log_name)) is not None


def plan(log_name: str, names: Iterable[str], max_files: int) -> Plan:
    """What to do with the files of the log's directory so that one more rotated file has room."""
    mine = {name for name in names if is_rotated(log_name, name)}
    gone = {name for name in mine if name.endswith(".tmp") or f"{name}.gz" in mine}
    kept = sorted(mine - gone)
    excess = kept[: max(0, len(kept) - (max_files - 2))]
    rest = kept[len(excess) :]
    return Plan(tuple(sorted(gone)) + tuple(excess), tuple(name for name in rest if not name.endswith(".gz")))


def rotated_files(log_path: str) -> list[str]:
    """Full paths of the finished rotated files of a log, oldest first."""
    directory, base = os.path.split(log_path)
    names = [n for n in _listdir(directory) if is_rotated(base, n) and not n.endswith(".tmp")]
    return [os.path.join(directory, name) for name in sorted(names)]


def rotate(log_path: str, max_files: int, now: float, reopen: Callable[[], None]) -> list[FileError]:
    """Rotate the log now (`now`: seconds since the epoch) and have the runtime open a new one.

    If `reopen` raises, the name is given back and its error goes on to the caller. Returns what went wrong
    with older files; that does not hinder the rotation. Raises FileError if the log cannot be renamed.
    """
    problems = make_room(log_path, max_files)
    target = f"{log_path}.{time.strftime(_STAMP, time.gmtime(now))}"
    if os.path.exists(target):
        raise FileError(f'cannot rotate "{log_path}": "{target}" is there already', "it is tried again")
    try:
        os.rename(log_path, target)
    except OSError as error:
        raise FileError.of("rotate", log_path, error) from error
    try:
        reopen()
    except BaseException:
        with contextlib.suppress(OSError):  # the error of reopen() is the one to tell
            os.rename(target, log_path)
        raise
    return problems


def make_room(log_path: str, max_files: int) -> list[FileError]:
    """Remove and compress old rotated files. Returns what could not be done."""
    directory, base = os.path.split(log_path)
    todo = plan(base, _listdir(directory), max_files)
    problems: list[FileError] = []
    for names, act in ((todo.remove, _remove), (todo.compress, compress)):
        for name in names:
            try:
                act(os.path.join(directory, name))
            except FileError as error:
                problems.append(error)
    return problems


def compress(path: str) -> None:
    """Replace the file by PATH.gz, by way of PATH.tmp. Raises FileError and then leaves the file alone."""
    temporary = f"{path}.tmp"
    try:
        with open(path, "rb") as source, gzip.open(temporary, "wb", compresslevel=6) as target:
            shutil.copyfileobj(source, target, _COPY)
        shutil.copymode(path, temporary)
        os.rename(temporary, f"{path}.gz")
        os.remove(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        raise FileError.of("compress", path, error) from error


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except FileNotFoundError:
        return  # that is what was wanted
    except OSError as error:
        raise FileError.of("remove", path, error) from error


def _listdir(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise FileError.of("list", directory, error) from error
