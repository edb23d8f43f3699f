"""How a log stream waits: for its directory, for its client to leave, for the room to stop."""

from __future__ import annotations

import os
import select
from types import TracebackType

from kubelet_mp.host.inotify import Growth, WatchError

_GONE = select.POLLHUP | select.POLLERR | select.POLLRDHUP | select.POLLNVAL
_BLIND_RECHECK = 0.2  # s between looks where inotify is not to be had


class DirectoryWaiter:
    """A logfollow.Waiter. client_fd: the client's socket, -1 for none; stop_fd: readable when all shall end."""

    def __init__(self, log_path: str, client_fd: int, stop_fd: int) -> None:
        self._client, self._stop = client_fd, stop_fd
        self._watcher = _watch(os.path.dirname(os.path.realpath(log_path)))
        self._ends = select.poll()
        self._any = select.poll()
        for poll in (self._ends, self._any):
            poll.register(stop_fd, select.POLLIN)
            if client_fd >= 0:
                poll.register(client_fd, select.POLLRDHUP)
        if self._watcher is not None:
            self._any.register(self._watcher.fileno(), select.POLLIN)

    def changed(self, seconds: float) -> bool:
        if self._watcher is None:
            return self.pause(min(seconds, _BLIND_RECHECK))
        ready = dict(self._any.poll(seconds * 1000))
        if self._watcher.fileno() in ready:
            self._watcher.drain()
        return not self._ended(ready)

    def pause(self, seconds: float) -> bool:
        return not self._ended(dict(self._ends.poll(seconds * 1000)))

    def _ended(self, ready: dict[int, int]) -> bool:
        return self._stop in ready or bool(ready.get(self._client, 0) & _GONE)

    def __enter__(self) -> DirectoryWaiter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._watcher is not None:
            self._watcher.close()


def _watch(directory: str) -> Growth | None:
    try:
        return Growth(directory)
    except WatchError:
        return None  # no more instances or watches: look now and then instead
