"""A directory of files that changes all at once (Kubernetes 1.37 pkg/volume/util/atomic_writer.go).

    DIR/..2026_01_02_03_04_05.123456/ a/b …    the files themselves
    DIR/..data → ..2026_01_02_03_04_05.123456  renamed over when the content changes
    DIR/a → ..data/a                           one link for each top-level entry
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from kubelet_mp.errors import HostError
from kubelet_mp.host.files import FileError

DATA, NEXT = "..data", "..data_tmp"
MAX_PART, MAX_PATH = 255, 4096


@dataclass(frozen=True, slots=True)
class Content:
    """One file: its bytes and its exact mode; uid where it is not the agent's."""

    data: bytes
    mode: int = 0o644
    uid: int | None = None


Payload = Mapping[str, Content]  # relative path → content


def check_path(path: str) -> str:
    """The path, when it may stand in a payload. Raises ValueError."""
    parts = path.split("/")
    if not path or path.startswith("/"):
        raise ValueError(f"path {path!r} must be relative and not empty")
    if ".." in parts or path.startswith(".."):
        raise ValueError(f"path {path!r} must not start with '..' nor contain it as a part")
    if len(path) > MAX_PATH or any(len(part.encode()) > MAX_PART for part in parts):
        raise ValueError(f"path {path[:40]!r}… is too long")
    return path


def update(directory: str, payload: Payload, wall: float, adjust: Callable[[str], None] = lambda _: None) -> bool:
    """Have the directory show exactly the payload. Returns whether its content changed.

    wall: seconds since the epoch, for the name of the new version. adjust: called with the path of the new
    version before it is shown (ownership). Raises ValueError for a bad path, FileError.
    """
    for path in payload:
        check_path(path)
    try:
        old = _current(directory)
        changed = old is None or _differs(f"{directory}/{old}", payload)
        if changed:
            _show(directory, _write(directory, payload, wall, adjust))
        _link(directory, {path.split("/")[0] for path in payload})
        if changed and old is not None:
            shutil.rmtree(f"{directory}/{old}", ignore_errors=True)
    except OSError as error:
        raise FileError.of("write the files of", error.filename or directory, error) from error
    return changed


def _current(directory: str) -> str | None:
    """The version shown now; None when there is none that is whole."""
    try:
        target = os.readlink(f"{directory}/{DATA}")
    except FileNotFoundError:
        return None
    safe = target.startswith("..") and "/" not in target
    return target if safe and os.path.isdir(f"{directory}/{target}") else None


def _differs(version: str, payload: Payload) -> bool:
    found = set()
    for base, _, names in os.walk(version):
        for name in names:
            full = os.path.join(base, name)
            path = os.path.relpath(full, version)
            found.add(path)
            if path not in payload or not _holds(full, payload[path].data):
                return True
    return found != set(payload)


def _holds(file: str, data: bytes) -> bool:
    if os.lstat(file).st_size != len(data):
        return False
    with open(file, "rb") as stream:
        return stream.read(len(data) + 1) == data


def _write(directory: str, payload: Payload, wall: float, adjust: Callable[[str], None]) -> str:
    """Write a new version beside the current one; its name."""
    stamp = datetime.fromtimestamp(wall, UTC).strftime("%Y_%m_%d_%H_%M_%S")
    name = f"..{stamp}.{secrets.randbelow(10**9)}"
    version = f"{directory}/{name}"
    os.mkdir(version)
    os.chmod(version, 0o755)
    for path, content in payload.items():
        _write_file(version, path, content)
    adjust(version)
    return name


def _write_file(version: str, path: str, content: Content) -> None:
    full = f"{version}/{path}"
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "xb") as file:
        file.write(content.data)
        os.fchmod(file.fileno(), content.mode)
        if content.uid is not None:
            os.fchown(file.fileno(), content.uid, -1)


def _show(directory: str, name: str) -> None:
    temporary = f"{directory}/{NEXT}"
    if os.path.lexists(temporary):
        os.unlink(temporary)
    os.symlink(name, temporary)
    os.rename(temporary, f"{directory}/{DATA}")


def _link(directory: str, wanted: set[str]) -> None:
    """Make the links of the top-level entries, and remove those of entries that are gone."""
    for name in os.listdir(directory):
        path = f"{directory}/{name}"
        if not name.startswith("..") and name not in wanted and os.path.islink(path):
            os.unlink(path)
    for name in wanted:
        path = f"{directory}/{name}"
        if os.path.islink(path) and os.readlink(path) == f"{DATA}/{name}":
            continue
        if os.path.lexists(path):
            if os.path.isdir(path) and not os.path.islink(path):
                raise HostError(f'"{path}" is in the way of a file of the volume', "remove it")
            os.unlink(path)
        os.symlink(f"{DATA}/{name}", path)
