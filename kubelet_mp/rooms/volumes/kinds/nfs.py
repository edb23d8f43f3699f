"""nfs: by mount.nfs of the node (Kubernetes 1.37 pkg/volume/nfs)."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import ClassVar

from kubelet_mp.host import mounts
from kubelet_mp.rooms.volumes.kinds.base import Job, Kind, VolumeError, make_directory

PATIENCE = 120.0  # s


class Nfs(Kind):
    """The address of the server and the path on it are handed to mount(8), which knows NFS's negotiation."""

    plugin: ClassVar[str] = "kubernetes.io/nfs"

    def set_up(self, job: Job) -> str:
        path = make_directory(job, self.plugin, 0o750)
        if mounts.at(mounts.mount_table(only=job.name), os.path.realpath(path)) is None:
            self._mount(job, path)
        return path

    def _mount(self, job: Job, path: str) -> None:
        if shutil.which("mount.nfs") is None:
            raise VolumeError("mount.nfs is not on this node", "install nfs-common or nfs-utils")
        source = f"{job.source['server']}:{job.source['path']}"
        options = ["-o", "ro"] if job.source.get("readOnly") else []
        try:
            done = subprocess.run(["mount", "-t", "nfs", *options, source, path], stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            raise VolumeError(f"mount of {source} took longer than {PATIENCE:.0f} s") from None
        if done.returncode != 0:
            output = done.stderr.decode("utf-8", "replace").strip()[:1000]
            raise VolumeError(f"mount of {source} failed: exit status {done.returncode}: {output}")

    def doing(self, job: Job) -> str:
        return f'the NFS mount of {job.source.get("server")}:{job.source.get("path")} for volume "{job.name}"'
