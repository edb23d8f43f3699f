"""Keeps a collection of the API server in view: one list, then a watch that goes on where it left off.

It stores no objects. Lost connections are taken up at the last resourceVersion; only what the server no longer
knows is listed anew. Source: Kubernetes 1.37 k8s.io/client-go/tools/cache (Reflector).
"""

from __future__ import annotations

import contextlib
import json
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import requests
import urllib3

from kubelet_mp.errors import ApiError
from kubelet_mp.host.kubeapi import answers
from kubelet_mp.host.kubeapi.client import KubeApi
from kubelet_mp.model import clock

FIRST_WAIT, LONGEST_WAIT = 0.8, 30.0  # s
WATCH_SECONDS = (300.0, 600.0)  # s that a watch is asked to last, at random between these
QUIET = 130.0  # s without an event or a bookmark (they come each minute) after which the server counts as hung
SHORT = 1.0  # s: a watch that ends sooner, without an event, is a failure
LIST_TIMEOUT = 30.0  # s
EVENT_LIMIT = 64 << 20  # bytes of one event
_CHUNK = 64 * 1024

Json = dict[str, Any]


class Wait:
    """Seconds until the next try: twice as long each time, at random between half and all of it."""

    def __init__(self, roll: Callable[[], float] = random.random) -> None:
        self._roll = roll
        self._next = FIRST_WAIT

    def next(self, at_least: float | None = None) -> float:
        """`at_least`: what the server asked for."""
        seconds, self._next = self._next, min(self._next * 2, LONGEST_WAIT)
        return max(seconds * (0.5 + self._roll() / 2), min(at_least or 0.0, LONGEST_WAIT))

    def reset(self) -> None:
        self._next = FIRST_WAIT


class ListWatch:
    """Calls back from its own thread: `on_list` with all items, `on_event` (ADDED, MODIFIED, DELETED) with one,
    `on_problem` with what is wrong now, "" once all is well again.

    `path` and `params` (fieldSelector …) name the collection. `on_crash` gets an exception of a callback, which
    ends the watching; without it the thread dies with a traceback.
    """

    def __init__(
        self, api: KubeApi, path: str, *, params: Mapping[str, Any] | None = None,
        on_list: Callable[[list[Json]], None], on_event: Callable[[str, Json], None],
        on_problem: Callable[[str], None], name: str, on_crash: Callable[[BaseException], None] | None = None,
    ) -> None:
        self._api, self._path, self._params = api, path, dict(params or {})
        self._on_list, self._on_event, self._on_problem, self._on_crash = on_list, on_event, on_problem, on_crash
        self._wait = Wait()
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._stream: requests.Response | None = None
        self._version = ""  # "": to be listed
        self._listed = self._heard = self._relisting = False
        self._problem = ""
        self._thread = threading.Thread(target=self._work, name=f"watch-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End soon; no callback begins after this returned, unless the thread hangs in a request (a second)."""
        self._stopped.set()
        with self._lock:
            stream = self._stream
        if stream is not None:
            _interrupt(stream)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=1.0)

    # ---- the thread ----

    def _work(self) -> None:
        try:
            while not self._stopped.is_set():
                self._stopped.wait(self._turn())
        except BaseException as error:
            if self._on_crash is None:
                raise
            self._on_crash(error)

    def _turn(self) -> float:
        """List if need be, and watch until the watch ends. Returns the seconds until the next turn."""
        began, self._heard = clock.monotonic(), False
        try:
            if not self._version:
                self._list()
            began = clock.monotonic()
            self._watch()
        except ApiError as error:
            return self._failed(error)
        if self._heard or clock.monotonic() - began >= SHORT:
            self._well()
            return 0.0
        return self._wait.next()

    def _failed(self, error: ApiError) -> float:
        if error.status and error.status != 429:
            self._version = ""  # whatever the server has against the watch, a list starts from what it has
        if error.gone and not self._relisting:
            self._relisting = True
            return 0.0
        self._say(str(error))
        return self._wait.next(error.retry_after)

    def _well(self) -> None:
        self._wait.reset()
        self._relisting = False

    def _say(self, problem: str) -> None:
        if problem != self._problem and not self._stopped.is_set():
            self._problem = problem
            self._on_problem(problem)

    # ---- list ----

    def _list(self) -> None:
        """The first list may come from the server's cache; one that replaces a lost watch must be the newest."""
        version = None if self._listed else "0"
        found = self._api.get(self._path, timeout=LIST_TIMEOUT, resourceVersion=version, **self._params)
        if self._stopped.is_set():
            return
        self._on_list(whole_items(found))
        self._listed = True
        self._version = str((found.get("metadata") or {}).get("resourceVersion") or "0")

    # ---- watch ----

    def _watch(self) -> None:
        if self._stopped.is_set():
            return
        with self._opened() as stream:
            if self._stopped.is_set():  # stop() may have come too early to wake the reading below
                return
            self._say("")
            for line in _lines(stream):
                if self._stopped.is_set():
                    return
                self._take(line)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[requests.Response]:
        stream = self._api.stream(
            self._path, quiet=QUIET, watch=True, allowWatchBookmarks=True, resourceVersion=self._version,
            timeoutSeconds=int(random.uniform(*WATCH_SECONDS)), **self._params)
        with stream:
            with self._lock:
                self._stream = stream
            try:
                yield stream
            finally:
                with self._lock:
                    self._stream = None

    def _take(self, line: bytes) -> None:
        try:
            event = json.loads(line)
            kind, found = event["type"], event["object"]
            version = "" if kind == "ERROR" else str(found["metadata"]["resourceVersion"])
        except (ValueError, KeyError, TypeError) as error:
            raise ApiError(f"watching {self._path}: an event cannot be understood", status=500) from error
        if kind == "ERROR":
            self._version = ""
            raise answers.from_status(f"watching {self._path}", found)
        if kind != "BOOKMARK":
            self._on_event(kind, found)
        self._version, self._heard = version, True
        self._well()


def whole_items(found: Json) -> list[Json]:
    """The items of a list with the apiVersion and kind that each has where it is not in a list."""
    kind = str(found.get("kind") or "").removesuffix("List")
    version = found.get("apiVersion") or "v1"
    return [{"apiVersion": version, "kind": kind, **item} for item in found.get("items") or []]


def _lines(stream: requests.Response) -> Iterator[bytes]:
    """The lines of a stream as they come. A stream that breaks off ends: it is taken up again where it broke."""
    kept = bytearray()
    with contextlib.suppress(OSError, urllib3.exceptions.HTTPError):
        while chunk := stream.raw.read1(_CHUNK):
            kept += chunk
            if len(kept) > EVENT_LIMIT:
                raise ApiError("an event of the watch is too large")
            if b"\n" not in chunk:
                continue
            *whole, rest = bytes(kept).split(b"\n")
            kept = bytearray(rest)
            yield from filter(None, whole)


def _interrupt(stream: requests.Response) -> None:
    """Wake whoever reads the stream: it ends."""
    with contextlib.suppress(OSError, ValueError, RuntimeError, AttributeError):
        stream.raw.shutdown()
