"""What our own processes use, from /proc."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from kubelet_mp.host.files import FileError, read_text

_LIMIT = 64 * 1024
_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Usage:
    """`cpu` seconds used, those of reaped children included; `memory` bytes, shared pages counted in part;
    `started` seconds after the boot of the first process."""

    cpu: float
    memory: int
    started: float


def usage(pids: Iterable[int], proc: str = "/proc") -> Usage:
    """The sum over the processes that are there; the first one's children must be the others."""
    ticks, memory, started = 0, 0, 0
    for pid in pids:
        fields = _stat(pid, proc)
        if not fields:
            continue
        ticks += sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
        started = started or int(fields[19])
        memory += _pss(pid, proc)
    hertz = os.sysconf("SC_CLK_TCK")
    return Usage(ticks / hertz, memory, started / hertz)


def _stat(pid: int, proc: str) -> list[str]:
    """The fields of /proc/PID/stat from the state on (the name before may hold anything); [] if it is gone."""
    return _read(f"{proc}/{pid}/stat").rpartition(")")[2].split()


def _pss(pid: int, proc: str) -> int:
    match = _PSS.search(_read(f"{proc}/{pid}/smaps_rollup"))
    return int(match[1]) * 1024 if match else 0


def _read(path: str) -> str:
    try:
        return read_text(path, _LIMIT)
    except FileError:
        return ""
