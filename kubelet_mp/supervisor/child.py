"""One child process: the only code that forks, kills and waits.

Children are watched by pidfd: a process sentinel stays silent while a grandchild lives, and a pid may be
used again.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass

from setproctitle import setproctitle

from kubelet_mp.model import clock

PR_SET_PDEATHSIG = 1
_HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(slots=True)
class Child:
    """A forked process; `started` is monotonic."""

    pid: int
    pidfd: int
    started: float

    def signal(self, number: int) -> None:
        """Send a signal; a child that is gone already is no error."""
        try:
            signal.pidfd_send_signal(self.pidfd, number)
        except ProcessLookupError:
            return

    def reap(self) -> str | None:
        """How the child ended ("exit 1", "SIGKILL"), or None while it lives."""
        result = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOHANG)
        if result is None:
            return None
        os.close(self.pidfd)
        return describe(result.si_code, result.si_status)


def describe(code: int, status: int) -> str:
    if code == os.CLD_EXITED:
        return f"exit {status}"
    try:
        return signal.Signals(status).name
    except ValueError:
        return f"signal {status}"


def fork(title: str, body: Callable[[int], int]) -> Child:
    """Run `body(parent_pid)` in a new process that dies with this one; its result is the exit code."""
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)  # or a signal for the child runs the parent's handler
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return Child(pid, os.pidfd_open(pid), clock.monotonic())
    code = 70  # EX_SOFTWARE, should `body` raise
    try:
        _become_child(title, parent)
        code = body(parent)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _become_child(title: str, parent: int) -> None:
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1):
        signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGHUP):  # meant for the supervisor, though the terminal tells us too
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it died before the line above
        os._exit(75)
    setproctitle(title)
    faulthandler.enable()  # SIGABRT prints every thread's stack
