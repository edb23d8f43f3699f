"""Names and paths of the kubepods tree for both cgroup drivers (Kubernetes 1.37 pkg/kubelet/cm).

A name is the tuple of its plain components, e.g. ("kubepods", "burstable", "podUID"); how it is spelled on
disk depends on the driver. Paths begin with "/" and are relative to the root of the cgroup hierarchy.
"""

from __future__ import annotations

from typing import Literal

CgroupName = tuple[str, ...]
QosClass = Literal["Guaranteed", "Burstable", "BestEffort"]

CGROUPFS = "cgroupfs"
SYSTEMD = "systemd"
SLICE = ".slice"
KUBEPODS = "kubepods"


def root_name(cgroup_root: str) -> CgroupName:
    """The name of `cgroupRoot`, e.g. "/a/b" → ("a", "b"); () for "" and "/"."""
    return tuple(part for part in cgroup_root.split("/") if part)


def kubepods_name(cgroup_root: str = "") -> CgroupName:
    """The cgroup above all pods."""
    return (*root_name(cgroup_root), KUBEPODS)


def qos_name(qos: QosClass, cgroup_root: str = "") -> CgroupName:
    """The parent of the pods of a QoS class; Guaranteed pods are right below kubepods."""
    kubepods = kubepods_name(cgroup_root)
    return kubepods if qos == "Guaranteed" else (*kubepods, qos.lower())


def pod_name(uid: str, qos: QosClass, cgroup_root: str = "") -> CgroupName:
    """The cgroup of a pod."""
    return (*qos_name(qos, cgroup_root), f"pod{uid}")


def escape(part: str) -> str:
    """A component as part of a slice name, where `-` separates levels."""
    return part.replace("-", "_")


def unescape_uid(part: str) -> str:
    """The likely UID of an escaped one; an underscore in the original UID is lost (UIDs have none)."""
    return part.replace("_", "-")


def slice_name(name: CgroupName) -> str:
    """The systemd unit, e.g. kubepods-burstable-pod1_2.slice; `-.slice` for the root."""
    return ("-".join(map(escape, name)) or "-") + SLICE


def cgroupfs_path(name: CgroupName) -> str:
    """/kubepods/burstable/podUID."""
    return "/" + "/".join(name)


def systemd_path(name: CgroupName) -> str:
    """/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice."""
    return "/" + "/".join(slice_name(name[: depth + 1]) for depth in range(len(name)))


def path(name: CgroupName, driver: str) -> str:
    """Where the cgroup is under the given driver ("cgroupfs" or "systemd")."""
    return systemd_path(name) if driver == SYSTEMD else cgroupfs_path(name)


def cgroup_parent(uid: str, qos: QosClass, driver: str, cgroup_root: str = "", per_qos: bool = True) -> str:
    """What RunPodSandbox is given as linux.cgroup_parent.

    Without cgroupsPerQOS it is the cgroup root alone, and "" (the runtime decides) when there is none.
    """
    if per_qos:
        return path(pod_name(uid, qos, cgroup_root), driver)
    return cgroupfs_path(root_name(cgroup_root)) if root_name(cgroup_root) else ""


def pod_uid(leaf: str, driver: str) -> str | None:
    """The pod UID that a directory below kubepods or a QoS cgroup stands for, None when it is no pod's."""
    if driver == SYSTEMD:
        leaf = leaf.removesuffix(SLICE).rpartition("-")[2]
    if not leaf.startswith("pod") or leaf == "pod":
        return None
    uid = leaf.removeprefix("pod")
    return unescape_uid(uid) if driver == SYSTEMD else uid
