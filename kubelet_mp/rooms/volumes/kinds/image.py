"""image: the runtime mounts it, so there is nothing to do on the disk."""

from __future__ import annotations

from typing import ClassVar

from kubelet_mp.rooms.volumes.kinds.base import Job, Kind


class Image(Kind):
    plugin: ClassVar[str] = "kubernetes.io/image"
    in_pod_dir: ClassVar[bool] = False

    def quick(self, job: Job) -> bool:
        return True

    def set_up(self, job: Job) -> str:
        """Always "": pulling belongs to the pods room."""
        return ""
