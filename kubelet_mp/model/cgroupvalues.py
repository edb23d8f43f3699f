"""CgroupValues as control files and their texts, for cgroup v1 and v2, and when two texts mean the same."""

from __future__ import annotations

from dataclasses import dataclass

from kubelet_mp.model.cpushares import cpu_weight
from kubelet_mp.model.resources import CgroupValues

DEFAULT_PERIOD = 100_000  # µs
PAGE = 4096
UNLIMITED_V1 = 1 << 62  # what v1 prints for "no limit" is just below 2^63, whatever the page size


@dataclass(frozen=True, slots=True)
class Setting:
    """One text for one control file. `optional`: kernels without the file are served too."""

    controller: str
    file: str
    text: str
    optional: bool = False


def settings(values: CgroupValues, version: int) -> list[Setting]:
    """The control files to write, in the order in which the kernel takes them."""
    return _unified(values) if version == 2 else _legacy(values)


def _legacy(values: CgroupValues) -> list[Setting]:
    found = []
    if values.cpu_shares is not None:
        found.append(Setting("cpu", "cpu.shares", str(values.cpu_shares)))
    if values.cpu_period:
        found.append(Setting("cpu", "cpu.cfs_period_us", str(values.cpu_period)))
    if values.cpu_quota is not None:
        found.append(Setting("cpu", "cpu.cfs_quota_us", str(values.cpu_quota)))
    if values.memory_max is not None:
        found.append(Setting("memory", "memory.limit_in_bytes", str(values.memory_max)))
    if values.pids_max is not None:
        found.append(Setting("pids", "pids.max", str(values.pids_max)))
    found += [Setting("hugetlb", f"hugetlb.{size}.limit_in_bytes", str(limit), optional=True)
              for size, limit in values.hugetlb.items()]
    return found


def _unified(values: CgroupValues) -> list[Setting]:
    found = []
    if values.cpu_shares is not None:
        found.append(Setting("cpu", "cpu.weight", str(cpu_weight(values.cpu_shares))))
    if values.cpu_quota is not None or values.cpu_period:
        quota = "max" if values.cpu_quota is None or values.cpu_quota < 0 else str(values.cpu_quota)
        found.append(Setting("cpu", "cpu.max", f"{quota} {values.cpu_period or DEFAULT_PERIOD}"))
    if values.memory_max is not None:
        found.append(Setting("memory", "memory.max", str(values.memory_max)))
    if values.pids_max is not None:
        found.append(Setting("pids", "pids.max", str(values.pids_max)))
    for size, limit in values.hugetlb.items():
        found.append(Setting("hugetlb", f"hugetlb.{size}.max", str(limit), optional=True))
        found.append(Setting("hugetlb", f"hugetlb.{size}.rsvd.max", str(limit), optional=True))
    found += [Setting(file.partition(".")[0], file, text, optional=True)
              for file, text in values.unified.items()]
    return found


def same(file: str, now: str, wanted: str) -> bool:
    """Whether a control file that reads `now` needs no writing of `wanted`.

    The kernel keeps memory in whole pages, cut, and shows "no limit" in its own ways.
    """
    if now == wanted:
        return True
    if not file.startswith(("memory.", "hugetlb.")):
        return False
    return _amount(now) == _amount(wanted)


def _amount(text: str) -> int | None:
    """Whole pages of a text; None for no limit."""
    if text in ("max", "-1"):
        return None
    if not text.isdigit():
        return -1
    return None if int(text) >= UNLIMITED_V1 else int(text) // PAGE
