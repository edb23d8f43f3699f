"""TCP ports of this machine that are free to listen on."""

from __future__ import annotations

import os
import socket

from integration.rig.console import RigError

_LAST_PORT = 32767  # below the range from which the kernel takes local ports of connections
_given: set[int] = set()


def free_port() -> int:
    """A TCP port of the loopback that nobody listens on, below the range of outgoing connections."""
    for port in range(20000 + os.getpid() % 5000, _LAST_PORT):
        if port not in _given and may_listen(port):
            _given.add(port)
            return port
    raise RigError("no free TCP port")


def may_listen(port: int) -> bool:
    """Whether nobody listens on a TCP port of this machine."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True
