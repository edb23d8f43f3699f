"""From cgroups, volumes and others: what a pod stands on, and the node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubelet_mp.model.runtime import Image
from kubelet_mp.wire.messages.base import Message, PodMessage


@dataclass(frozen=True, slots=True)
class PodCgroupReady(PodMessage):
    """The pod's cgroup stands with its values (`problem` ""), or why not. `parent` is the CRI cgroup_parent.

    serial: that of the `PodAdmitted` which it answers.
    """

    parent: str
    problem: str = ""
    serial: int = 0


@dataclass(frozen=True, slots=True)
class PodVolumesReady(PodMessage):
    """The pod's volumes are set up (`problem` ""), or why not.

    `paths`: volume name → host path for the container mounts. `pending` names the volumes that are missing.
    `version` is the pod's metadata.generation or hash of its volumes that was set up.
    """

    paths: Mapping[str, str]
    problem: str = ""
    pending: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodFreed(PodMessage):
    """`room` (cgroups, volumes) has freed all it held for the pod, or says why not yet."""

    room: str
    problem: str = ""

    def key(self) -> str:
        return f"{self.uid}/{self.room}"


@dataclass(frozen=True, slots=True)
class NodeFacts(Message):
    """What the cgroups room knows of the machine. Memory in bytes, cpu in millicores.

    `allocatable` and `capacity` are resource name → integer in base units (cpu in millicores).
    """

    addresses: tuple[str, ...]
    hostname: str
    cgroup_version: int
    driver: str
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NodeObject(Message):
    """The newest core/v1 Node object of this node, from the API server."""

    node: dict[str, Any]


@dataclass(frozen=True, slots=True)
class NodeImages(Message):
    """All images in the runtime's store, where they changed and on replay; looked for every 10 s."""

    images: tuple[Image, ...]
