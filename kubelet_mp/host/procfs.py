"""What /proc, /sys and /etc tell about the machine (psutil where it knows)."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from kubelet_mp.host.files import FileError, read_text

_LIMIT = 64 * 1024
_HUGE = re.compile(r"hugepages-(\d+)kB")


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine as capacity sees it. Memory, swap and huge pages (page size → total) in bytes."""

    cpus: int
    memory: int
    swap: int
    max_pids: int
    huge_pages: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the machine is; "" for what cannot be told."""

    machine_id: str
    system_uuid: str
    boot_id: str
    kernel_version: str
    os_image: str
    architecture: str  # Go's name: amd64, arm64 …
    operating_system: str = "linux"


_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}


def machine(proc: str = "/proc", sys: str = "/sys") -> Machine:
    """The sizes of the machine now. Raises FileError if /proc cannot be read."""
    return Machine(
        cpus=psutil.cpu_count(logical=True) or os.cpu_count() or 1,
        memory=psutil.virtual_memory().total,
        swap=psutil.swap_memory().total,
        max_pids=max_pids(proc),
        huge_pages=huge_pages(f"{sys}/kernel/mm/hugepages"),
    )


def max_pids(proc: str = "/proc") -> int:
    """The most processes and threads that the kernel lets exist at once."""
    limits = (_first_line(f"{proc}/sys/kernel/{name}") for name in ("pid_max", "threads-max"))
    return min((int(text) for text in limits if text.isdigit()), default=32768)


def huge_pages(root: str = "/sys/kernel/mm/hugepages") -> dict[int, int]:
    """Page size in bytes → bytes reserved in pages of that size; empty where the kernel has none."""
    found = {}
    for entry in sorted(os.listdir(root)) if os.path.isdir(root) else ():
        match = _HUGE.fullmatch(entry)
        if match:
            size = int(match[1]) * 1024
            found[size] = size * int(_first_line(f"{root}/{entry}/nr_hugepages") or 0)
    return found


def identity(root: str = "/") -> Identity:
    """The machine's ids and names, from files below `root`."""
    base = Path(root)
    return Identity(
        machine_id=_any_line(base / "etc/machine-id", base / "var/lib/dbus/machine-id"),
        system_uuid=_any_line(base / "sys/class/dmi/id/product_uuid", base / "etc/machine-id"),
        boot_id=_first_line(base / "proc/sys/kernel/random/boot_id"),
        kernel_version=_first_line(base / "proc/sys/kernel/osrelease") or platform.release(),
        os_image=os_image(base),
        architecture=_ARCHITECTURES.get(platform.machine(), platform.machine()),
    )


def os_image(root: Path) -> str:
    """PRETTY_NAME of os-release, "Linux" without one."""
    for name in ("etc/os-release", "usr/lib/os-release"):
        for line in _text(root / name).splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "PRETTY_NAME":
                return value.strip().strip("\"'")
    return "Linux"


def filesystem_size(path: str) -> int:
    """Bytes of the filesystem that holds `path`, as df counts them. Raises OSError."""
    return psutil.disk_usage(path).total


def boot_time() -> float:
    """Seconds since the epoch at which the kernel started, as its own count tells."""
    return psutil.boot_time()


def _any_line(*paths: Path) -> str:
    return next(filter(None, map(_first_line, paths)), "")


def _first_line(path: str | Path) -> str:
    return _text(path).partition("\n")[0].strip()


def _text(path: str | Path) -> str:
    try:
        return read_text(path, _LIMIT)
    except FileError:
        return ""
