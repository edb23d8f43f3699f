"""Which cgroup driver to use: the runtime's answer against the configuration."""

from __future__ import annotations

from kubelet_mp.config import Settings
from kubelet_mp.errors import StartError
from kubelet_mp.model.cgroupnames import CGROUPFS, SYSTEMD

IMPLEMENTED = (CGROUPFS,)


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
