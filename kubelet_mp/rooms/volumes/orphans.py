"""Pod directories that belong to no pod any more."""

from __future__ import annotations

from collections.abc import Iterable

from kubelet_mp.host.cgroupfs import Cgroups
from kubelet_mp.model import cgroupnames as names

PATIENCE = 10.0  # s for which a directory must have had no pod


class Suspects:
    """Directories without a pod, since when. A new pod's directory may be there before word of the pod is."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def look(self, found: Iterable[str], keep: Iterable[str], now: float) -> list[str]:
        """Those that have been without a pod for long enough."""
        strangers = set(found) - set(keep)
        self._since = {uid: self._since.get(uid, now) for uid in strangers}
        return sorted(uid for uid, since in self._since.items() if now - since >= PATIENCE)

    def __bool__(self) -> bool:
        return bool(self._since)


def runs(cgroups: Cgroups, uid: str, driver: str, cgroup_root: str) -> bool:
    """Whether a process of that pod still runs, known to anybody or not: then its volumes are in use."""
    classes: tuple[names.QosClass, ...] = ("Guaranteed", "Burstable", "BestEffort")
    paths = (names.path(names.pod_name(uid, qos, cgroup_root), driver) for qos in classes)
    return any(cgroups.processes(path) for path in paths)
