"""Files that the agent writes itself and that change all at once, for every kind that has such."""

from __future__ import annotations

from kubelet_mp.host.atomicdir import Payload, update
from kubelet_mp.host.ownership import give_to_group
from kubelet_mp.model import clock
from kubelet_mp.rooms.volumes.kinds.base import Job, VolumeError, make_directory
from kubelet_mp.rooms.volumes.kinds.emptydir import is_ready, mark_ready, mount_tmpfs

_WRAPPED = "wrapped_"


def write(job: Job, plugin: str, files: Payload, *, memory: bool = True) -> str:
    """Have the volume show these files, on a tmpfs or on the node's disk; its path. Raises HostError."""
    path = make_directory(job, plugin, 0o777)
    if memory:
        mount_tmpfs(path, "")
    group = job.fs_group
    try:
        update(path, files, clock.wall_time(), lambda version: _own(version, group))
    except ValueError as error:
        raise VolumeError(str(error)) from error
    _own(path, group)
    if not is_ready(job, _WRAPPED):
        mark_ready(job, _WRAPPED)
    return path


def _own(path: str, group: int | None) -> None:
    if group is not None:
        give_to_group(path, group, read_only=True)
