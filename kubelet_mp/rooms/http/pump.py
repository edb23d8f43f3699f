"""Copies bytes between pairs of sockets, all of them in one thread.

One thread, because a TLS socket must not be read and written by two at once, and because two hundred streams that are
mostly silent need no two hundred threads.
"""

from __future__ import annotations

import contextlib
import os
import queue
import selectors
import socket
import ssl
import threading
from collections.abc import Callable

from kubelet_mp.model import clock

MAX_STREAMS = 1000
BUFFER = 256 * 1024  # bytes on their way in one direction, before the sender has to wait
CHUNK = 64 * 1024
TURN = 16  # reads of one stream before others have their turn
FLUSH = 10.0  # s that what one side has sent may take to reach the other, when the first has left
_WAIT = 1.0  # s between two looks for flushes that take too long


def _read(sock: socket.socket) -> bytes | None:
    """None: nothing now; b"" at the end, of whatever kind."""
    try:
        return sock.recv(CHUNK)
    except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
        return None
    except (OSError, ValueError):
        return b""


class Direction:
    """From one socket to the other. `ended`: the source will give no more; `broken`: the sink takes no more."""

    def __init__(self, source: socket.socket, sink: socket.socket, first: bytes) -> None:
        self.source, self.sink = source, sink
        self.buffer = bytearray(first)
        self.ended = self.broken = False

    def step(self) -> bool:
        """Read and write once; whether anything moved."""
        read = self._fill()
        return self._drain() or read

    def _fill(self) -> bool:
        if self.ended or len(self.buffer) >= BUFFER:
            return False
        data = _read(self.source)
        if data is None:
            return False
        self.ended = not data
        self.buffer += data
        return True

    def _drain(self) -> bool:
        if not self.buffer or self.broken:
            return False
        try:
            sent = self.sink.send(self.buffer)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        except (OSError, ValueError):
            self.broken = True
            return True
        del self.buffer[:sent]
        return True


class Stream:
    """Two sockets that belong together. When one side ends, what it sent is passed on and both are closed."""

    def __init__(self, client: socket.socket, backend: socket.socket, to_client: bytes, to_backend: bytes) -> None:
        self.client, self.backend = client, backend
        self.directions = (Direction(client, backend, to_backend), Direction(backend, client, to_client))
        self.deadline: float | None = None  # monotonic s, once a side has ended

    def turn(self) -> bool:
        """Move what can be moved; whether there is more."""
        return all(any([direction.step() for direction in self.directions]) for _ in range(TURN))

    @property
    def over(self) -> bool:
        return any(d.broken or (d.ended and not d.buffer) for d in self.directions)

    def interest(self, sock: socket.socket) -> int:
        """What to wait for on one of the two sockets. TLS may want the other kind: then both are waited for."""
        reading = next(d for d in self.directions if d.source is sock)
        writing = next(d for d in self.directions if d.sink is sock)
        events = selectors.EVENT_READ if not reading.ended and len(reading.buffer) < BUFFER else 0
        return events | (selectors.EVENT_WRITE if writing.buffer else 0)

    def close(self) -> None:
        if isinstance(self.client, ssl.SSLSocket):
            with contextlib.suppress(OSError, ValueError):
                self.client.unwrap()  # says goodbye; the other's is not waited for
        for sock in (self.client, self.backend):
            with contextlib.suppress(OSError):
                sock.close()


class Pump:
    """`take` may be called from any thread, the rest runs in the pump's own, which starts with the first stream.

    fail: told of a fault of ours in that thread.
    """

    def __init__(self, fail: Callable[[BaseException], None]) -> None:
        self._fail = fail
        self._fresh: queue.SimpleQueue[Stream] = queue.SimpleQueue()
        self._streams: set[Stream] = set()
        self._lock = threading.Lock()
        self._count = 0
        self._thread: threading.Thread | None = None
        self._wake_fd = -1
        self._stopped = False

    def take(self, client: socket.socket, backend: socket.socket, *, to_client: bytes, to_backend: bytes) -> None:
        """Copy between the two until one ends, then close both: the sockets are the pump's from now on."""
        stream = Stream(client, backend, to_client, to_backend)
        with self._lock:
            if self._stopped:
                stream.close()
                return
            self._count += 1
            self._begin()
            self._fresh.put(stream)
            os.eventfd_write(self._wake_fd, 1)

    @property
    def full(self) -> bool:
        """Whether there are as many streams as there may be."""
        return self._count >= MAX_STREAMS

    def stop(self) -> None:
        """Close all streams."""
        with self._lock:
            self._stopped = True
            if self._thread is not None:
                os.eventfd_write(self._wake_fd, 1)

    def _begin(self) -> None:
        if self._thread is None:
            self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self._thread = threading.Thread(target=self._run, name="streams", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            with selectors.EpollSelector() as selector:
                selector.register(self._wake_fd, selectors.EVENT_READ, None)
                self._loop(selector)
        except Exception as error:  # noqa: BLE001 - the edge of the thread: the room's main thread raises it again
            self._fail(error)
        finally:
            for stream in self._streams:
                stream.close()

    def _loop(self, selector: selectors.BaseSelector) -> None:
        more: set[Stream] = set()
        while not self._stopped:
            ready = {key.data for key, _ in selector.select(0 if more else _WAIT)} | more
            if None in ready:
                ready.remove(None)
                os.eventfd_read(self._wake_fd)
                ready |= self._enter()
            more = {stream for stream in ready if self._turn(selector, stream)}
            self._end_late(selector)

    def _enter(self) -> set[Stream]:
        """Streams that were given since."""
        found = {self._fresh.get_nowait() for _ in range(self._fresh.qsize())}
        for stream in found:
            stream.client.setblocking(False)
            stream.backend.setblocking(False)
        self._streams |= found
        return found

    def _turn(self, selector: selectors.BaseSelector, stream: Stream) -> bool:
        """One turn of a stream; whether it wants another at once."""
        more = stream.turn()
        if stream.over:
            self._close(selector, stream)
            return False
        if stream.deadline is None and any(direction.ended for direction in stream.directions):
            stream.deadline = clock.monotonic() + FLUSH
        for sock in (stream.client, stream.backend):
            _wait_for(selector, sock, stream)
        return more

    def _end_late(self, selector: selectors.BaseSelector) -> None:
        now = clock.monotonic()
        for stream in [one for one in self._streams if one.deadline is not None and one.deadline < now]:
            self._close(selector, stream)

    def _close(self, selector: selectors.BaseSelector, stream: Stream) -> None:
        for sock in (stream.client, stream.backend):
            with contextlib.suppress(KeyError, ValueError):
                selector.unregister(sock)
        stream.close()
        self._streams.discard(stream)
        with self._lock:
            self._count -= 1


def _wait_for(selector: selectors.BaseSelector, sock: socket.socket, stream: Stream) -> None:
    wanted = stream.interest(sock)
    known = selector.get_map().get(sock.fileno())
    if known is None:
        if wanted:
            selector.register(sock, wanted, stream)
    elif not wanted:
        selector.unregister(sock)
    elif known.events != wanted:
        selector.modify(sock, wanted, stream)
