"""The housekeeping room: feeds its duties with what the other rooms report."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from kubelet_mp.host.cri import Runtime
from kubelet_mp.host.cri_metrics import RuntimeMetrics
from kubelet_mp.host.poddirs import PodDirs
from kubelet_mp.model import clock
from kubelet_mp.model.runtime import State
from kubelet_mp.rooms.base import Room, RoomContext
from kubelet_mp.rooms.housekeeping.gc import ContainerGC
from kubelet_mp.rooms.housekeeping.gcplan import Census, Limits
from kubelet_mp.rooms.housekeeping.imagelist import ImageList
from kubelet_mp.rooms.housekeeping.inventory import Inventory, PodStock
from kubelet_mp.rooms.housekeeping.rotation import LogRotation
from kubelet_mp.wire.messages import (
    AdmittedSet,
    Event,
    Message,
    PodForgotten,
    PodRuntimeChanged,
    RelistDone,
    StatusSet,
)

LINKS = "/var/log/containers"


class HousekeepingRoom(Room):
    name = "housekeeping"

    def __init__(self, context: RoomContext, links: str = LINKS) -> None:
        super().__init__(context)
        kubelet = self.settings.kubelet
        self._registry = CollectorRegistry()
        runtime = self._runtime = Runtime(
            kubelet.container_runtime_endpoint, timeout=kubelet.runtime_request_timeout,
            observe=RuntimeMetrics(self._registry).observe,
        )
        self.inventory, self.census = Inventory(), Census()
        limits = Limits(self.settings.minimum_container_ttl_duration)
        dirs = PodDirs(self.settings.root_dir, kubelet.pod_logs_dir, links)
        self.gc = ContainerGC(self.inventory, self.census, limits, dirs, runtime, self.timers, self._gc_failed)
        self.rotation = LogRotation(kubelet, self.inventory, runtime, self.timers)
        self.images = None if self.settings.standalone else ImageList(
            runtime, self.timers, self.post, self.send, kubelet.node_status_update_frequency)

    def start(self) -> None:
        self.gc.start()
        self.rotation.start()
        if self.images is not None:
            self.images.start()

    def replay(self, room: str) -> None:
        if self.images is not None and room == "reporter":
            self.images.replay()

    def handle(self, message: Message) -> None:
        if isinstance(message, PodRuntimeChanged):
            stock = self.inventory.update(message.runtime)
            if stock is not None and _has_dead(stock):
                self.gc.changed(message.uid)
        elif isinstance(message, RelistDone):
            self.inventory.listed(message.uids)
        elif isinstance(message, AdmittedSet):
            self.census.admitted(message.uids, message.ready)
        elif isinstance(message, StatusSet):
            self.census.shown(message.uids)
        elif isinstance(message, PodForgotten):
            self.census.forgotten(message.uid)
            self.gc.changed(message.uid)

    def close(self) -> None:
        self.gc.close()
        self.rotation.close()
        if self.images is not None:
            self.images.close()
        self._runtime.close()

    def metrics_text(self) -> str:
        return generate_latest(self._registry).decode() + (
            "# HELP kubelet_mp_container_log_rotations_total Container logs rotated.\n"
            "# TYPE kubelet_mp_container_log_rotations_total counter\n"
            f"kubelet_mp_container_log_rotations_total {self.rotation.rotated}\n"
            "# HELP kubelet_mp_container_gc_removed_total Dead containers and sandboxes removed.\n"
            "# TYPE kubelet_mp_container_gc_removed_total counter\n"
            f'kubelet_mp_container_gc_removed_total{{kind="container"}} {self.gc.removed_containers}\n'
            f'kubelet_mp_container_gc_removed_total{{kind="sandbox"}} {self.gc.removed_sandboxes}\n'
        )

    def _gc_failed(self, text: str) -> None:
        self.log.warning("container garbage collection failed", err=text)
        node = self.settings.node_name
        self.send(Event("Node", "", node, node, "Warning", "ContainerGCFailed", text, clock.wall_time()))


def _has_dead(stock: PodStock) -> bool:
    return len(stock.boxes) > 1 or any(vessel.state is not State.RUNNING for vessel in stock.vessels)
