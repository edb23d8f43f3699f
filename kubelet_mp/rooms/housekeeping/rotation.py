"""The duty of log rotation: looks at the size of every running container's log, and rotates what is too large.

Looking costs one stat per container and no call to the runtime. Source: Kubernetes 1.37 pkg/kubelet/logs.
"""

from __future__ import annotations

import os

from kubelet_mp import log
from kubelet_mp.config import KubeletConfiguration
from kubelet_mp.errors import HostError, RuntimeCallError
from kubelet_mp.host.cri import Runtime
from kubelet_mp.host.logrotate import rotate
from kubelet_mp.model import clock, quantity
from kubelet_mp.rooms.housekeeping.crew import Crew
from kubelet_mp.rooms.housekeeping.inventory import Inventory, Vessel
from kubelet_mp.rooms.timers import Timers

_log = log.get("housekeeping")


class LogRotation:
    def __init__(
        self, kubelet: KubeletConfiguration, inventory: Inventory, runtime: Runtime, timers: Timers
    ) -> None:
        self._inventory, self._runtime, self._timers = inventory, runtime, timers
        self._max_size = quantity.value(kubelet.container_log_max_size)
        self._max_files = kubelet.container_log_max_files
        self._period = kubelet.container_log_monitor_interval
        self._crew = Crew("logs", max(1, kubelet.container_log_max_workers))
        self.rotated = 0

    def start(self) -> None:
        """A negative maximal size switches rotation off."""
        if self._max_size >= 0:
            self._timers.every(self._period, self.look)

    def close(self) -> None:
        self._crew.close()

    def look(self) -> None:
        """Hand every log that is too large, or missing, to the crew."""
        for vessel in self._inventory.running():
            if not vessel.log_path:
                continue
            size = _size(vessel.log_path)
            if (size is None or size >= self._max_size) and not self._crew.busy(vessel.id):
                self._crew.do(vessel.id, lambda vessel=vessel: self._rotate(vessel))  # type: ignore[misc]

    def _rotate(self, vessel: Vessel) -> None:
        """In a thread of the crew."""
        try:
            if _size(vessel.log_path) is None:
                self._reopen(vessel)
            size = _size(vessel.log_path)
            if size is None or size < self._max_size:
                return
            problems = rotate(vessel.log_path, self._max_files, clock.wall_time(), lambda: self._reopen(vessel))
        except (RuntimeCallError, HostError) as error:
            _log.warning("cannot rotate a container log", container=vessel.name, log=vessel.log_path, err=str(error))
            return
        self.rotated += 1
        for problem in problems:
            _log.warning("cannot tidy old container logs", container=vessel.name, err=str(problem))

    def _reopen(self, vessel: Vessel) -> None:
        self._runtime.reopen_log(vessel.id)


def _size(path: str) -> int | None:
    """Bytes of a log, None if it is not there."""
    try:
        return os.stat(path).st_size
    except OSError:
        return None
