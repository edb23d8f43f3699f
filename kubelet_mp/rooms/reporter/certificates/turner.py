"""A thread that takes turns at something until it is told to end."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from kubelet_mp.errors import KubeletError
from kubelet_mp.log import Logger
from kubelet_mp.rooms.reporter.certificates import plan


class Ended(Exception):
    """The thread was told to end while it waited."""


class Turner:
    """`turn` works and gives the seconds until it is called again; `wake` has it called earlier.

    failed: called after each turn that raised KubeletError, which is tried again ever later. What else a turn
    raises is given to `crashed`, and ends the thread.
    """

    def __init__(
        self, name: str, turn: Callable[[], float], log: Logger, *, failed: Callable[[], None],
        crashed: Callable[[BaseException], None], retry: Callable[[int, float], float] = plan.retry_after,
    ) -> None:
        self._retry = retry
        self._name, self._turn, self._log, self._failed, self._crashed = name, turn, log, failed, crashed
        self._changed = threading.Condition()
        self._woken = self._ending = False
        self._failures, self._said = 0, ""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def close(self, patience: float = 0.5) -> None:
        """`patience`: seconds to wait for a call that is under way."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(patience)

    def pause(self, seconds: float) -> None:
        """For `turn`: wait. Raises Ended."""
        with self._changed:
            if self._changed.wait_for(lambda: self._ending, seconds):
                raise Ended

    def _run(self) -> None:
        try:
            while True:
                self._sleep(self._once())
        except Ended:
            return
        except BaseException as error:  # noqa: BLE001 - the edge of the thread: the main thread raises it again
            self._crashed(error)

    def _sleep(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._ending or self._woken, seconds)
            self._woken = False
            if self._ending:
                raise Ended

    def _once(self) -> float:
        try:
            pause = self._turn()
        except KubeletError as error:
            return self._after_failure(error)
        self._failures, self._said = 0, ""
        return pause

    def _after_failure(self, error: KubeletError) -> float:
        self._failures += 1
        self._failed()
        if error.message != self._said:  # said once, not every 32 s
            self._log.error(f"no new {self._name}", err=str(error))
            self._said = error.message
        return self._retry(self._failures, random.random())
