"""A gunicorn threaded worker inside the room: several listeners, TLS on some, no arbiter, no signals.

gunicorn's TLS setting holds for a whole worker; here each listener brings its own. Everything below the
threads (event loop, keep-alive, request parser, response framing) is gunicorn's.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gunicorn import http as gunicorn_http
from gunicorn.config import Config
from gunicorn.workers.gthread import TConn, ThreadWorker

from kubelet_mp import log
from kubelet_mp.model import clock
from kubelet_mp.rooms.http import upgrade
from kubelet_mp.rooms.http.pump import Pump
from kubelet_mp.rooms.http.tls import NoCertificate

THREADS = 64
LOOP_NAME = "http"  # of the thread with the event loop
IDLE = 90  # s that a kept-alive connection may be silent
READ_TIMEOUT = 30.0  # s for a handshake, and between two pieces of a request
WRITE_TIMEOUT = 4 * 3600.0  # s that a client may stop reading an answer
STOP_GRACE = 1  # s for answers on their way when the room stops
UPGRADE = "kubelet_mp.upgrade"  # in a request's environ: the URL through to which its connection is to be handed
_TLS_HANDSHAKE = 0x16
_INTERNAL_ERROR = b"\x15\x03\x01\x00\x02\x02\x50"  # a fatal alert of TLS
_PLAIN_ON_TLS = b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"

class _Upgraded(Exception):
    """The application wants the connection handed over instead of an answer."""


WSGI = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@dataclass(frozen=True)
class Listener:
    """A listening socket and what answers on it. `tls` gives the context for a new connection."""

    sock: socket.socket
    app: WSGI
    tls: Callable[[], ssl.SSLContext] | None = None


class Connection(TConn):
    """One client. Unlike its base it takes TLS from its listener, and waits for no client for ever."""

    sock: socket.socket
    initialized: bool

    def __init__(self, cfg: Config, sock: socket.socket, client: Any, listener: Listener) -> None:
        super().__init__(cfg, sock, client, listener.sock.getsockname())
        self.listener = listener
        self.taken = False  # by the pump, which closes it

    def init(self) -> None:
        """Called by the serving thread before each request."""
        self.sock.settimeout(READ_TIMEOUT)
        if self.initialized:
            return
        self.initialized = True
        if self.listener.tls is not None:
            self._start_tls(self.listener.tls)
        self.parser = gunicorn_http.get_parser(self.cfg, self.sock, self.client)

    def _start_tls(self, context: Callable[[], ssl.SSLContext]) -> None:
        first = self.sock.recv(1, socket.MSG_PEEK)
        if first and first[0] != _TLS_HANDSHAKE:
            self.sock.sendall(_PLAIN_ON_TLS)
        if not first or first[0] != _TLS_HANDSHAKE:
            raise StopIteration  # for the worker: nothing more to do with this client
        try:
            now = context()
        except NoCertificate:
            self.sock.sendall(_INTERNAL_ERROR)
            raise StopIteration from None
        self.sock = now.wrap_socket(self.sock, server_side=True)

    def close(self, graceful: bool = False) -> None:
        with contextlib.suppress(OSError):  # a failed handshake has closed it already
            super().close(graceful)

    def abort(self) -> None:
        """End it from another thread: whoever reads or writes it gets an error."""
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)


class Log:
    """gunicorn's logger interface on ours. A client's bad manners are details."""

    def __init__(self) -> None:
        self._log = log.get("http")

    def debug(self, message: str, *args: Any, **_: Any) -> None:
        self._log.v(6).info(_text(message, args))

    info = debug
    warning = debug

    def error(self, message: str, *args: Any, **_: Any) -> None:
        self._log.error(_text(message, args))

    critical = error

    def exception(self, message: str, *args: Any, **_: Any) -> None:
        if isinstance(sys.exc_info()[1], (TimeoutError, ConnectionError, ssl.SSLError)):
            self.debug(message, *args)
        else:
            self._log.exception(_text(message, args))

    def access(self, *_: Any) -> None:
        """Requests are counted, not logged."""

    def close_on_exec(self) -> None:
        """There are no log files to close."""

    reopen_files = close_on_exec


def _text(message: str, args: tuple[Any, ...]) -> str:
    return message % args if args else message


class Worker(ThreadWorker):
    """`run_here` serves until `stop`; `beat_at` is the monotonic time of the loop's last turn."""

    def __init__(self, listeners: Sequence[Listener], pump: Pump) -> None:
        self._listeners = {listener.sock.fileno(): listener for listener in listeners}
        self._connections: set[Connection] = set()
        self._local = threading.local()
        self._pump = pump
        self.beat_at = clock.monotonic()
        self._done = threading.Event()
        super().__init__(0, os.getppid(), [listener.sock for listener in listeners], self, 0, _CONFIG, Log())

    def wsgi_app(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        answer = self._local.app(environ, start_response)
        if UPGRADE in environ:
            if hasattr(answer, "close"):
                answer.close()
            raise _Upgraded(environ[UPGRADE])
        return answer

    def load_wsgi(self) -> None:
        self.wsgi = self.wsgi_app

    def init_signals(self) -> None:
        """The room has its own handlers, and this is not the main thread."""

    def notify(self) -> None:
        self.beat_at = clock.monotonic()

    def accept(self, listener: socket.socket) -> None:
        try:
            sock, client = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:
            self.log.error("cannot accept a connection: %s", error)
            self._done.wait(0.1)  # out of file descriptors: others must end first
            return
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection = Connection(self.cfg, sock, client, self._listeners[listener.fileno()])
        self.nr_conns += 1
        self._connections.add(connection)
        self.enqueue_req(connection)

    def handle_request(self, req: Any, conn: Connection) -> Any:
        """One parsed request: from here on the client may take its time."""
        conn.sock.settimeout(WRITE_TIMEOUT)
        self._local.app = conn.listener.app
        try:
            return super().handle_request(req, conn)
        except _Upgraded as wanted:
            self._hand_over(req, conn, str(wanted))
            return False

    def _hand_over(self, req: Any, conn: Connection, url: str) -> None:
        request = upgrade.Request(req.method, req.headers, conn.parser.unreader.take_buffered())
        address = conn.client[0] if isinstance(conn.client, tuple) else ""
        conn.sock.settimeout(upgrade.DIAL_TIMEOUT)
        conn.taken = upgrade.hand_over(conn.sock, address, request, url, self._pump)

    def finish_request(self, conn: Connection, fs: Any) -> None:
        if conn.taken:
            self.nr_conns -= 1
        else:
            super().finish_request(conn, fs)
        if conn.taken or conn.sock.fileno() < 0:
            self._connections.discard(conn)

    def murder_keepalived(self, force: bool = False) -> None:
        before = len(self.keepalived_conns) + len(self.pending_conns)
        super().murder_keepalived(force)
        if before != len(self.keepalived_conns):
            self._forget_closed()

    def murder_pending(self) -> None:
        before = len(self.pending_conns)
        super().murder_pending()
        if before != len(self.pending_conns):
            self._forget_closed()

    def _forget_closed(self) -> None:
        self._connections = {c for c in self._connections if c.sock.fileno() >= 0}

    def run_here(self) -> None:
        """Serve in this thread until `stop` was called."""
        try:
            self.init_process()
        finally:
            self._done.set()

    def stop(self, seconds: float) -> None:
        """From another thread: take no more, let answers end for `seconds`, then cut what is left."""
        if not self.booted:
            self.alive = False
            return
        self._pump.stop()
        self.handle_exit(0, None)
        self._done.wait(seconds)
        for connection in list(self._connections):
            connection.abort()


def _config() -> Config:
    cfg = Config()
    for name, value in {
        "threads": THREADS,
        "worker_connections": 1000,
        "keepalive": IDLE,
        "graceful_timeout": STOP_GRACE,
        "forwarded_allow_ips": "",
        "sendfile": False,
        "worker_tmp_dir": "/dev/shm" if os.path.isdir("/dev/shm") else None,
        "limit_request_line": 0,  # up to 1 MiB: commands travel in the query
        "limit_request_field_size": 256 * 1024,
    }.items():
        cfg.set(name, value)
    return cfg


_CONFIG = _config()  # made on import, before the fork: it is large, and then shared
