"""Files written whole or not at all, and read with a limit.

Every error is a FileError that names the file and says what to do; a missing file is a MissingFile, so that
callers can tell "not there" from "cannot be read".
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kubelet_mp.errors import HostError

Path_ = str | os.PathLike[str]

MIB = 1024 * 1024
TEXT_LIMIT = MIB  # bytes; what read_text takes unless told otherwise
_CHUNK = 256 * 1024
_FIXES = {
    errno.EACCES: "let the user that runs the agent read and write it",
    errno.EPERM: "let the user that runs the agent read and write it",
    errno.ENOSPC: "free some space on its file system",
    errno.EDQUOT: "free some space or raise the quota",
    errno.EROFS: "mount its file system writable",
    errno.EMFILE: "raise the agent's limit of open files",
}


class FileError(HostError):
    """A file could not be read, written or removed. errno: of the failed call, 0 when none failed."""

    def __init__(self, message: str, fix: str | None = None, *, errno: int = 0) -> None:
        super().__init__(message, fix)
        self.errno = errno

    @classmethod
    def of(cls, verb: str, path: Path_, error: OSError) -> FileError:
        """The error of a failed call: MissingFile where something on the path does not exist."""
        kind = MissingFile if error.errno in (errno.ENOENT, errno.ENOTDIR) else FileError
        text = f'cannot {verb} "{os.fspath(path)}": {error.strerror or error}'
        return kind(text, _FIXES.get(error.errno or 0), errno=error.errno or 0)


class MissingFile(FileError):
    """The file, or a directory on the way to it, does not exist."""


class FileTooLarge(FileError):
    """The file holds more bytes than its reader takes."""


def read_limited(path: Path_, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes (/proc and cgroup files included).

    Raises FileError: MissingFile, FileTooLarge, or for what is no regular file (a pipe never blocks this).
    """
    try:
        with open(path, "rb", buffering=0, opener=_open_nonblocking) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise FileError(f'"{os.fspath(path)}" is not a regular file', "put a file there or remove it")
            return _read_up_to(file.fileno(), path, limit)
    except OSError as error:
        raise FileError.of("read", path, error) from error


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def _read_up_to(fd: int, path: Path_, limit: int) -> bytes:
    data = bytearray()
    while chunk := os.read(fd, min(_CHUNK, limit + 1 - len(data))):
        data += chunk
        if len(data) > limit:
            raise FileTooLarge(f'"{os.fspath(path)}" is larger than {limit} bytes', "make it smaller")
    return bytes(data)


def read_text(path: Path_, limit: int = TEXT_LIMIT) -> str:
    """The content as UTF-8, bytes that are none replaced. Raises FileError as read_limited."""
    return read_limited(path, limit).decode("utf-8", "replace")


def write_atomic(path: Path_, data: bytes, mode: int = 0o600, *, durable: bool = True) -> None:
    """Replace the file by `data` so that a reader sees the old or the new content, after a crash too.

    Writes a temporary neighbour (dot-prefixed), flushes it to the disk and renames it. `mode` is not cut by
    the umask. Raises FileError; then the old content stands and no temporary file is left.

    Not `durable`: nothing is flushed, so a power cut (not a crash of ours) may cost the newest content. For
    what can be rebuilt and is written while containers start: each flush holds up the runtime's own.
    """
    target = Path(path)
    try:
        fd, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            _write(fd, data, mode, durable)
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        if durable:
            flush_directory(target.parent)
    except OSError as error:
        raise FileError.of("write", path, error) from error


def _write(fd: int, data: bytes, mode: int, durable: bool) -> None:
    with open(fd, "wb") as file:
        file.write(data)
        os.fchmod(fd, mode)
        file.flush()
        if durable:
            os.fsync(fd)


def flush_directory(path: Path_) -> None:
    """Have renames and removals in a directory survive a power cut. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def remove_file(path: Path_) -> bool:
    """Remove a file or symlink; False if it was not there. Raises FileError."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise FileError.of("remove", path, error) from error
    return True


def make_dirs(path: Path_, mode: int = 0o750) -> None:
    """Make a directory with exactly `mode`, and its parents with 0755 cut by the umask.

    A directory that is there is left as it is. Raises FileError.
    """
    try:
        try:
            os.mkdir(path, mode)
        except FileNotFoundError:
            Path(path).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            os.mkdir(path, mode)
        os.chmod(path, mode)
    except FileExistsError as error:
        if not os.path.isdir(path):
            raise FileError.of("make directory", path, error) from error
    except OSError as error:
        raise FileError.of("make directory", path, error) from error


@dataclass(frozen=True, slots=True)
class FileState:
    """What tells one content of a path from another without reading it. `kind`: file, directory or other.

    `changed`: time of the last change of content or attributes, in seconds since the epoch.
    """

    kind: str
    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @property
    def changed(self) -> float:
        return self.changed_ns / 1e9


def file_state(path: Path_) -> FileState:
    """The state of what the path leads to (symlinks are followed). Raises FileError."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise FileError.of("look at", path, error) from error
    mode = status.st_mode
    kind = "file" if stat.S_ISREG(mode) else "directory" if stat.S_ISDIR(mode) else "other"
    return FileState(kind, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def list_names(path: Path_) -> list[str]:
    """The names in a directory, sorted; names that are not UTF-8 carry surrogates. Raises FileError."""
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        raise FileError.of("list", path, error) from error
