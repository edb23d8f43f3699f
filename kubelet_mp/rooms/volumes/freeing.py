"""Taking down the volumes of stopped pods, each in a thread of its own, again until it is done."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from kubelet_mp import log
from kubelet_mp.errors import HostError
from kubelet_mp.rooms.timers import Timers
from kubelet_mp.rooms.volumes.dirs import Dirs
from kubelet_mp.rooms.volumes.takedown import free, remove_pod

FIRST, LONGEST = 0.1, 10.0  # s between two attempts
_log = log.get("volumes")


@dataclass(slots=True)
class _TakeDown:
    """`whole`: the pod's directory goes too. `told`: the problem that was told last."""

    whole: bool
    running: bool = False
    delay: float = FIRST
    told: str = ""


class TakeDowns:
    """Every method runs on the room's main thread.

    freed: (uid, problem) tells that it is done, or why not yet. post: run on the main thread.
    blocked: whether a set-up of that pod still runs; it ends with a call of `go_on`.
    """

    def __init__(
        self,
        dirs: Dirs,
        timers: Timers,
        *,
        freed: Callable[[str, str], None],
        post: Callable[[Callable[[], None]], None],
        blocked: Callable[[str], bool],
    ) -> None:
        self._dirs, self._timers = dirs, timers
        self._freed, self._post, self._blocked = freed, post, blocked
        self._jobs: dict[str, _TakeDown] = {}

    def begin(self, uid: str, *, whole: bool) -> None:
        """Free the pod's volumes (`whole`: and remove its directory); a job under way goes on."""
        job = self._jobs.get(uid)
        if job is not None:
            job.whole = job.whole or whole
            return
        self._jobs[uid] = _TakeDown(whole)
        self.go_on(uid)

    def cancel(self, uid: str) -> bool:
        """The pod is wanted again. False while the take-down runs: it then ends with `freed`."""
        job = self._jobs.get(uid)
        if job is None or not job.running:
            self._jobs.pop(uid, None)
            return True
        job.whole = False
        return False

    def has(self, uid: str) -> bool:
        return uid in self._jobs

    def go_on(self, uid: str) -> None:
        """Make an attempt now, unless one runs or a set-up is in the way."""
        job = self._jobs.get(uid)
        if job is None or job.running or self._blocked(uid):
            return
        job.running = True
        whole = job.whole
        threading.Thread(target=self._work, args=(uid, whole), name=f"free-{uid}", daemon=True).start()

    def _work(self, uid: str, whole: bool) -> None:
        problem = ""
        try:
            if whole:
                remove_pod(self._dirs, uid)
            else:
                free(self._dirs, uid)
        except HostError as error:
            problem = str(error)
        except OSError as error:
            problem = f"{error.filename or uid}: {error.strerror}"
        self._post(lambda: self._come_back(uid, whole, problem))

    def _come_back(self, uid: str, whole: bool, problem: str) -> None:
        job = self._jobs[uid]
        job.running = False
        if problem:
            self._try_later(uid, job, problem)
        elif job.whole and not whole:
            self.go_on(uid)
        else:
            del self._jobs[uid]
            self._freed(uid, "")

    def _try_later(self, uid: str, job: _TakeDown, problem: str) -> None:
        if problem != job.told:
            job.told = problem
            _log.warning("volumes not taken down", uid=uid, err=problem)
            self._freed(uid, problem)
        delay, job.delay = job.delay, min(2 * job.delay, LONGEST)
        self._timers.after(delay, lambda: self.go_on(uid) if self._jobs.get(uid) is job else None)
