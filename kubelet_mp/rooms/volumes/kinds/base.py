"""What every kind of volume is."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from kubelet_mp.errors import HostError
from kubelet_mp.host.files import make_dirs
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.podspec import Pod, uid
from kubelet_mp.rooms.volumes.content.store import ApiContent
from kubelet_mp.rooms.volumes.dirs import Dirs
from kubelet_mp.rooms.volumes.payload import MODE, mode_of, user_of
from kubelet_mp.rooms.volumes.plan import Volume, fs_group, type_of


class VolumeError(HostError):
    """A volume cannot be set up; the text is what the FailedMount event shows."""


@dataclass(frozen=True, slots=True)
class Job:
    """One volume of one pod, to be set up. content: what the API server gives, None without one."""

    pod: Pod
    volume: Volume
    dirs: Dirs
    node: NodeView
    content: ApiContent | None = None

    @property
    def uid(self) -> str:
        return uid(self.pod)

    @property
    def name(self) -> str:
        return str(self.volume["name"])

    @property
    def source(self) -> Volume:
        """The body of the volume's source, e.g. that of `hostPath`."""
        return self.volume.get(type_of(self.volume)) or {}

    @property
    def fs_group(self) -> int | None:
        return fs_group(self.pod)


def make_directory(job: Job, plugin: str, mode: int) -> str:
    """The volume's directory with that mode, and those above it (0750) where they are missing.

    Raises FileError.
    """
    path = job.dirs.volume(job.uid, plugin, job.name)
    for above in (job.dirs.pod(job.uid), job.dirs.volumes(job.uid), os.path.dirname(path)):
        make_dirs(above, 0o750)
    make_dirs(path, mode)
    return path


def defaults(job: Job) -> tuple[int, int | None]:
    """Mode and owner (None: the agent's) of the volume's files of which the spec tells none."""
    return mode_of(job.source, MODE, "defaultMode"), user_of(job.source, None, "defaultUser")


class Kind(ABC):
    """Sets volumes of one kind up, again and again with the same result.

    may_hang: set_up may block for ever (it runs in a thread of its own in any case where `quick` is false).
    in_pod_dir: set_up writes below the pod's directory, so nothing may be taken down meanwhile.
    follows_pod: set_up is to be run again when the pod changed.
    longest: s between two attempts at most.
    """

    plugin: ClassVar[str]
    in_pod_dir: ClassVar[bool] = True
    follows_pod: ClassVar[bool] = False
    longest: ClassVar[float] = 122.0

    def quick(self, job: Job) -> bool:
        """Whether set_up takes well below a millisecond and cannot block."""
        return False

    @abstractmethod
    def set_up(self, job: Job) -> str:
        """Make the volume ready; its path on the host. Raises HostError (VolumeError, MountError, FileError)."""

    def doing(self, job: Job) -> str:
        """What set_up is about, for a person that asks why it takes so long."""
        return f'the set-up of volume "{job.name}"'
