"""The phase of a pod from the states of its containers (Kubernetes 1.37 pkg/kubelet/kubelet_pods.go)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubelet_mp.model.podspec import Pod, init_containers, regular_containers
from kubelet_mp.model.qos import is_static
from kubelet_mp.model.restartpolicy import is_sidecar, restarts_after

Statuses = Mapping[str, Mapping[str, Any]]  # container name → core/v1 ContainerStatus
TERMINAL = frozenset({"Succeeded", "Failed"})


def kind(status: Mapping[str, Any] | None) -> str:
    """running, terminated, waiting, or unknown where nothing is known."""
    state = (status or {}).get("state") or {}
    return next((name for name in ("running", "terminated", "waiting") if name in state), "unknown")


def last_exit(status: Mapping[str, Any]) -> int | None:
    """Exit code of the newest termination that the status tells of."""
    ended = (status.get("state") or {}).get("terminated") or (status.get("lastState") or {}).get("terminated")
    return None if ended is None else int(ended.get("exitCode", 0))


def init_exit(status: Mapping[str, Any]) -> int | None:
    """As last_exit, but a regular init container that lost a process to the OOM killer failed (137).

    Its script may have returned 0 all the same, and what it was to prepare is not there.
    """
    ended = (status.get("state") or {}).get("terminated") or (status.get("lastState") or {}).get("terminated")
    code = last_exit(status)
    return 137 if ended and code == 0 and ended.get("reason") == "OOMKilled" else code


@dataclass(slots=True)
class _Count:
    pending_init: int = 0
    pending_sidecars: int = 0
    failed_init: int = 0
    running: int = 0
    waiting: int = 0
    stopped: int = 0
    succeeded: int = 0
    restartable: int = 0
    unknown: int = 0


def phase(pod: Pod, statuses: Statuses, *, terminal: bool = False) -> str:
    """Pending, Running, Succeeded or Failed. `terminal`: nothing of the pod will be started again."""
    count = _Count()
    for container in init_containers(pod):
        _count_init(pod, container, statuses.get(container["name"]), count)
    for container in regular_containers(pod):
        _count_regular(pod, container, statuses.get(container["name"]), count)
    return _decide(pod, count, terminal)


def _decide(pod: Pod, count: _Count, terminal: bool) -> str:
    if count.failed_init:
        return "Failed"
    initialized = count.running > 0 or count.stopped > 0
    if count.pending_init or (count.pending_sidecars and not initialized) or count.waiting:
        return "Pending"
    if count.unknown:
        return "Pending"
    if count.running:
        return "Running"
    if not count.stopped:
        return "Pending"
    verdict = "Succeeded" if count.stopped == count.succeeded else "Failed"
    if terminal and not is_static(pod):
        return verdict
    return "Running" if count.restartable else verdict


def _count_init(pod: Pod, container: Mapping[str, Any], status: Mapping[str, Any] | None, count: _Count) -> None:
    what = kind(status)
    code = init_exit(status) if status else None
    if is_sidecar(container):
        started = what == "running" and bool((status or {}).get("started"))
        never_ran = what == "unknown" or (what == "waiting" and code is None)
        count.pending_sidecars += never_ran or (what == "running" and not started)
    elif what in ("unknown", "running") or code is None:
        count.pending_init += 1
    elif code != 0:
        again = restarts_after(pod, container, code, init=True)
        count.pending_init += again
        count.failed_init += not again
    elif what == "waiting":
        count.pending_init += 1


def _count_regular(pod: Pod, container: Mapping[str, Any], status: Mapping[str, Any] | None, count: _Count) -> None:
    what = kind(status)
    code = last_exit(status) if status else None
    if what == "running":
        count.running += 1
    elif what == "unknown":
        count.unknown += 1
    elif what == "waiting" and code is None:
        count.waiting += 1
    else:
        count.stopped += 1
        count.succeeded += what == "terminated" and code == 0
        count.restartable += restarts_after(pod, container, code or 0)
