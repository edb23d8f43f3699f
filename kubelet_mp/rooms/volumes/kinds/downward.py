"""downwardAPI, and projected volumes made only of it: files with what a pod may know of itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from kubelet_mp.errors import ContainerConfigError
from kubelet_mp.host.atomicdir import Content, check_path, update
from kubelet_mp.host.ownership import give_to_group
from kubelet_mp.model import clock, podspec
from kubelet_mp.model.downward import metadata_value, resource_value
from kubelet_mp.rooms.volumes.kinds.base import Job, Kind, VolumeError, make_directory
from kubelet_mp.rooms.volumes.kinds.emptydir import is_ready, mark_ready, mount_tmpfs
from kubelet_mp.rooms.volumes.plan import type_of

_MODE = 0o644
_WRAPPED = "wrapped_"
_PLUGINS = {"downwardAPI": "kubernetes.io/downward-api", "projected": "kubernetes.io/projected"}


class DownwardApi(Kind):
    """Written on a tmpfs by the atomic writer; follows the pod's labels and annotations."""

    plugin: ClassVar[str] = "kubernetes.io/downward-api"
    follows_pod: ClassVar[bool] = True

    def set_up(self, job: Job) -> str:
        files = payload(job)
        path = make_directory(job, _PLUGINS[type_of(job.volume)], 0o777)
        mount_tmpfs(path, "")
        group = job.fs_group
        try:
            update(path, files, clock.wall_time(), lambda version: _own(version, group))
        except ValueError as error:
            raise VolumeError(str(error)) from error
        if group is not None:
            give_to_group(path, group, read_only=True)
        if not is_ready(job, _WRAPPED):
            mark_ready(job, _WRAPPED)
        return path


def _own(version: str, group: int | None) -> None:
    if group is not None:
        give_to_group(version, group, read_only=True)


def payload(job: Job) -> dict[str, Content]:
    """Path → content; of two items with one path the later wins. Raises VolumeError."""
    default = job.source.get("defaultMode") or _MODE
    found = {}
    for item in _items(job.source):
        try:
            value = _value(item, job)
            found[check_path(item["path"])] = Content(value.encode(), item.get("mode") or default)
        except (ContainerConfigError, ValueError) as error:
            raise VolumeError(str(error)) from error
    return found


def _items(source: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from source.get("items") or ()
    for projection in source.get("sources") or ():
        yield from (projection.get("downwardAPI") or {}).get("items") or ()


def _value(item: Mapping[str, Any], job: Job) -> str:
    if item.get("fieldRef"):
        return metadata_value(item["fieldRef"].get("fieldPath") or "", job.pod)
    ref = item.get("resourceFieldRef") or {}
    name = ref.get("containerName") or ""
    asking = next((c for c in podspec.all_containers(job.pod) if c.get("name") == name), None)
    if asking is None:
        raise ContainerConfigError(f"container {name} not found")
    return resource_value(ref, job.pod, asking, job.node)
