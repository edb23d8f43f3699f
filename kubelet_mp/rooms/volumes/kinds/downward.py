"""downwardAPI: files with what a pod may know of itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from kubelet_mp.errors import ContainerConfigError
from kubelet_mp.host.atomicdir import Content, check_path
from kubelet_mp.model import podspec
from kubelet_mp.model.downward import metadata_value, resource_value
from kubelet_mp.rooms.volumes.kinds.atomic import write
from kubelet_mp.rooms.volumes.kinds.base import Job, Kind, VolumeError, defaults
from kubelet_mp.rooms.volumes.payload import mode_of, user_of


class DownwardApi(Kind):
    """Written on a tmpfs by the atomic writer; follows the pod's labels and annotations."""

    plugin: ClassVar[str] = "kubernetes.io/downward-api"
    follows_pod: ClassVar[bool] = True

    def set_up(self, job: Job) -> str:
        return write(job, self.plugin, item_files(job, job.source.get("items") or (), *defaults(job)))


def item_files(job: Job, items: Iterable[Mapping[str, Any]], default: int, user: int | None = None
               ) -> dict[str, Content]:
    """Path → content; of two items with one path the later wins. Raises VolumeError."""
    found = {}
    for item in items:
        try:
            found[check_path(item["path"])] = Content(
                _value(item, job).encode(), mode_of(item, default), user_of(item, user))
        except (ContainerConfigError, ValueError) as error:
            raise VolumeError(str(error)) from error
    return found


def _value(item: Mapping[str, Any], job: Job) -> str:
    if item.get("fieldRef"):
        return metadata_value(item["fieldRef"].get("fieldPath") or "", job.pod)
    ref = item.get("resourceFieldRef") or {}
    name = ref.get("containerName") or ""
    asking = next((c for c in podspec.all_containers(job.pod) if c.get("name") == name), None)
    if asking is None:
        raise ContainerConfigError(f"container {name} not found")
    return resource_value(ref, job.pod, asking, job.node)
