"""A link: the pair of multiprocessing queues between the supervisor and one incarnation of one room.

Upward a `Queue` (the room's feeder thread writes, so a room never waits for the supervisor), downward a
`SimpleQueue` with one credit (the supervisor sends a batch only to a room that asked for it). The pair is
thrown away with its room: a process killed while it holds a queue's lock would silence every other user.

The supervisor must not block on either: a room stopped in the middle of a frame would stop everybody.
So its ends are driven without blocking, frame by frame, in the format of `multiprocessing.connection`
(a big-endian 32-bit length, then the pickle).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.queues  # the first queue imports it: before the fork, like all else
import os
import pickle
import queue
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from kubelet_mp.wire.envelope import Envelope

MAX_UNSENT = 8192  # messages a room may have on the way up
MAX_FRAME = 64 * 1024 * 1024  # bytes; a larger length is a broken frame
_UNREADABLE = (pickle.UnpicklingError, EOFError, AttributeError, ImportError, LookupError, TypeError, ValueError)
_CHUNK = 256 * 1024
_fork = multiprocessing.get_context("fork")


class LinkBroken(Exception):
    """The other end is gone, or what it sent is no frame."""


class Frames:
    """Cuts a byte stream into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._buffer += data
        while len(self._buffer) >= 4:
            (size,) = struct.unpack_from("!i", self._buffer)
            if not 0 <= size <= MAX_FRAME:
                raise LinkBroken(f"a frame of {size} bytes was announced")
            if len(self._buffer) < 4 + size:
                return
            frame = bytes(self._buffer[4 : 4 + size])
            del self._buffer[: 4 + size]
            yield frame


def frame(obj: Any) -> bytes:
    data = pickle.dumps(obj, protocol=pickle.HIGHEST_PROTOCOL)
    return struct.pack("!i", len(data)) + data


class Link:
    """Create it before the fork; then the parent calls `parent_side()`, the child `child_side()`."""

    def __init__(self) -> None:
        self._up: Any = _fork.Queue(MAX_UNSENT)
        self._down: Any = _fork.SimpleQueue()

    def parent_side(self) -> ParentEnd:
        self._up._writer.close()
        self._down._reader.close()
        return ParentEnd(self._up, self._down)

    def child_side(self) -> ChildEnd:
        self._up._reader.close()
        self._down._writer.close()
        return ChildEnd(self._up, self._down)

    def close(self) -> None:
        """Drop all four ends (in a child: of a sibling's link)."""
        for connection in (self._up._reader, self._up._writer, self._down._reader, self._down._writer):
            with contextlib.suppress(OSError):
                connection.close()


class ParentEnd:
    """The supervisor's ends; nothing here blocks."""

    def __init__(self, up: Any, down: Any) -> None:
        self._up, self._down = up, down
        self._frames = Frames()
        self._unsent = bytearray()
        self.read_fd: int = up._reader.fileno()
        self.write_fd: int = down._writer.fileno()
        os.set_blocking(self.read_fd, False)
        os.set_blocking(self.write_fd, False)

    @property
    def writing(self) -> bool:
        """Part of a batch is still to be written: wait for `write_fd`, then `flush`."""
        return bool(self._unsent)

    def receive(self) -> list[Envelope]:
        """Whatever has arrived whole. Raises LinkBroken at the end of the stream."""
        try:
            data = os.read(self.read_fd, _CHUNK)
        except BlockingIOError:
            return []
        except OSError as error:
            raise LinkBroken(str(error)) from error
        if not data:
            raise LinkBroken("closed")
        return [self._decode(raw) for raw in self._frames.feed(data)]

    def _decode(self, raw: bytes) -> Envelope:
        self._up._sem.release()  # what Queue.get would do: one more may be put
        try:
            envelope = pickle.loads(raw)
        except _UNREADABLE as error:
            raise LinkBroken(f"a frame cannot be read: {error}") from error
        if not isinstance(envelope, Envelope):
            raise LinkBroken(f"a frame holds a {type(envelope).__name__}")
        return envelope

    def send(self, batch: Sequence[Envelope]) -> None:
        self._unsent += frame(list(batch))
        self.flush()

    def flush(self) -> None:
        """Write as much as the pipe takes. Raises LinkBroken when the reader is gone."""
        while self._unsent:
            try:
                written = os.write(self.write_fd, self._unsent)
            except BlockingIOError:
                return
            except OSError as error:
                raise LinkBroken(str(error)) from error
            del self._unsent[:written]

    def close(self) -> None:
        for connection in (self._up._reader, self._down._writer):
            with contextlib.suppress(OSError):
                connection.close()


class ChildEnd:
    """The room's ends: `put` from any thread, `get` from one."""

    def __init__(self, up: Any, down: Any) -> None:
        self._up, self._down = up, down
        self.read_fd: int = down._reader.fileno()

    def put(self, envelope: Envelope, timeout: float = 30.0) -> None:
        """Hand a sealed message to the feeder. Raises LinkBroken if the supervisor takes none for `timeout` s."""
        try:
            self._up.put(envelope, timeout=timeout)
        except queue.Full:
            raise LinkBroken(f"the supervisor has taken no message for {timeout:.0f} s") from None

    def get(self) -> list[Envelope]:
        """The next batch; blocks until it is whole. Raises LinkBroken when the supervisor is gone."""
        try:
            batch: list[Envelope] = self._down.get()
        except (EOFError, OSError) as error:
            raise LinkBroken(str(error) or "closed") from error
        return batch

    def close(self) -> None:
        """Flush what was put and end the feeder."""
        self._up.close()
        self._up.join_thread()
