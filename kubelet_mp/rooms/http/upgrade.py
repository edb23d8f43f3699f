"""Handing an upgraded connection through to the runtime: its answer to the client, then bytes both ways.

Nothing of SPDY or WebSocket is understood here. Source: http-api.md §4.
"""

from __future__ import annotations

import contextlib
import http
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from kubelet_mp.rooms.http.pump import Pump

DIAL_TIMEOUT = 30.0  # s to reach the runtime, and for its answer
RELAY_TIMEOUT = 10.0  # s to pass on a refusal of the runtime
MAX_HEAD = 64 * 1024  # bytes of the answer's head
_CHUNK = 64 * 1024
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: |\r)")
_SWITCHING, _BAD_REQUEST, _FAILED = 101, 400, 500


@dataclass(frozen=True)
class Request:
    """The client's request as it came. headers: in their order, doubles included; early: bytes behind its head."""

    method: str
    headers: Sequence[tuple[str, str]]
    early: bytes = b""


class BackendError(Exception):
    """The runtime's end cannot be used; the text is for the client."""


def hand_over(client: socket.socket, address: str, request: Request, url: str, pump: Pump) -> bool:
    """Connect a client to a runtime's URL; whether the pump has taken both sockets.

    Otherwise the client was given an answer, and its socket is still the caller's. Raises OSError by the client.
    """
    try:
        backend = _dial(url)
    except BackendError as error:
        client.sendall(answer(_FAILED, f"error dialing backend: {error}"))
        return False
    taken = False
    try:
        taken = _introduce(client, address, request, url, backend, pump)
    finally:
        if not taken:
            backend.close()
    return taken


def _introduce(
    client: socket.socket, address: str, request: Request, url: str, backend: socket.socket, pump: Pump
) -> bool:
    try:
        backend.sendall(head(request, urlsplit(url), address))
        start = _head_of(backend)
        status = _status(start)
    except (OSError, BackendError) as error:
        client.sendall(answer(_FAILED, f"error dialing backend: {error}"))
        return False
    if status == _SWITCHING:
        pump.take(client, backend, to_client=start, to_backend=request.early)
        return True
    if status >= _BAD_REQUEST:
        _relay(start, backend, client)
    else:
        client.sendall(answer(_FAILED, f"invalid upgrade response: status code {status}"))
    return False


def _dial(url: str) -> socket.socket:
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise BackendError(f"the runtime's address for streams is no http URL but of scheme {parts.scheme!r}")
    try:
        sock = socket.create_connection((parts.hostname, parts.port or 80), DIAL_TIMEOUT)
    except (OSError, ValueError) as error:
        raise BackendError(f"{parts.netloc}: {error}") from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def head(request: Request, url: SplitResult, address: str) -> bytes:
    """The request as the runtime gets it: its own path and query, the client's method and headers."""
    target = f"{url.path or '/'}{'?' + url.query if url.query else ''}"
    kept = [(name, value) for name, value in request.headers if name.lower() != "x-forwarded-for"]
    chain = [value for name, value in request.headers if name.lower() == "x-forwarded-for"]
    lines = [f"{request.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in kept),
             f"X-Forwarded-For: {', '.join([*chain, address])}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _head_of(backend: socket.socket) -> bytes:
    """What the runtime sent, until its head is complete."""
    found = b""
    while b"\r\n\r\n" not in found:
        if len(found) > MAX_HEAD:
            raise BackendError("the head of the runtime's answer is too long")
        data = backend.recv(_CHUNK)
        if not data:
            raise BackendError("the runtime closed the connection")
        found += data
    return found


def _status(start: bytes) -> int:
    found = _STATUS.match(start)
    if not found:
        raise BackendError("the runtime's answer is not HTTP")
    return int(found.group(1))


def _relay(start: bytes, backend: socket.socket, client: socket.socket) -> None:
    """Pass a refusal on to its end, as far as that comes in time."""
    backend.settimeout(RELAY_TIMEOUT)
    client.settimeout(RELAY_TIMEOUT)
    client.sendall(start)
    with contextlib.suppress(TimeoutError):
        while data := backend.recv(_CHUNK):
            client.sendall(data)


def answer(status: int, text: str) -> bytes:
    """A whole plain answer, after which the connection ends."""
    body = f"{text}\n".encode()
    reason = http.HTTPStatus(status).phrase
    lines = [f"HTTP/1.1 {status} {reason}", "Content-Type: text/plain; charset=utf-8",
             f"Content-Length: {len(body)}", "Connection: close"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body
