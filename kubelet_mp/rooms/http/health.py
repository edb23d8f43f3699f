"""/healthz: the checks, and how their outcome is told. Source: k8s.io/apiserver/pkg/server/healthz (1.37)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from kubelet_mp.rooms.http.state import State

Check = Callable[[], str]  # what is wrong, "" when nothing is
PLAIN = "text/plain; charset=utf-8"
MIN_SYNC_SILENCE = 300.0  # s


def checks(state: State, sync_frequency: float) -> Mapping[str, Check]:
    """The kubelet's checks by name, in their order. sync_frequency in seconds."""
    limit = max(2 * sync_frequency, MIN_SYNC_SILENCE)

    def sync_loop() -> str:
        silent = state.silence("pods")
        return f"sync Loop took longer than expected: {silent:.0f} s" if silent > limit else ""

    return {"ping": lambda: "", "log": _log, "syncloop": sync_loop}


def _log() -> str:
    try:
        os.fstat(2)
    except OSError as error:
        return f"logging blocked: {error.strerror}"
    return ""


def all_checks(checks: Mapping[str, Check], verbose: bool, exclude: Sequence[str] = ()) -> tuple[int, str]:
    """(status, body) of /healthz."""
    lines, failed = [], False
    for name, check in checks.items():
        if name in exclude:
            lines.append(f"[+]{name} excluded: ok\n")
        elif check():
            failed = True
            lines.append(f"[-]{name} failed: reason withheld\n")
        else:
            lines.append(f"[+]{name} ok\n")
    if failed:
        return 500, "".join(lines) + "healthz check failed\n"
    return 200, "".join(lines) + "healthz check passed\n" if verbose else "ok"


def one_check(check: Check) -> tuple[int, str]:
    """(status, body) of /healthz/NAME."""
    problem = check()
    return (500, f"internal server error: {problem}\n") if problem else (200, "ok")
