"""Pods from a manifest file or a directory of them (--pod-manifest-path, staticPodPath).

Not recursive; names that start with a dot are skipped, whatever else their name is. A file is read again
only if its state changed. Source: Kubernetes 1.37 pkg/kubelet/config/file.go.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace

from kubelet_mp.host import files
from kubelet_mp.host.files import FileError, FileState, MissingFile
from kubelet_mp.host.inotify import Watcher, WatchError
from kubelet_mp.model.clock import SYSTEM, Clock, rfc3339_nano
from kubelet_mp.model.document import MAX_BYTES
from kubelet_mp.model.manifest import InvalidManifest, static_pods
from kubelet_mp.model.staticpod import Origin
from kubelet_mp.rooms.sources.settle import Kept, settle
from kubelet_mp.rooms.sources.source import Item, Reading, Source

RACY = 2.0  # s after a change in which the state of a file may not show the next one


@dataclass(frozen=True, slots=True)
class _Known:
    """What a file held when it was last read. `racy`: it may have changed again within the same tick."""

    state: FileState
    digest: bytes
    item: Item
    racy: bool


class FileSource(Source):
    """`notify` is called, from another thread, when it should be read soon; `period` in seconds."""

    name = "file"

    def __init__(
        self, path: str, node: str, period: float, notify: Callable[[], None], clock: Clock = SYSTEM,
        make_watcher: Callable[[Callable[[], None]], Watcher] = Watcher,
    ) -> None:
        self.path, self.period = os.path.normpath(path), period
        self._node, self._clock, self._notify, self._make_watcher = node, clock, notify, make_watcher
        self._known: dict[str, _Known] = {}
        self._kept: dict[str, Kept] = {}
        self._ready = False
        self._note = ""
        self._watcher: Watcher | None = None

    def read(self) -> Reading:
        self._watch()
        trouble = ""
        try:
            found = self._found()
        except MissingFile:
            found, self._known = [], {}
            trouble = "the manifest path does not exist: no static pods until it appears"
        except FileError as error:
            return self._as_before(str(error))
        self._ready = True
        settled = settle(self._kept, found, self._clock.monotonic())
        self._kept = settled.kept
        if trouble:  # unless it is a single file whose last content still counts for a moment
            settled.items.setdefault(self.path, Item(self.path, problem=trouble))
        return Reading(self.name, settled.items, True, self._note, settled.recheck)

    def close(self) -> None:
        if self._watcher is not None:
            self._watcher.close()

    def _as_before(self, problem: str) -> Reading:
        """The path is there but cannot be read: nothing is known to have changed."""
        items = {origin: kept.good for origin, kept in self._kept.items() if kept.good is not None}
        items[self.path] = replace(items.get(self.path, Item(self.path)), problem=problem)
        return Reading(self.name, items, self._ready, self._note)

    # ---- watching ----

    def _watch(self) -> None:
        """Watch what is there now; where that is impossible, say so and try again at the next turn."""
        try:
            if self._watcher is None:
                self._watcher = self._make_watcher(self._notify)
            self._watcher.watch(self._watched())
            self._note = ""
        except WatchError as error:
            self._note = f"changes are noticed only every {self.period:g} s: {error}"

    def _watched(self) -> dict[str, str]:
        """The directory itself; for a single file, or a path that is not there yet, the name above it."""
        if os.path.isdir(self.path):
            return {self.path: ""}
        parent, name = os.path.split(self.path)
        return {parent or ".": name} if os.path.isdir(parent or ".") else {}

    # ---- reading ----

    def _found(self) -> list[Item]:
        """One item a file, bad ones with their problem. Raises FileError where the path itself is bad."""
        state = files.file_state(self.path)
        if state.kind == "other":
            raise FileError(f'"{self.path}" is neither a directory nor a file', "set staticPodPath to one")
        names = [""] if state.kind == "file" else files.list_names(self.path)
        paths = [os.path.join(self.path, name) if name else self.path for name in names if name[:1] != "."]
        self._known = {path: self._known[path] for path in paths if path in self._known}
        found = (self._look(path) for path in paths)
        return [item for item in found if item is not None]

    def _look(self, path: str) -> Item | None:
        """What a file defines; None if it was removed while we looked."""
        try:
            state = files.file_state(path)
            if state.kind == "directory":
                return Item(path, warnings=("this directory in the manifest directory is not read",))
            known = self._known.get(path)
            if known is None or known.state != state or known.racy:
                known = self._known[path] = self._read(path, state, known)
            return known.item
        except MissingFile as error:
            return Item(path, problem=str(error)) if os.path.islink(path) else None
        except FileError as error:
            self._known.pop(path, None)
            return Item(path, problem=str(error))

    def _read(self, path: str, state: FileState, known: _Known | None) -> _Known:
        racy = abs(self._clock.wall_time() - state.changed) < RACY
        data = files.read_limited(path, MAX_BYTES)
        digest = hashlib.blake2b(data, digest_size=16).digest()
        if known is not None and known.digest == digest:
            return replace(known, state=state, racy=racy)
        return _Known(state, digest, self._decode(path, data, state.changed), racy)

    def _decode(self, path: str, data: bytes, changed: float) -> Item:
        seen = rfc3339_nano(self._clock.wall_time_ns())
        try:
            decoded = static_pods(data, Origin("file", path, self._node), seen)
        except InvalidManifest as error:
            return Item(path, problem=error.reason, pod=error.pod, age=changed)
        return Item(path, tuple(decoded.pods), age=changed, warnings=tuple(decoded.warnings))
