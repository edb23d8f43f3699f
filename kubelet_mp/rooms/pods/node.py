"""The NodeView of this room: the settings, and what the cgroups room and the runtime said of the node."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from typing import Any

from kubelet_mp.config import Settings
from kubelet_mp.host import files
from kubelet_mp.model.admission import NodeOffer
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.requests import HUGEPAGES, add, amount, amounts
from kubelet_mp.model.runtime import RuntimeState
from kubelet_mp.wire.messages import NodeFacts

HOSTS = "/etc/hosts"
_THROTTLE = "/sys/devices/system/cpu/cpu*/thermal_throttle"
APPARMOR = "/sys/module/apparmor/parameters/enabled"
_LIMIT = 1024 * 1024
Node = Mapping[str, Any]


def read_view(settings: Settings, facts: NodeFacts | None, state: RuntimeState | None,
              node: Node | None = None, hosts: str = HOSTS) -> NodeView:
    """Read the host's files and build the view. Raises FileError if the configured resolvConf is missing."""
    config = settings.kubelet
    resolv = files.read_text(config.resolv_conf, _LIMIT) if config.resolv_conf else None
    return NodeView(
        node_name=settings.node_name,
        node_ips=addresses_of(node) or (facts.addresses if facts else ()),
        root_dir=settings.root_dir,
        pod_logs_dir=config.pod_logs_dir,
        cluster_dns=config.cluster_dns,
        cluster_domain=config.cluster_domain,
        resolv_conf=resolv,
        hosts_file=_text(hosts),
        capacity=dict(facts.capacity) if facts else {},
        allocatable=dict(facts.allocatable) if facts else {},
        reserved=add(amounts(config.system_reserved), amounts(config.kube_reserved)),
        hugepage_sizes=_hugepages(facts.capacity if facts else {}),
        pods_enforced="pods" in config.enforce_node_allocatable,
        cgroup_version=facts.cgroup_version if facts else 2,
        cgroup_driver=facts.driver if facts else config.cgroup_driver,
        cgroup_root=config.cgroup_root,
        cgroups_per_qos=config.cgroups_per_qos,
        cpu_cfs_quota=config.cpu_cfs_quota,
        cpu_period_us=round(config.cpu_cfs_quota_period * 1_000_000),
        pod_pids_limit=config.pod_pids_limit,
        single_process_oom_kill=bool(config.single_process_oom_kill),
        memory_qos=settings.feature("MemoryQoS"),
        memory_throttling_factor=config.memory_throttling_factor,
        memory_reservation=config.memory_reservation_policy,
        swap_behavior=config.memory_swap.swap_behavior or "NoSwap",
        seccomp_default=config.seccomp_default,
        thermal_throttle_paths=tuple(sorted(glob.glob(_THROTTLE))),
        ids_per_pod=config.user_namespaces.ids_per_pod,
        container_stop_signals=settings.feature("ContainerStopSignals"),
        local_storage_isolation=config.local_storage_capacity_isolation,
        handlers=state.handlers if state else (),
        supplemental_groups_policy=bool(state and state.supplemental_groups_policy),
    )


def _hugepages(capacity: Mapping[str, int]) -> tuple[int, ...]:
    names = [name for name in capacity if name.startswith(HUGEPAGES)]
    return tuple(sorted(amount("memory", name.removeprefix(HUGEPAGES)) for name in names))


def _text(path: str) -> str:
    try:
        return files.read_text(path, _LIMIT)
    except files.FileError:
        return ""


def addresses_of(node: Node | None) -> tuple[str, ...]:
    """The InternalIPs of a Node object, in its order."""
    listed = ((node or {}).get("status") or {}).get("addresses") or ()
    return tuple(str(a["address"]) for a in listed if a.get("type") == "InternalIP")


def relevant(node: Node) -> tuple[Any, ...]:
    """What of a Node object this room acts on."""
    meta, spec, status = (node.get(part) or {} for part in ("metadata", "spec", "status"))
    return meta.get("labels"), spec.get("taints"), status.get("allocatable"), status.get("addresses")


def offer_of(settings: Settings, facts: NodeFacts, state: RuntimeState | None, node: Node | None) -> NodeOffer:
    """What admission needs to know. Without a Node object: as the agent would register itself."""
    uname = os.uname()
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(uname.machine, uname.machine)
    labels = {"kubernetes.io/hostname": settings.hostname or settings.node_name, "kubernetes.io/os": "linux",
              "kubernetes.io/arch": machine, **settings.node_labels}
    if node is not None:
        labels = (node.get("metadata") or {}).get("labels") or {}
    return NodeOffer(
        node_name=settings.node_name, allocatable={**_extended(node), **facts.allocatable}, labels=labels,
        taints=((node or {}).get("spec") or {}).get("taints") or (), apparmor=_text(APPARMOR).startswith("Y"),
        pod_level_resources=settings.feature("PodLevelResources"),
        unsafe_sysctls=settings.kubelet.allowed_unsafe_sysctls, kernel=kernel_version(uname.release),
        supplemental_groups_policy=bool(state and state.supplemental_groups_policy))


def _extended(node: Node | None) -> dict[str, int]:
    """Extended resources, which only the Node object knows."""
    listed = ((node or {}).get("status") or {}).get("allocatable") or {}
    return amounts({name: text for name, text in listed.items() if "/" in name})


def kernel_version(release: str) -> tuple[int, int]:
    """(major, minor) of `uname -r`; (0, 0) for what is no version."""
    match = re.match(r"(\d+)\.(\d+)", release)
    return (int(match[1]), int(match[2])) if match else (0, 0)
