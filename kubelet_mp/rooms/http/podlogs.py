"""Serving container logs: finding the file, a bound on how many streams there are, and noticing who has gone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kubelet_mp.errors import HostError, RuntimeCallError, RuntimeNotFound, RuntimeUnavailable
from kubelet_mp.host.logfiles import LogOptions, open_log, read_log
from kubelet_mp.host.logfollow import Follower
from kubelet_mp.model import clock
from kubelet_mp.rooms.http import logquery
from kubelet_mp.rooms.http.logquery import LogRequestError
from kubelet_mp.rooms.http.state import State
from kubelet_mp.rooms.http.waiting import DirectoryWaiter

MAX_STREAMS = 48  # of the worker's threads; the others stay for everything else
RUNTIME_RECHECK = 10.0  # s for which the pod's status is believed that says the container runs


@dataclass(frozen=True, slots=True)
class Located:
    """What the runtime says of a container: where its log is and whether it runs."""

    log_path: str
    running: bool


class LogStream:
    """An answer on its way; `close` must be called once, also if it was never read."""

    def __init__(self, chunks: Iterator[bytes], release: Callable[[], None]) -> None:
        self.chunks, self._release = chunks, release

    def close(self) -> None:
        release, self._release = self._release, lambda: None
        release()


class PodLogs:
    """`locate` asks the runtime (raises RuntimeCallError); `stop_fd` is readable once the room stops."""

    def __init__(self, state: State, locate: Callable[[str], Located], stop_fd: int) -> None:
        self._state, self._locate, self._stop_fd = state, locate, stop_fd
        self._slots = threading.BoundedSemaphore(MAX_STREAMS)

    def open(
        self, namespace: str, pod: str, container: str, query: Mapping[str, Sequence[str]], client_fd: int
    ) -> LogStream:
        """The log asked for. Raises LogRequestError with the status and body to answer."""
        options, previous = logquery.options(query, clock.wall_time_ns())
        view = self._state.pod(namespace, pod)
        if view is None:
            raise LogRequestError(404, f'pod "{pod}" does not exist')
        found = view.pod()
        if not logquery.has_container(found, container):
            raise LogRequestError(404, f'container "{container}" not found in pod "{pod}"')
        container_id = logquery.choose(found, container, previous)
        if not self._slots.acquire(blocking=False):
            raise LogRequestError(429, f"{MAX_STREAMS} log streams are open already; close one and try again")
        try:
            return LogStream(self._chunks(view.uid, container_id, options, client_fd), self._slots.release)
        except BaseException:
            self._slots.release()
            raise

    def _chunks(self, uid: str, container_id: str, options: LogOptions, client_fd: int) -> Iterator[bytes]:
        try:
            located = self._locate(container_id)
            source = open_log(located.log_path)
        except (RuntimeCallError, HostError) as error:
            raise LogRequestError(400, error.message) from error
        if not options.follow:
            return read_log(source, options)
        return self._follow(located.log_path, source, options, uid, container_id, client_fd)

    def _follow(self, path, source, options, uid, container_id, client_fd) -> Iterator[bytes]:  # type: ignore[no-untyped-def]
        running = self._running(uid, container_id)
        with DirectoryWaiter(path, client_fd, self._stop_fd) as waiter:
            yield from Follower(path, source, options, waiter, running).chunks()

    def _running(self, uid: str, container_id: str) -> Callable[[], bool]:
        """Asks the runtime only when the pod's status does not say so, or has said so for some time."""
        asked = 0.0

        def running() -> bool:
            nonlocal asked
            view, now = self._state.by_uid(uid), clock.monotonic()
            if view and now - asked < RUNTIME_RECHECK and logquery.is_running(view.pod(), container_id):
                return True
            asked = now
            return self._runs(container_id)

        return running

    def _runs(self, container_id: str) -> bool:
        try:
            return self._locate(container_id).running
        except RuntimeUnavailable:
            return True  # it lives on while the runtime restarts
        except RuntimeNotFound:
            return False
        except RuntimeCallError:
            return True
