"""Says at once that something in a directory changed. What changed is for the caller to look up.

Events can be lost (queue overflow, network file systems, limits), so whoever uses this also looks at
intervals.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import threading
from collections.abc import Callable, Mapping
from typing import Any

from inotify_simple import INotify, flags

from kubelet_mp.errors import HostError

_MASK = (
    flags.CLOSE_WRITE | flags.MOVED_TO | flags.MOVED_FROM | flags.CREATE | flags.DELETE | flags.ATTRIB
    | flags.DELETE_SELF | flags.MOVE_SELF | flags.ONLYDIR
)
_FIXES = {
    errno.ENOSPC: "raise the sysctl fs.inotify.max_user_watches",
    errno.EMFILE: "raise the sysctl fs.inotify.max_user_instances",
}


class WatchError(HostError):
    """A directory cannot be watched."""


def _error(what: str, error: OSError) -> WatchError:
    return WatchError(f"cannot watch {what}: {error.strerror or error}", _FIXES.get(error.errno or 0))


class Watcher:
    """Calls `notify`, from a thread of its own, soon after something changed in a watched directory.

    A file that is being written counts as changed when it is closed. Raises WatchError if the kernel has no
    inotify instance left.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        self._lock = threading.Lock()
        self._watches: dict[int, tuple[str, str]] = {}  # descriptor → (directory, only this name or "")
        try:
            self._inotify = INotify(nonblocking=True)
        except OSError as error:
            raise _error("anything", error) from error
        self._wake_read, self._wake_write = os.pipe()
        self._thread = threading.Thread(target=self._run, name="inotify", daemon=True)
        self._thread.start()

    def watch(self, wanted: Mapping[str, str]) -> None:
        """Watch exactly these directories: path → the one name that matters there, or "" for all.

        Call it again after each change: a directory that was replaced is watched anew. Raises WatchError
        when one cannot be watched; the others are.
        """
        failed: OSError | None = None
        fresh: dict[int, tuple[str, str]] = {}
        with self._lock:
            for directory, name in wanted.items():
                try:
                    fresh[self._inotify.add_watch(directory, _MASK)] = (directory, name)
                except OSError as error:
                    failed = error
            for descriptor in self._watches.keys() - fresh.keys():
                with contextlib.suppress(OSError):  # the kernel dropped it together with the directory
                    self._inotify.rm_watch(descriptor)
            self._watches = fresh
        if failed is not None:
            raise _error(", ".join(wanted), failed) from failed

    def close(self) -> None:
        """End the thread and free the instance."""
        os.write(self._wake_write, b"x")
        self._thread.join(timeout=1.0)
        self._inotify.close()
        os.close(self._wake_read)
        os.close(self._wake_write)

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._inotify.fileno(), select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        while True:
            ready = [fd for fd, _ in poll.poll()]
            if self._wake_read in ready:
                return
            events = list(self._inotify.read(timeout=0))
            if any(self._matters(event) for event in events):
                self._notify()

    def _matters(self, event: Any) -> bool:
        if event.mask & flags.Q_OVERFLOW:
            return True
        with self._lock:
            directory, only = self._watches.get(event.wd, ("", ""))
        if not directory or (event.name and only and event.name != only):
            return False
        return not event.mask & flags.CREATE or self._complete(os.path.join(directory, event.name))

    @staticmethod
    def _complete(path: str) -> bool:
        """Whether what was just created is there as a whole (a link, a directory): no close will follow."""
        try:
            return os.path.islink(path) or os.path.isdir(path) or os.stat(path).st_nlink > 1
        except OSError:
            return True  # gone again


class Growth:
    """Readable, by its `fileno`, when something in a directory grew, appeared or was renamed.

    For one thread that polls; it costs no thread of its own. Raises WatchError.
    """

    def __init__(self, directory: str) -> None:
        try:
            self._inotify = INotify(nonblocking=True)
        except OSError as error:
            raise _error(directory, error) from error
        try:
            self._inotify.add_watch(directory, flags.MODIFY | flags.CREATE | flags.MOVED_TO | flags.ONLYDIR)
        except OSError as error:
            self._inotify.close()
            raise _error(directory, error) from error

    def fileno(self) -> int:
        return int(self._inotify.fileno())

    def drain(self) -> None:
        """Take what has been told, so that only news makes it readable again."""
        self._inotify.read(timeout=0)

    def close(self) -> None:
        self._inotify.close()
