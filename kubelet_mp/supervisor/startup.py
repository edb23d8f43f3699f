"""From settings to a running supervisor: the lock, the root directory, the process's own limits, the fork."""

from __future__ import annotations

import fcntl
import gc
import importlib
import os
import resource
import time
from pathlib import Path

from setproctitle import setproctitle

from kubelet_mp import log
from kubelet_mp.config import Settings, kubeconfig, preflight
from kubelet_mp.errors import LockedError, StartError
from kubelet_mp.host import facts
from kubelet_mp.model import clock
from kubelet_mp.supervisor.loop import ReadAgain, Supervisor

LOCK_PATIENCE = 2.0
_log = log.get("supervisor")


def serve(settings: Settings, read_again: ReadAgain) -> int:
    """Run the agent until it is told to stop. Returns the exit code; raises BootError if it cannot start.

    read_again: gives the settings anew at a reload; raises BootError.
    """
    refuse_unfit(settings)
    make_root(settings.root_dir)
    locks = [take_lock(Path(path)) for path in (settings.instance_lock, settings.lock_file) if path]
    try:
        raise_limits(settings.kubelet.max_open_files)
        set_oom_score(settings.kubelet.oom_score_adj)
        setproctitle("kubelet-mp: supervisor")
        from kubelet_mp.rooms.registry import ROOMS  # imported once, here, and shared by every room's pages

        if not settings.standalone:
            importlib.import_module("kubelet_mp.host.kubeapi")
        gc.collect()
        gc.freeze()
        return Supervisor(settings, ROOMS, read_again=lambda: fit(read_again())).run()
    finally:
        for lock in locks:
            os.close(lock)


def fit(settings: Settings) -> Settings:
    refuse_unfit(settings)
    return settings


def refuse_unfit(settings: Settings) -> None:
    """Raise ConfigError, with every reason at once, when the configuration cannot be honoured on this host."""
    if settings.kubeconfig:
        kubeconfig.check_either(settings.kubeconfig, settings.bootstrap_kubeconfig)
    found = facts.cgroups()
    preflight.raise_all(
        preflight.at_start(
            settings,
            swaps=facts.active_swaps(),
            version=found.version,
            controllers=found.controllers,
            cfs_period=found.cfs_period,
        )
    )
    for warning in preflight.without_effect(settings):
        _log.warning(warning)


def make_root(root: str) -> None:
    """Make the root directory with the modes of the kubelet. Raises StartError."""
    try:
        os.makedirs(root, mode=0o750, exist_ok=True)
        for name in ("pods", "plugins", "plugins_registry"):
            os.makedirs(os.path.join(root, name), mode=0o750, exist_ok=True)
    except OSError as error:
        raise StartError(f"cannot make the root directory {root}: {error.strerror}",
                         "choose another --root-dir or free the path") from error


def take_lock(path: Path) -> int:
    """flock the instance lock; the kernel drops it with the last process that holds the descriptor.

    The rooms of a supervisor that was killed hold it for the moment that they need to die: so try for
    LOCK_PATIENCE s. Raises LockedError when another instance has it.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = clock.monotonic() + LOCK_PATIENCE
    while not _try_lock(fd):
        if clock.monotonic() > deadline:
            owner = os.read(fd, 32).decode("ascii", "replace").strip()
            os.close(fd)
            raise LockedError(f"another kubelet-mp (pid {owner or 'unknown'}) holds the lock {path}",
                              "stop it, or give this one another --root-dir (and --lock-file)")
        time.sleep(0.05)
    os.ftruncate(fd, 0)
    os.write(fd, f"{os.getpid()}\n".encode())
    return fd


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def raise_limits(wanted: int) -> None:
    """Open files as far as the hard limit and our capabilities allow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
        if hard < wanted:
            _log.warning("maxOpenFiles is above the hard limit", wanted=wanted, limit=hard)


def set_oom_score(score: int) -> None:
    """Our own oom_score_adj; without CAP_SYS_RESOURCE the kernel refuses to lower it."""
    try:
        Path("/proc/self/oom_score_adj").write_text(str(score))
    except OSError as error:
        _log.warning("cannot set our own oom_score_adj", wanted=score, err=error.strerror,
                     fix="run with CAP_SYS_RESOURCE, or set oomScoreAdj to the value that the process has")
