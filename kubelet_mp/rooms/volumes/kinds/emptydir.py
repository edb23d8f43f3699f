"""emptyDir: on the node's disk, in memory, or in huge pages (Kubernetes 1.37 pkg/volume/emptydir)."""

from __future__ import annotations

import errno
import os
from typing import ClassVar

from kubelet_mp.host import mounts
from kubelet_mp.host.files import FileError, make_dirs
from kubelet_mp.host.ownership import give_to_group
from kubelet_mp.model import quantity
from kubelet_mp.model.requests import HUGEPAGES, pod_requests
from kubelet_mp.model.resources import pod_cgroup_values
from kubelet_mp.rooms.volumes.dirs import EMPTY_DIR
from kubelet_mp.rooms.volumes.kinds.base import Job, Kind, VolumeError, make_directory

MEMORY, HUGE = "Memory", "HugePages"
_MODE = 0o777
_READY = "ready"


class EmptyDir(Kind):
    plugin: ClassVar[str] = EMPTY_DIR

    def quick(self, job: Job) -> bool:
        return True

    def set_up(self, job: Job) -> str:
        path, medium = job.dirs.volume(job.uid, self.plugin, job.name), job.source.get("medium") or ""
        if is_ready(job) and (os.path.ismount(path) if medium else os.path.isdir(path)):
            return path
        make_directory(job, self.plugin, _MODE)
        os.chmod(path, _MODE)
        if medium == MEMORY:
            mount_tmpfs(path, f"size={memory_size(job)}")
        elif medium.startswith(HUGE):
            _mount_huge_pages(path, page_size(job, medium))
        elif medium:
            raise VolumeError(f"unknown storage medium {medium!r}", 'use "", Memory or HugePages')
        if job.fs_group is not None:
            give_to_group(path, job.fs_group)
        mark_ready(job)
        return path


def memory_size(job: Job) -> int:
    """Bytes of a volume in memory: the least of what the node has for pods, the pod's limit and sizeLimit."""
    limits = [job.node.allocatable.get("memory", 0), pod_cgroup_values(job.pod, job.node).memory_max or 0]
    if job.source.get("sizeLimit"):
        limits.append(quantity.value(job.source["sizeLimit"]))
    return min((limit for limit in limits if limit > 0), default=0)


def page_size(job: Job, medium: str) -> str:
    """The page size of a medium: named by it, or else the only one that the pod requests."""
    if medium != HUGE:
        return medium.removeprefix(f"{HUGE}-")
    sizes = {name.removeprefix(HUGEPAGES) for name, amount in pod_requests(job.pod).items()
             if name.startswith(HUGEPAGES) and amount}
    if len(sizes) != 1:
        what = "requests several sizes of huge pages" if sizes else "requests no huge pages"
        raise VolumeError(f"medium HugePages: the pod {what}", "name the size, like HugePages-2Mi")
    return sizes.pop()


def is_ready(job: Job, prefix: str = "") -> bool:
    """Whether the volume was set up once, whoever ran then."""
    return os.path.exists(f"{job.dirs.marker(job.uid, prefix + job.name)}/{_READY}")


def mark_ready(job: Job, prefix: str = "") -> None:
    """Raises FileError."""
    directory = job.dirs.marker(job.uid, prefix + job.name)
    for path in (job.dirs.plugins(job.uid), os.path.dirname(directory), directory):
        make_dirs(path, 0o750)
    try:
        with open(f"{directory}/{_READY}", "wb"):
            pass
    except OSError as error:
        raise FileError.of("write", f"{directory}/{_READY}", error) from error


def mount_tmpfs(path: str, options: str) -> None:
    """Unless one is there already; without swap where the kernel (6.4) can. Raises MountError."""
    if os.path.ismount(path):
        return
    try:
        mounts.mount("tmpfs", path, "tmpfs", data=",".join(filter(None, (options, "noswap"))))
    except mounts.MountCallError as error:
        if error.errno != errno.EINVAL:
            raise
        mounts.mount("tmpfs", path, "tmpfs", data=options)


def _mount_huge_pages(path: str, size: str) -> None:
    if not os.path.ismount(path):
        mounts.mount("nodev", path, "hugetlbfs", data=f"pagesize={size}")
