"""One HTTP(S) GET of a probe, on the plain standard client.

Not `requests`: a probe needs headers exactly as given (repeated ones and its own Host among them), must
ignore proxies and credentials of the environment, and is made hundreds of times a second.
"""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

MAX_BODY = 10 * 1024
MAX_REDIRECTS = 10
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class Answer:
    """The verdict's raw material. `foreign`: the last answer redirects to another host and was not followed."""

    status: int
    body: str
    foreign: bool = False


class ProbeFailed(Exception):
    """No answer came: the text says why, as an operator would read it in the event."""


def get(url: str, headers: Iterable[tuple[str, str]], timeout: float, now: Callable[[], float]) -> Answer:
    """GET `url`, following redirects that stay on its host. `timeout` in seconds for all of it.

    Raises ProbeFailed when connecting, sending or receiving fails or there are more than ten redirects.
    """
    deadline, first, sent = now() + timeout, url, list(headers)
    for _ in range(MAX_REDIRECTS + 1):
        status, location, body = _once(url, sent, deadline - now())
        if status not in _REDIRECTS or not location:
            return Answer(status, body)
        target = urljoin(url, location)
        if urlsplit(target).hostname != urlsplit(first).hostname:
            return Answer(status, body, foreign=True)
        url = target
    raise ProbeFailed(f'Get "{first}": stopped after {MAX_REDIRECTS} redirects')


def _once(url: str, headers: list[tuple[str, str]], left: float) -> tuple[int, str, str]:
    if left <= 0:
        raise ProbeFailed(f'Get "{url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)')
    try:
        return _exchange(url, headers, left)
    except TimeoutError:
        raise ProbeFailed(
            f'Get "{url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)') from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ProbeFailed(f'Get "{url}": {_text(error)}') from error


def _text(error: Exception) -> str:
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else (
        str(error) or type(error).__name__)


def _exchange(url: str, headers: list[tuple[str, str]], left: float) -> tuple[int, str, str]:
    parts = urlsplit(url)
    connection = _connection(parts.scheme, parts.hostname or "", parts.port, left)
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.putrequest("GET", path, skip_host=True, skip_accept_encoding=True)
        if not any(name.lower() == "host" for name, _ in headers):
            connection.putheader("Host", parts.netloc)
        for name, value in headers:
            connection.putheader(name, value)
        connection.putheader("Connection", "close")
        connection.endheaders()
        response = connection.getresponse()
        body = response.read(MAX_BODY).decode("utf-8", "replace")
        return response.status, response.getheader("Location", ""), body
    finally:
        connection.close()


def _connection(scheme: str, host: str, port: int | None, left: float) -> http.client.HTTPConnection:
    if scheme != "https":
        return http.client.HTTPConnection(host, port, timeout=left)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, timeout=left, context=context)


def tcp(host: str, port: int, timeout: float) -> str:
    """"" if a connection opens within `timeout` s, else why not."""
    try:
        with socket.create_connection((host, port), timeout) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\x01\0\0\0")
    except TimeoutError:
        return f"dial tcp {host}:{port}: i/o timeout"
    except OSError as error:
        return f"dial tcp {host}:{port}: connect: {(error.strerror or str(error)).lower()}"
    return ""
