"""Opening the room's listening sockets."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Callable

from kubelet_mp.errors import StartError
from kubelet_mp.model import clock

BACKLOG = 512
RETRY = 2.0  # s to wait for a port that our previous incarnation, or a client of it, still holds
_MAX_UNIX_PATH = 100


def open_tcp(address: str, port: int, purpose: str, wait: Callable[[float], object]) -> socket.socket:
    """Listen on address:port (0 = any free port). `purpose` is the configuration field that names the port.

    Raises StartError when the port stays taken, or the address is not this machine's.
    """
    deadline = clock.monotonic() + RETRY
    while True:
        try:
            return _tcp(address, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or clock.monotonic() >= deadline:
                raise _refused(address, port, purpose, error) from error
        wait(0.05)


def _tcp(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.bind((address, port))
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def _refused(address: str, port: int, purpose: str, error: OSError) -> StartError:
    if error.errno == errno.EADDRINUSE:
        return StartError(
            f"port {port} on {address} is in use ({purpose})",
            f"stop the program that listens there (ss -ltnp 'sport = :{port}' names it) or set another {purpose}",
        )
    return StartError(f"cannot listen on {address}:{port} ({purpose}): {error.strerror}",
                      "set an address of this machine and a port that the agent may open")


def source_addresses() -> list[str]:
    """The addresses from which this machine would speak to others, IPv4 then IPv6. Nothing is sent for it."""
    found = []
    for family, elsewhere in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect((elsewhere, 9))
            found.append(str(sock.getsockname()[0]))
    return found


def open_unix(path: str) -> socket.socket:
    """Listen on a unix socket that only its owner may use; one left over is replaced. Raises StartError."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with contextlib.ExitStack() as stack:
            name = short_name(path, stack)
            _remove_socket(path)
            mask = os.umask(0o177)
            try:
                sock.bind(name)
            finally:
                os.umask(mask)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise StartError(f'cannot listen on "{path}": {error.strerror or error}',
                         "let the agent write to its root directory") from error
    return sock


def short_name(path: str, stack: contextlib.ExitStack) -> str:
    """A name for the socket that fits into its address: through its directory's descriptor if it is long."""
    if len(os.fsencode(path)) <= _MAX_UNIX_PATH:
        return path
    directory = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    stack.callback(os.close, directory)
    return f"/proc/self/fd/{directory}/{os.path.basename(path)}"


def _remove_socket(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(os.lstat(path).st_mode):
            os.unlink(path)
