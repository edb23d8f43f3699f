"""hostPath: a path of the node as it is (Kubernetes 1.37 pkg/volume/hostpath)."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from typing import ClassVar

from kubelet_mp.rooms.volumes.kinds.base import Job, Kind, VolumeError

_EXPECTED: Mapping[str, tuple[str, str]] = {  # type → (what is found when it matches, its name in a sentence)
    "Directory": ("Directory", "directory"),
    "DirectoryOrCreate": ("Directory", "directory"),
    "File": ("File", "file"),
    "FileOrCreate": ("File", "file"),
    "Socket": ("Socket", "socket file"),
    "CharDevice": ("CharDevice", "character device"),
    "BlockDevice": ("BlockDevice", "block device"),
}
_FOUND = {
    stat.S_IFDIR: "Directory",
    stat.S_IFREG: "File",
    stat.S_IFSOCK: "Socket",
    stat.S_IFCHR: "CharDevice",
    stat.S_IFBLK: "BlockDevice",
}


class HostPath(Kind):
    plugin: ClassVar[str] = "kubernetes.io/host-path"
    in_pod_dir: ClassVar[bool] = False

    def quick(self, job: Job) -> bool:
        """Without a type the path is not even looked at."""
        return not job.source.get("type")

    def set_up(self, job: Job) -> str:
        path, wanted = str(job.source.get("path") or ""), job.source.get("type") or ""
        if ".." in path.split("/"):
            raise VolumeError(f"invalid HostPath `{path}`: must not contain '..'")
        if wanted:
            check(path, wanted)
        return path

    def doing(self, job: Job) -> str:
        return f'the check of host path {job.source.get("path")} of volume "{job.name}"'


def check(path: str, wanted: str) -> None:
    """Make the path where its type says so, then compare its type. Raises VolumeError."""
    if wanted not in _EXPECTED:
        raise VolumeError(f"{wanted} is an invalid volume type")
    try:
        if wanted.endswith("OrCreate") and not os.path.exists(path):
            _create(path, wanted)
        found = _FOUND.get(stat.S_IFMT(os.stat(path).st_mode), "")
    except (FileNotFoundError, NotADirectoryError):
        raise VolumeError(f"hostPath {path} doesn't exist") from None
    except OSError as error:
        raise VolumeError(f"hostPath {path}: {error.strerror}") from error
    expected, name = _EXPECTED[wanted]
    if found != expected:
        raise VolumeError(f"hostPath type check failed: {path} is not a {name}, it's a {found or 'special file'}")


def _create(path: str, wanted: str) -> None:
    if wanted == "DirectoryOrCreate":
        os.makedirs(path, mode=0o755, exist_ok=True)
        return
    os.close(os.open(path, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o644))
