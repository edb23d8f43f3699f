"""A whole collection of the API server, watched while a pod needs something of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from kubelet_mp.errors import ApiError
from kubelet_mp.rooms.volumes.content.keys import Json, Watch

PATIENCE = 10.0  # s that a first list may take

Begin = Callable[[Callable[[list[Json]], None], Callable[[str, Json], None], Callable[[str], None]], Watch]
"""on_list, on_event, on_problem → a watch that is not started yet. May raise ApiError, and ask the API server."""


class Collection:
    """`slim` makes of an object what is kept of it; `changed` gets the object that came, changed or went, and None
    for a list. Thread-safe; `changed` is called from the watch's thread.
    """

    def __init__(self, what: str, begin: Begin, slim: Callable[[Json], Any], changed: Callable[[Json | None], None],
                 *, patience: float = PATIENCE) -> None:
        self._what, self._begin, self._slim, self._changed, self._patience = what, begin, slim, changed, patience
        self._news = threading.Condition()
        self._opening = threading.Lock()
        self._users: set[str] = set()
        self._watch: Watch | None = None
        self._found: dict[tuple[str, str], Any] | None = None
        self._problem = ""

    def hold(self, uid: str, needed: bool) -> None:
        """The pod needs the collection from now on, or no more."""
        with self._news:
            (self._users.add if needed else self._users.discard)(uid)
            watch = None if self._users else self._forget()
        stop_aside([watch] if watch else ())

    def close(self) -> None:
        with self._news:
            self._users.clear()
            watch = self._forget()
        stop_aside([watch] if watch else ())

    def items(self) -> dict[tuple[str, str], Any]:
        """(namespace, name) → what is kept. Begins to watch; waits for the first list. Raises ApiError."""
        self._open()
        with self._news:
            self._news.wait_for(lambda: self._found is not None or self._problem or not self._users, self._patience)
            if self._found is None:
                raise ApiError(self._problem or f"the {self._what} were not listed within {self._patience:.0f} s")
            return dict(self._found)

    def _open(self) -> None:
        with self._opening:
            if self._watch is not None:
                return
            made = self._begin(self._take_list, self._take, self._ail)
            with self._news:
                if not self._users:
                    raise ApiError(f"the {self._what} are not watched: no pod needs them any more")
                self._watch, self._problem = made, ""
            made.start()

    def _forget(self) -> Watch | None:
        watch, self._watch, self._found, self._problem = self._watch, None, None, ""
        self._news.notify_all()
        return watch

    # ---- what the watch tells, in its thread ----

    def _take_list(self, items: list[Json]) -> None:
        found = {_name(item): self._slim(item) for item in items}
        with self._news:
            news = self._found is None or self._found != found
            self._found, self._problem = found, ""
            self._news.notify_all()
        if news:
            self._changed(None)

    def _take(self, kind: str, item: Json) -> None:
        with self._news:
            if self._found is None:
                return
            if kind == "DELETED":
                self._found.pop(_name(item), None)
            else:
                self._found[_name(item)] = self._slim(item)
        self._changed(item)

    def _ail(self, problem: str) -> None:
        with self._news:
            self._problem = problem
            self._news.notify_all()


def _name(item: Json) -> tuple[str, str]:
    return item["metadata"].get("namespace") or "", item["metadata"]["name"]


def stop_aside(watches: Iterable[Watch]) -> None:
    """Stopping waits for the watch's thread, which may be about to take our lock."""
    found = list(watches)

    def stop() -> None:
        for watch in found:
            watch.stop()

    if found:
        threading.Thread(target=stop, name="unwatch", daemon=True).start()
