"""Huge page resources and the kernel's names of the sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubelet_mp.model import quantity
from kubelet_mp.model.requests import HUGEPAGES

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")
UNLIMITED = 1 << 62


def kernel_size(page_bytes: int) -> str:
    """How cgroup files name a page size, e.g. 2097152 → "2MB"."""
    units = 0
    while page_bytes % 1024 == 0 and page_bytes >= 1024 and units < len(_UNITS) - 1:
        page_bytes, units = page_bytes // 1024, units + 1
    return f"{page_bytes}{_UNITS[units]}"


def limits_by_size(amounts: Mapping[str, int], page_sizes: Iterable[int]) -> dict[str, int]:
    """Bytes allowed of each page size of the node, 0 where `amounts` (resource name → bytes) has none."""
    given = {
        kernel_size(quantity.value(name.removeprefix(HUGEPAGES))): limit
        for name, limit in amounts.items()
        if name.startswith(HUGEPAGES)
    }
    return {size: given.get(size, 0) for size in map(kernel_size, sorted(page_sizes))}


def unlimited(page_sizes: Iterable[int]) -> dict[str, int]:
    return {kernel_size(size): UNLIMITED for size in sorted(page_sizes)}
