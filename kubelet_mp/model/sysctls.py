"""Which sysctls a pod may set: the safe ones of this kernel, and what allowedUnsafeSysctls adds.

Source: Kubernetes 1.37 pkg/kubelet/sysctl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SAFE_SINCE: Mapping[str, tuple[int, int]] = {  # name → first kernel that keeps it per namespace
    "kernel.shm_rmid_forced": (0, 0),
    "net.ipv4.ip_local_port_range": (0, 0),
    "net.ipv4.tcp_syncookies": (0, 0),
    "net.ipv4.ping_group_range": (0, 0),
    "net.ipv4.ip_unprivileged_port_start": (0, 0),
    "net.ipv4.ip_local_reserved_ports": (3, 16),
    "net.ipv4.tcp_keepalive_time": (4, 5),
    "net.ipv4.tcp_fin_timeout": (4, 6),
    "net.ipv4.tcp_keepalive_intvl": (4, 5),
    "net.ipv4.tcp_keepalive_probes": (4, 5),
    "net.ipv4.tcp_rmem": (4, 15),
    "net.ipv4.tcp_wmem": (4, 15),
    "net.ipv4.tcp_slow_start_after_idle": (4, 15),
    "net.ipv4.tcp_notsent_lowat": (4, 6),
}
_SHARED = {"net.": ("hostNetwork", "net"), "kernel.shm": ("hostIPC", "ipc"), "kernel.msg": ("hostIPC", "ipc"),
           "kernel.sem": ("hostIPC", "ipc"), "fs.mqueue.": ("hostIPC", "ipc")}


def forbidden(name: str, spec: Mapping[str, Any], kernel: tuple[int, int], unsafe: Sequence[str]) -> str:
    """Why a pod with this spec may not set the sysctl, "" if it may. `unsafe`: names, or prefixes with a *."""
    name = dotted(name)
    since = SAFE_SINCE.get(name)
    safe = since is not None and kernel >= since
    if not safe and not any(_allows(pattern, name) for pattern in unsafe):
        return f'"{name}" not allowlisted'
    flag, namespace = next((value for prefix, value in _SHARED.items() if name.startswith(prefix)), ("", ""))
    return f'"{name}" not allowed with host {namespace} enabled' if flag and spec.get(flag) else ""


def dotted(name: str) -> str:
    """A sysctl name with dots between its parts; in a name with slashes, dots belong to the parts."""
    first = next((c for c in name if c in "./"), ".")
    return name if first == "." else name.translate(str.maketrans("./", "/."))


def _allows(pattern: str, name: str) -> bool:
    plain = dotted(pattern)
    return name.startswith(plain[:-1]) if plain.endswith("*") else name == plain
