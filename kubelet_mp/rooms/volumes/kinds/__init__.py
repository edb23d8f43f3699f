"""One module for each kind of volume; `kind_of` finds the one for a volume.

What belongs here: how a volume of that kind comes to stand on the disk. What may not live here: threads,
retries, events: the room does that for all kinds alike.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubelet_mp.rooms.volumes.kinds.base import Job, Kind, VolumeError
from kubelet_mp.rooms.volumes.kinds.downward import DownwardApi
from kubelet_mp.rooms.volumes.kinds.emptydir import EmptyDir
from kubelet_mp.rooms.volumes.kinds.hostpath import HostPath
from kubelet_mp.rooms.volumes.kinds.image import Image
from kubelet_mp.rooms.volumes.kinds.nfs import Nfs
from kubelet_mp.rooms.volumes.kinds.objects import ConfigMap, Secret
from kubelet_mp.rooms.volumes.kinds.projected import Projected
from kubelet_mp.rooms.volumes.plan import Volume, type_of

KINDS: Mapping[str, Kind] = {
    "emptyDir": EmptyDir(),
    "hostPath": HostPath(),
    "image": Image(),
    "downwardAPI": DownwardApi(),
    "projected": Projected(),
    "configMap": ConfigMap(),
    "secret": Secret(),
    "nfs": Nfs(),
}


def kind_of(volume: Volume) -> Kind:
    """KeyError for a kind that plan.unsupported() would have named."""
    return KINDS[type_of(volume)]


__all__ = ["KINDS", "Job", "Kind", "VolumeError", "kind_of"]
