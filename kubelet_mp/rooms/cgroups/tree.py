"""The kubepods tree on this machine: made, refreshed, and rid of pods that are gone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubelet_mp.config import Settings
from kubelet_mp.errors import StartError
from kubelet_mp.host.cgroupfs import Cgroups
from kubelet_mp.model import cgroupnames as names
from kubelet_mp.model.cgroupvalues import settings as control_files
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.podspec import Pod, uid
from kubelet_mp.model.qos import qos_class
from kubelet_mp.model.requests import Amounts
from kubelet_mp.model.resources import CgroupValues, kubepods_values, pod_cgroup_values, qos_cgroup_values
from kubelet_mp.rooms.cgroups import facts

CLASSES: tuple[names.QosClass, ...] = ("Guaranteed", "Burstable", "BestEffort")


class PodTree:
    """Applies the values of NodeView and pods. Every method raises CgroupError where the kernel refuses."""

    def __init__(self, cgroups: Cgroups, node: NodeView) -> None:
        self._cgroups, self._node = cgroups, node

    def refresh(self, pods: Iterable[Pod]) -> None:
        """kubepods and the QoS cgroups for these active pods; nothing without cgroupsPerQOS."""
        if not self._node.cgroups_per_qos:
            return
        listed = list(pods)
        root = self._node.cgroup_root
        self._apply(names.kubepods_name(root), kubepods_values(self._node, listed))
        for qos, values in qos_cgroup_values(listed, self._node).items():
            self._apply(names.qos_name(qos, root), values)  # type: ignore[arg-type]

    def ensure(self, pod: Pod) -> list[str]:
        """The pod's own cgroup with its values. Returns what was changed."""
        if not self._node.cgroups_per_qos:
            return []
        name = names.pod_name(uid(pod), qos_class(pod), self._node.cgroup_root)
        return self._apply(name, pod_cgroup_values(pod, self._node))

    def parent(self, pod: Pod) -> str:
        """What the runtime is given as cgroup_parent."""
        node = self._node
        return names.cgroup_parent(uid(pod), qos_class(pod), node.cgroup_driver, node.cgroup_root,
                                   node.cgroups_per_qos)

    def remove(self, pod_uid: str) -> set[int] | None:
        """Remove the pod's cgroup wherever it is. None when it is gone, else the processes in it."""
        if not self._node.cgroups_per_qos:
            return None
        held: set[int] | None = None
        for path in self._paths(pod_uid):
            if not self._cgroups.remove(path):
                held = (held or set()) | self._cgroups.processes(path)
        return held

    def kill(self, pod_uid: str) -> set[int]:
        """Kill what still runs in the pod's cgroup. Returns the process ids."""
        return {pid for path in self._paths(pod_uid) for pid in self._cgroups.kill(path)}

    def sweep(self, keep: Iterable[str]) -> list[str]:
        """Remove cgroups of pods that are not in `keep` and hold no process. Returns their UIDs."""
        kept = set(keep)
        strangers = {found for found in self.pods() if found not in kept}
        return [stranger for stranger in sorted(strangers) if self._clear(stranger)]

    def pods(self) -> Iterator[str]:
        """UIDs of the pod cgroups that are there."""
        if not self._node.cgroups_per_qos:
            return
        for qos in CLASSES:
            parent = names.path(names.qos_name(qos, self._node.cgroup_root), self._node.cgroup_driver)
            for leaf in self._cgroups.children(parent):
                found = names.pod_uid(leaf, self._node.cgroup_driver)
                if found:
                    yield found

    def _clear(self, pod_uid: str) -> bool:
        if any(self._cgroups.processes(path) for path in self._paths(pod_uid)):
            return False
        return self.remove(pod_uid) is None

    def _paths(self, pod_uid: str) -> list[str]:
        """Where the pod may be: its class cannot be known once the pod is not."""
        node = self._node
        found = (names.pod_name(pod_uid, qos, node.cgroup_root) for qos in CLASSES)
        return [names.path(name, node.cgroup_driver) for name in found]

    def _apply(self, name: names.CgroupName, values: CgroupValues) -> list[str]:
        path = names.path(name, self._node.cgroup_driver)
        return self._cgroups.ensure(path, control_files(values, self._node.cgroup_version))


def check_start(cgroups: Cgroups, settings: Settings) -> None:
    """Refuse what cannot work, before anything is made. Raises StartError."""
    missing = cgroups.hierarchy.missing()
    if missing:
        raise StartError(f"Following Cgroup subsystem not mounted: {missing}",
                         "mount them below /sys/fs/cgroup, or boot with cgroup v2")
    config = settings.kubelet
    v1 = cgroups.hierarchy.version == 1
    if config.cpu_cfs_quota and v1 and cgroups.read("/", "cpu", "cpu.cfs_period_us") is None:
        raise StartError("the kernel has no cpu.cfs_period_us", "set cpuCFSQuota: false")
    root = names.cgroupfs_path(names.root_name(config.cgroup_root))
    if config.cgroups_per_qos and not cgroups.exists(root):
        raise StartError(f'cgroupRoot "{config.cgroup_root}" does not exist in every hierarchy',
                         f"create it (mkdir /sys/fs/cgroup/*{root}) or leave cgroupRoot out")


def enforce_reserved(cgroups: Cgroups, settings: Settings, version: int, sizes: Iterable[int]) -> list[str]:
    """Limit the cgroups of system and Kubernetes daemons as enforceNodeAllocatable asks.

    Returns what was limited. Raises StartError where such a cgroup does not exist, CgroupError.
    """
    done = []
    for kind, path, amounts in _reserved_cgroups(settings):
        for key, whole in ((f"{kind}-reserved", True), (f"{kind}-reserved-compressible", False)):
            if key not in settings.kubelet.enforce_node_allocatable:
                continue
            path = "/" + path.strip("/")
            if not cgroups.exists(path):
                raise StartError(f"{kind}ReservedCgroup {path} does not exist, but {key} is to be enforced",
                                 "create the cgroup, or take it out of enforceNodeAllocatable")
            cgroups.ensure(path, control_files(facts.reserved_values(amounts, whole, sizes), version))
            done.append(key)
    return done


def _reserved_cgroups(settings: Settings) -> list[tuple[str, str, Amounts]]:
    config = settings.kubelet
    return [
        ("system", config.system_reserved_cgroup, facts.system_reserved(settings)),
        ("kube", config.kube_reserved_cgroup, facts.kube_reserved(settings)),
    ]
