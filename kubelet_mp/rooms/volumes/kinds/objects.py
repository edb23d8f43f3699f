"""configMap and secret: each key of an object of the API server as a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from kubelet_mp.errors import ApiError
from kubelet_mp.host.atomicdir import Content
from kubelet_mp.model import podspec
from kubelet_mp.rooms.volumes.content.keys import CONFIG_MAP, SECRET, Key
from kubelet_mp.rooms.volumes.kinds.atomic import write
from kubelet_mp.rooms.volumes.kinds.base import Job, Kind, VolumeError, defaults
from kubelet_mp.rooms.volumes.payload import object_files


class ConfigMap(Kind):
    """A directory on the node's disk, where a Secret's is in memory."""

    plugin: ClassVar[str] = "kubernetes.io/configmap"
    longest: ClassVar[float] = 10.0
    kind: ClassVar[str] = CONFIG_MAP
    field: ClassVar[str] = "name"
    memory: ClassVar[bool] = False

    def set_up(self, job: Job) -> str:
        name = job.source.get(self.field) or ""
        files = read_object(job, self.kind, name, job.source, *defaults(job))
        return write(job, self.plugin, files, memory=self.memory)

    def doing(self, job: Job) -> str:
        return f'reading {self.kind} "{job.source.get(self.field)}" for volume "{job.name}"'


class Secret(ConfigMap):
    plugin: ClassVar[str] = "kubernetes.io/secret"
    kind: ClassVar[str] = SECRET
    field: ClassVar[str] = "secretName"
    memory: ClassVar[bool] = True


def read_object(job: Job, kind: str, name: str, body: Mapping[str, Any], default: int, user: int | None
                ) -> dict[str, Content]:
    """The files of one object. Raises VolumeError."""
    if job.content is None:
        raise VolumeError(f"{kind}s need the API server", "run with --kubeconfig")
    key = Key(kind, podspec.namespace(job.pod), name)
    try:
        return object_files(key, job.content.object(key), body, default, user)
    except ApiError as error:
        raise VolumeError(error.message, error.fix) from error
    except ValueError as error:
        raise VolumeError(str(error)) from error
