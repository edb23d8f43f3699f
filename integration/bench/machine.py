"""What a figure needs to be understood: the machine and the versions, without names or places."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from integration.rig.cri import Cri


def describe(cri: Cri) -> list[str]:
    """One fact a line."""
    name, version = cri.version()
    memory = _found(r"MemTotal:\s+(\d+) kB", "/proc/meminfo")
    processor = _found(r"model name\s*:\s*(.+)", "/proc/cpuinfo") or platform.machine()
    system = _found(r'PRETTY_NAME="(.+)"', "/etc/os-release")
    return [
        f"{os.cpu_count()} cores: {processor}",
        f"{int(memory or 0) / 2**20:.0f} GiB of memory",
        f"{system}, Linux {_kernel()}, cgroup v{_cgroup_version()}",
        f"{name} {version}, one pod network (bridge), static busybox",
        f"Python {platform.python_version()}",
    ]


def _found(pattern: str, file: str) -> str:
    try:
        found = re.search(pattern, Path(file).read_text())
    except OSError:
        return ""
    return found.group(1).strip() if found else ""


def _kernel() -> str:
    """The release without what the builder of the kernel put behind it."""
    found = re.match(r"\d+\.\d+(\.\d+)?", platform.release())
    return found.group() if found else platform.release()


def _cgroup_version() -> int:
    return 2 if Path("/sys/fs/cgroup/cgroup.controllers").exists() else 1
