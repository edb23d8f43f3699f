"""Validation of the fields about the node's resources: reservations, cgroups, swap, eviction.

Source: Kubernetes 1.37 pkg/kubelet/apis/config/validation and pkg/kubelet/eviction/helpers.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kubelet_mp.config.model import KubeletConfiguration
from kubelet_mp.model import quantity
from kubelet_mp.model.clock import parse_duration

Problem = tuple[str, str]

SIGNALS = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "containerfs.available",
    "containerfs.inodesFree",
    "pid.available",
)
_RESERVABLE = ("cpu", "memory", "ephemeral-storage", "pid")
_ENFORCEABLE = (
    "pods",
    "system-reserved",
    "system-reserved-compressible",
    "kube-reserved",
    "kube-reserved-compressible",
    "none",
)
_PERCENT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)%")
_CPUSET = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")


def resource_problems(kubelet: KubeletConfiguration) -> Iterator[Problem]:
    """Every problem of these fields."""
    yield from _reserved("systemReserved", kubelet.system_reserved)
    yield from _reserved("kubeReserved", kubelet.kube_reserved)
    yield from _amount("containerLogMaxSize", kubelet.container_log_max_size, least=1)
    yield from _cgroups(kubelet)
    yield from _enforcement(kubelet)
    yield from _reserved_cpus(kubelet)
    yield from _memory(kubelet)
    yield from _thresholds("evictionHard", kubelet.eviction_hard)
    yield from _thresholds("evictionSoft", kubelet.eviction_soft)
    yield from _thresholds("evictionMinimumReclaim", kubelet.eviction_minimum_reclaim)
    yield from _soft_grace(kubelet)


def _amount(path: str, text: str, least: int = 0) -> Iterator[Problem]:
    try:
        amount = quantity.parse(text)
    except ValueError as error:
        yield path, str(error)
        return
    if amount < quantity.from_value(least):
        yield path, f"must be {'positive' if least else 'at least 0'}, is {text!r}"


def _reserved(field: str, amounts: Mapping[str, str]) -> Iterator[Problem]:
    for name, text in amounts.items():
        if name not in _RESERVABLE and not name.startswith("hugepages-"):
            yield f"{field}.{name}", f"cannot be reserved; can be: {', '.join(_RESERVABLE)}, hugepages-SIZE"
        yield from _amount(f"{field}.{name}", text)


def _cgroups(kubelet: KubeletConfiguration) -> Iterator[Problem]:
    if kubelet.system_cgroups and not kubelet.cgroup_root:
        yield "systemCgroups", "needs cgroupRoot"
    for name in ("cgroupRoot", "systemReservedCgroup", "kubeReservedCgroup"):
        value = {
            "cgroupRoot": kubelet.cgroup_root,
            "systemReservedCgroup": kubelet.system_reserved_cgroup,
            "kubeReservedCgroup": kubelet.kube_reserved_cgroup,
        }[name]
        if ".." in value.split("/"):
            yield name, f"must not contain .., is {value!r}"


def _enforcement(kubelet: KubeletConfiguration) -> Iterator[Problem]:
    wanted = kubelet.enforce_node_allocatable
    if wanted and wanted != ("none",) and not kubelet.cgroups_per_qos:
        yield "enforceNodeAllocatable", "needs cgroupsPerQOS; without it say [none] or []"
    if "none" in wanted and len(wanted) > 1:
        yield "enforceNodeAllocatable", "none goes with nothing else"
    for token in wanted:
        if token not in _ENFORCEABLE:
            yield "enforceNodeAllocatable", f"{token!r} is not one of {', '.join(_ENFORCEABLE)}"
    for name, cgroup in (("system", kubelet.system_reserved_cgroup), ("kube", kubelet.kube_reserved_cgroup)):
        tokens = [token for token in (f"{name}-reserved", f"{name}-reserved-compressible") if token in wanted]
        if tokens and not cgroup:
            yield f"{name}ReservedCgroup", f"must be given when enforceNodeAllocatable has {tokens[0]}"
        if len(tokens) > 1:
            yield "enforceNodeAllocatable", f"{tokens[0]} and {tokens[1]} exclude each other"


def _reserved_cpus(kubelet: KubeletConfiguration) -> Iterator[Problem]:
    text = kubelet.reserved_system_cpus
    if not text:
        return
    if not _CPUSET.fullmatch(text):
        yield "reservedSystemCPUs", f"{text!r} is not a list of processors like 0-1,4"
    if kubelet.system_reserved_cgroup or kubelet.kube_reserved_cgroup:
        yield "reservedSystemCPUs", "cannot be used together with systemReservedCgroup or kubeReservedCgroup"


def _memory(kubelet: KubeletConfiguration) -> Iterator[Problem]:
    factor = kubelet.memory_throttling_factor
    if factor is not None and not 0 < factor <= 1:
        yield "memoryThrottlingFactor", f"must be greater than 0 and at most 1, is {factor:g}"
    if kubelet.memory_swap.swap_behavior and not kubelet.feature_gates.get("NodeSwap", True):
        yield "memorySwap.swapBehavior", "needs the feature gate NodeSwap"
    if kubelet.reserved_memory and kubelet.memory_manager_policy == "None":
        yield "reservedMemory", "needs memoryManagerPolicy Static"
    for index, entry in enumerate(kubelet.reserved_memory):
        for name, text in entry.limits.items():
            yield from _amount(f"reservedMemory[{index}].limits.{name}", text, least=1)


def _thresholds(field: str, thresholds: Mapping[str, str]) -> Iterator[Problem]:
    for signal, text in thresholds.items():
        path = f"{field}.{signal}"
        if signal not in SIGNALS:
            yield path, f"unknown eviction signal; known: {', '.join(SIGNALS)}"
        elif text.endswith("%"):
            yield from _percentage(path, text)
        else:
            yield from _amount(path, text)


def _percentage(path: str, text: str) -> Iterator[Problem]:
    if not _PERCENT.fullmatch(text):
        yield path, f"{text!r} is neither a percentage nor a quantity"
    elif not 0 <= float(text[:-1]) <= 100:
        yield path, f"must be between 0% and 100%, is {text}"


def _soft_grace(kubelet: KubeletConfiguration) -> Iterator[Problem]:
    for signal, text in kubelet.eviction_soft_grace_period.items():
        path = f"evictionSoftGracePeriod.{signal}"
        if signal not in SIGNALS:
            yield path, "unknown eviction signal"
        try:
            if parse_duration(text) < 0:
                yield path, "must not be negative"
        except ValueError as error:
            yield path, str(error)
    for signal in kubelet.eviction_soft:
        if signal not in kubelet.eviction_soft_grace_period:
            yield f"evictionSoft.{signal}", "needs a period in evictionSoftGracePeriod"
