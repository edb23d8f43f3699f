"""Container logs as the runtime writes them: reading, the last lines, and turning records into output.

A line of such a file is `<RFC 3339 time> <stdout|stderr> <F|P>[:more] <text>`; a record tagged P is a piece
of a longer line, so no newline follows its text. Source: Kubernetes 1.37 k8s.io/cri-client/pkg/logs.

Memory is bounded by the block size, however large the file or its lines.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kubelet_mp import log
from kubelet_mp.host.files import FileError
from kubelet_mp.model import clock

BLOCK = 64 * 1024
MAX_LINE = 1024 * 1024  # bytes; runtimes cut lines at 16 KiB, so anything longer is no CRI log
_log = log.get("logs")


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What of a log to give. `since`: nanoseconds since the epoch, older records are left out (0 = none).

    `tail_lines` counts lines of the file from its end, before `since` is applied; `limit_bytes` counts
    bytes of output, with the timestamps that `timestamps` puts before each new line.
    """

    tail_lines: int | None = None
    limit_bytes: int | None = None
    since: int = 0
    timestamps: bool = False
    follow: bool = False


def parse_line(line: bytes) -> tuple[bytes, bool, bytes] | None:
    """(time, is a piece, text) of a line with or without its newline; None if it is no record."""
    parts = line.split(b" ", 3)
    if len(parts) != 4 or parts[1] not in (b"stdout", b"stderr"):
        return None
    stamp, _, tag, text = parts
    partial = tag.partition(b":")[0] == b"P"
    return stamp, partial, text.removesuffix(b"\n") if partial else text


def stamp_ns(stamp: bytes) -> int | None:
    """Nanoseconds since the epoch of a record's time, None if it is no RFC 3339 time."""
    try:
        return clock.parse_rfc3339(stamp.decode("ascii"))
    except (ValueError, UnicodeDecodeError):
        return None


def pad_stamp(stamp: bytes) -> bytes:
    """The time with exactly nine digits of a second, in its own zone."""
    head, dot, rest = stamp.partition(b".")
    if not dot:
        cut = 19 if len(stamp) > 19 else len(stamp)
        return stamp[:cut] + b".000000000" + stamp[cut:]
    digits = len(rest) - len(rest.lstrip(b"0123456789"))
    return head + b"." + rest[:digits].ljust(9, b"0") + rest[digits:]


class Since:
    """Compares record times with a moment; UTC times as text, others by parsing."""

    def __init__(self, ns: int) -> None:
        self.ns = ns
        self._text = clock.rfc3339_nano(ns).encode()[:-1]

    def admits(self, stamp: bytes) -> bool:
        """Whether a record of that time is not older; a time that cannot be read is let through."""
        if stamp.endswith(b"Z") and len(stamp) >= 20:
            text = stamp[:-1]
            return (text.rstrip(b"0") if b"." in text else text).rstrip(b".") >= self._text
        ns = stamp_ns(stamp)
        return ns is None or ns >= self.ns


class Renderer:
    """Turns lines of a log into output. `done` once `limit_bytes` have been given."""

    def __init__(self, options: LogOptions) -> None:
        self._since = Since(options.since) if options.since else None
        self._timestamps = options.timestamps
        self._left = options.limit_bytes
        self._new_line = True
        self._bad = 0
        self.last = b""  # the time of the newest record seen

    @property
    def done(self) -> bool:
        return self._left is not None and self._left <= 0

    def render(self, lines: Iterable[bytes]) -> bytes:
        out = b"".join(self._pieces(lines))
        if self._left is None:
            return out
        out = out[: max(0, self._left)]
        self._left -= len(out)
        return out

    def _pieces(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        for line in lines:
            record = parse_line(line)
            if record is None:
                self._complain(line)
                continue
            stamp, _, text = record
            self.last = stamp
            if self._since is not None and not self._since.admits(stamp):
                continue
            if self._timestamps and self._new_line:
                yield pad_stamp(stamp) + b" "
            self._new_line = not text or text.endswith(b"\n")
            yield text

    def _complain(self, line: bytes) -> None:
        self._bad += 1
        if self._bad == 1:  # one bad line is often followed by many
            _log.warning("skipped a line that is no log record", line=repr(line[:80]))


class Lines:
    """Whole lines of a growing file, block by block. What comes after the last newline waits in `rest`."""

    def __init__(self, source: io.RawIOBase, limit: int | None = None) -> None:
        """limit: bytes to read at most, None for whatever comes."""
        self._source, self._limit = source, limit
        self.rest = b""
        self.offset = 0  # bytes read
        self._skipping = False

    def read(self) -> list[bytes] | None:
        """The lines that another block completes; None at the end of what is there now."""
        size = BLOCK if self._limit is None else min(BLOCK, self._limit - self.offset)
        data = self._source.read(size) if size > 0 else b""
        if not data:
            return None
        self.offset += len(data)
        return self._split(data)

    def _split(self, data: bytes) -> list[bytes]:
        lines = list(io.BytesIO(self.rest + data))  # cuts at newlines only, unlike splitlines
        self.rest = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        if self._skipping and lines:
            self._skipping = False
            lines = lines[1:]
        if len(self.rest) > MAX_LINE:
            self._skipping, self.rest = True, b""
        elif self._skipping:
            self.rest = b""
        return lines

    def take_rest(self) -> list[bytes]:
        """The unfinished last line, once: for when no more will be written."""
        rest, self.rest = self.rest, b""
        return [rest] if rest else []


def tail_offset(fd: int, size: int, lines: int) -> int:
    """Where the last `lines` lines of the first `size` bytes begin, found from the end, block by block.

    An unfinished last line comes on top of them.
    """
    wanted = lines + 1
    right = size
    while right > 0:
        left = max(0, right - BLOCK)
        block = os.pread(fd, right - left, left)
        found = block.count(b"\n")
        if found >= wanted:
            return left + _nth_newline_from_end(block, wanted) + 1
        wanted -= found
        right = left
    return 0


def _nth_newline_from_end(block: bytes, n: int) -> int:
    at = len(block)
    for _ in range(n):
        at = block.rindex(b"\n", 0, at)
    return at


def open_log(path: str) -> io.FileIO:
    """Open a log for reading, links followed. Raises FileError (MissingFile if it is not there)."""
    try:
        return io.FileIO(os.path.realpath(path), "rb")
    except OSError as error:
        raise FileError.of("open the log", path, error) from error


def seek_start(source: io.FileIO, options: LogOptions) -> int:
    """Go to the first byte wanted. Returns the size that the file had."""
    size = os.fstat(source.fileno()).st_size
    if options.tail_lines is not None:
        source.seek(tail_offset(source.fileno(), size, options.tail_lines))
    return size


def read_log(source: io.FileIO, options: LogOptions) -> Iterator[bytes]:
    """The output for a log as it stands now, in chunks of about a block; closes `source` at the end."""
    with source:
        size = seek_start(source, options)
        renderer = Renderer(options)
        lines = Lines(source, size - source.tell())
        while not renderer.done and (block := lines.read()) is not None:
            if chunk := renderer.render(block):
                yield chunk
        if not renderer.done and (chunk := renderer.render(lines.take_rest())):
            yield chunk
