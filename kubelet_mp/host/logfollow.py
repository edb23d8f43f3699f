"""Following a container log while it grows, across its rotations.

A rotation renames the file and the runtime opens a new one, but may still finish lines in the old: the old
file is read until it has been silent for DRAIN seconds, then every file that was begun after it, then the
current one. So no line is lost and none is given twice, even to a reader that slept through rotations
(as long as the files are still there).
"""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Callable, Iterator
from typing import Protocol, cast

from kubelet_mp.host.files import MissingFile
from kubelet_mp.host.logfiles import (
    Lines,
    LogOptions,
    Renderer,
    Since,
    open_log,
    parse_line,
    seek_start,
    stamp_ns,
)
from kubelet_mp.host.logrotate import rotated_files
from kubelet_mp.model import clock

RECHECK = 1.0  # s between looks at the container when nothing happens
DRAIN = 0.25  # s that a rotated file must have been silent
SETTLE = 0.02  # s to let lines gather before they are sent


class Waiter(Protocol):
    """How a follower waits. Both return False when it shall end (the reader has gone, we are stopping)."""

    def changed(self, seconds: float) -> bool:
        """Wait until something changes in the log's directory, at most `seconds`."""

    def pause(self, seconds: float) -> bool:
        """Wait that long, whatever changes."""


class Follower:
    """One reader of one log. `running`: whether the container may still write."""

    def __init__(
        self, path: str, source: io.FileIO, options: LogOptions, waiter: Waiter, running: Callable[[], bool]
    ) -> None:
        self._path = os.path.realpath(path)
        self._source = source
        self._options, self._waiter, self._running = options, waiter, running
        self._renderer = Renderer(options)
        self._lines = Lines(source)
        self._left_at: float | None = None  # since when the file is rotated away and silent

    def chunks(self) -> Iterator[bytes]:
        """The output; first an empty piece, so that the reader is answered at once."""
        try:
            yield b""
            seek_start(self._source, self._options)
            while not self._renderer.done:
                if chunk := self._read():
                    yield chunk
                    continue
                rotated = self._rotated_away()
                if rotated and self._silent():
                    yield from self._next_files()
                elif not rotated and not self._running():
                    yield from self._last()
                    return
                elif not self._wait(rotated):
                    return
        finally:
            self._source.close()

    def _read(self) -> bytes:
        """Output of the next block that has any; b"" at the end of the file."""
        while not self._renderer.done and (block := self._lines.read()) is not None:
            self._left_at = None
            if chunk := self._renderer.render(block):
                return chunk
        return b""

    def _last(self) -> Iterator[bytes]:
        """What was written before the container ended, and its unfinished line."""
        while chunk := self._read():
            yield chunk
        if not self._renderer.done and (chunk := self._renderer.render(self._lines.take_rest())):
            yield chunk

    def _wait(self, rotated: bool) -> bool:
        if rotated:
            return self._waiter.pause(DRAIN / 5)
        return self._waiter.changed(RECHECK) and self._waiter.pause(SETTLE)

    # ---- rotation ----

    def _rotated_away(self) -> bool:
        """Whether the path names another file by now. A truncated file is begun again."""
        mine = os.fstat(self._source.fileno())
        try:
            there = os.stat(self._path)
        except OSError:
            return False  # between renaming and reopening, or all gone: the container's state decides
        if there.st_ino != mine.st_ino:
            return True
        if there.st_size < self._source.tell():
            self._source.seek(0)
            self._lines.rest = b""
        return False

    def _silent(self) -> bool:
        now = clock.monotonic()
        if self._left_at is None:
            self._left_at = now
        return now - self._left_at >= DRAIN

    def _next_files(self) -> Iterator[bytes]:
        """Go through the files that were rotated while we were busy, to the current one."""
        try:
            current = open_log(self._path)
        except MissingFile:
            return  # just being rotated again: seen at the next turn
        if chunk := self._renderer.render(self._lines.take_rest()):
            yield chunk
        between, after = self._between(os.fstat(current.fileno()).st_ino)
        for path in between:
            yield from self._catch_up(path, after)
        self._source.close()
        self._source, self._lines, self._left_at = current, Lines(current), None

    def _between(self, current: int) -> tuple[list[str], int]:
        """(files rotated after ours and before inode `current`, oldest first; ns of the newest record)."""
        files = rotated_files(self._path)
        inodes = [_inode(path) for path in files]
        if current in inodes:
            files = files[: inodes.index(current)]
        mine = os.fstat(self._source.fileno()).st_ino
        if mine in inodes:
            return files[inodes.index(mine) + 1 :], 0
        # ours was compressed or removed: its place among the others is known by the times of the records
        return files, stamp_ns(self._renderer.last) or 0

    def _catch_up(self, path: str, after: int) -> Iterator[bytes]:
        try:
            source = _open_rotated(path)
        except OSError:
            return  # removed meanwhile
        with source:
            lines = Lines(source)
            while not self._renderer.done and (block := lines.read()) is not None:
                if chunk := self._renderer.render(_later(block, after)):
                    yield chunk


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def _open_rotated(path: str) -> io.RawIOBase:
    if not path.endswith(".gz"):
        try:
            return io.FileIO(path, "rb")
        except FileNotFoundError:
            path += ".gz"  # it has just been compressed
    return cast(io.RawIOBase, gzip.open(path, "rb"))


def _later(lines: list[bytes], after: int) -> list[bytes]:
    """The records later than `after` (all if it is 0)."""
    if not after:
        return lines
    since = Since(after + 1)
    return [line for line in lines if (record := parse_line(line)) is not None and since.admits(record[0])]
