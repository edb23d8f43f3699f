"""All rooms by name, in the order of their first fork: producers of facts before those that act on them."""

from __future__ import annotations

from collections.abc import Mapping

from kubelet_mp.rooms.base import Room
from kubelet_mp.rooms.cgroups.room import CgroupsRoom
from kubelet_mp.rooms.housekeeping.room import HousekeepingRoom
from kubelet_mp.rooms.http.room import HttpRoom
from kubelet_mp.rooms.pleg.room import PlegRoom
from kubelet_mp.rooms.pods.room import PodsRoom
from kubelet_mp.rooms.probes.room import ProbesRoom
from kubelet_mp.rooms.reporter.room import ReporterRoom
from kubelet_mp.rooms.sources.room import SourcesRoom
from kubelet_mp.rooms.volumes.room import VolumesRoom

ROOMS: Mapping[str, type[Room]] = {
    room.name: room
    for room in (PlegRoom, CgroupsRoom, VolumesRoom, PodsRoom, SourcesRoom, ProbesRoom, ReporterRoom,
                 HousekeepingRoom, HttpRoom)
}
