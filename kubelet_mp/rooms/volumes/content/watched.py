"""The strategy Watch: a watch of each single object, for as long as a pod needs it.

Source: Kubernetes 1.37 pkg/kubelet/util/manager (watch based manager).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from kubelet_mp.errors import ApiError
from kubelet_mp.rooms.volumes.content.collection import stop_aside
from kubelet_mp.rooms.volumes.content.keys import Json, Key, Watch, slim

PATIENCE = 10.0  # s that a first list may take


MakeWatch = Callable[[Key, Callable[[list[Json]], None], Callable[[str, Json], None], Callable[[str], None]], Watch]
"""Key, on_list, on_event, on_problem → a watch that is not started yet. May raise ApiError."""


@dataclass(slots=True)
class _Entry:
    """One object. known: it was listed (`found` None: it does not exist). failed: a `get` ended in an error.

    fixed: it is immutable and not watched any more.
    """

    users: set[str] = field(default_factory=set)
    watch: Watch | None = None
    known: bool = False
    found: Json | None = None
    problem: str = ""
    failed: bool = False
    fixed: bool = False


class Watched:
    """`changed` is called, from any thread, with the key of an object that became another or came to be known."""

    def __init__(self, make: MakeWatch, changed: Callable[[Key], None], *, patience: float = PATIENCE) -> None:
        self._make, self._changed, self._patience = make, changed, patience
        self._news = threading.Condition()
        self._entries: dict[Key, _Entry] = {}
        self._held: dict[str, frozenset[Key]] = {}

    # ---- who needs what ----

    def hold(self, uid: str, keys: frozenset[Key]) -> None:
        with self._news:
            before = self._held.pop(uid, frozenset())
            if keys:
                self._held[uid] = keys
            for key in keys - before:
                self._entries.setdefault(key, _Entry()).users.add(uid)
            unused = [self._leave(uid, key) for key in before - keys]
            self._news.notify_all()
        stop_aside(watch for watch in unused if watch is not None)

    def drop(self, uid: str) -> None:
        self.hold(uid, frozenset())

    def close(self) -> None:
        with self._news:
            entries, self._entries, self._held = self._entries, {}, {}
        stop_aside(entry.watch for entry in entries.values() if entry.watch is not None)

    def _leave(self, uid: str, key: Key) -> Watch | None:
        """The watch that nobody needs any more."""
        entry = self._entries[key]
        entry.users.discard(uid)
        if entry.users:
            return None
        del self._entries[key]
        return entry.watch

    # ---- reading ----

    def get(self, key: Key) -> Json | None:
        with self._news:
            entry = self._entries.get(key)
            if entry is None:
                raise ApiError(f'{key.kind} "{key.name}" is not watched: no pod needs it any more')
            self._watch(key, entry)
            self._news.wait_for(lambda: entry.known or entry.problem or not entry.users, self._patience)
            if entry.known:
                return entry.found
            entry.failed = True
            raise ApiError(entry.problem or f"failed to sync {key.kind} cache: timed out waiting for the condition")

    def _watch(self, key: Key, entry: _Entry) -> None:
        if entry.watch is not None or entry.fixed:
            return
        entry.watch = self._make(
            key, lambda items: self._set(key, entry, items[0] if items else None),
            lambda kind, found: self._set(key, entry, None if kind == "DELETED" else found),
            lambda problem: self._ail(key, entry, problem))
        entry.watch.start()

    # ---- what watches tell, in their threads ----

    def _set(self, key: Key, entry: _Entry, found: Json | None) -> None:
        kept = slim(found) if found is not None else None
        done: Watch | None = None
        with self._news:
            news = entry.failed or (entry.known and kept != entry.found)
            entry.known, entry.found, entry.failed, entry.problem = True, kept, False, ""
            if kept and kept.get("immutable"):
                done, entry.watch, entry.fixed = entry.watch, None, True
            self._news.notify_all()
        if done is not None:
            done.stop()
        if news:
            self._changed(key)

    def _ail(self, key: Key, entry: _Entry, problem: str) -> None:
        with self._news:
            entry.problem = problem
            self._news.notify_all()
