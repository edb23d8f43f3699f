"""Which cgroup driver to use: the runtime's answer against the configuration."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kubelet_mp import log
from kubelet_mp.config import Settings
from kubelet_mp.errors import RuntimeCallError, StartError
from kubelet_mp.model.cgroupnames import CGROUPFS, SYSTEMD

IMPLEMENTED = (CGROUPFS,)
RETRY = 2.0  # s between two questions to a runtime that does not answer

Ask = Callable[[], str]
"""The runtime's driver, "" when it cannot tell. Raises RuntimeCallError."""

_log = log.get("cgroups")


def decide(settings: Settings, answer: str) -> str:
    """The driver to use. Raises StartError on contradiction, or for a driver that is not implemented.

    A cgroupDriver that was not set explicitly gives way to the runtime's answer.
    """
    configured = settings.kubelet.cgroup_driver
    explicit = "cgroup_driver" in settings.kubelet.model_fields_set
    if answer and explicit and answer != configured:
        raise StartError(
            f"the container runtime at {settings.kubelet.container_runtime_endpoint} uses the cgroup driver "
            f'"{answer}", but the configuration says cgroupDriver: {configured}',
            f"set cgroupDriver: {answer} (or leave it out), or switch the runtime to {configured}",
        )
    driver = answer or configured
    if driver not in IMPLEMENTED:
        raise StartError(f'the cgroup driver "{driver}" is not implemented', _switch(driver))
    return driver


def _switch(driver: str) -> str:
    if driver == SYSTEMD:
        return ("set the runtime to cgroupfs (containerd: SystemdCgroup = false in the runc options) "
                "and cgroupDriver: cgroupfs")
    return f"use one of: {', '.join(IMPLEMENTED)}"


class DriverQuestion:
    """Asks the runtime in a thread until it answers, then calls `answered` there."""

    def __init__(self, ask: Ask, answered: Callable[[str], None], stopping: threading.Event) -> None:
        self._ask, self._answered, self._stopping = ask, answered, stopping

    def start(self) -> None:
        threading.Thread(target=self._work, name="driver", daemon=True).start()

    def _work(self) -> None:
        told = ""
        while not self._stopping.is_set():
            try:
                return self._answered(self._ask())
            except RuntimeCallError as error:
                if str(error) != told:
                    told = str(error)
                    _log.warning("waiting for the runtime to tell its cgroup driver", err=told)
            self._stopping.wait(RETRY)
        return None
