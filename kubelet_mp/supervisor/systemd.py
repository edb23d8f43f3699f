"""sd_notify: a datagram to the socket that systemd names in NOTIFY_SOCKET (see sd_notify(3))."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from kubelet_mp import log
from kubelet_mp.model import clock

_log = log.get("supervisor")


class Notifier:
    """Sends states; without NOTIFY_SOCKET it does nothing. `watchdog` is the period in s, 0 when unset."""

    def __init__(self, environ: Mapping[str, str] = os.environ, pid: int | None = None) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        self._socket: socket.socket | None = None
        self._status = ""
        self.watchdog = watchdog_period(environ, os.getpid() if pid is None else pid)
        if self._address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            self._socket.setblocking(False)

    def ready(self) -> None:
        self._send("READY=1")

    def reloading(self) -> None:
        """Until the next `ready`; systemd wants the monotonic time with it (Type=notify-reload)."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={int(clock.monotonic() * 1e6)}")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def alive(self) -> None:
        self._send("WATCHDOG=1")

    def status(self, text: str) -> None:
        """One line for `systemctl status`; sent when it changed."""
        if text != self._status:
            self._status = text
            self._send(f"STATUS={text}")

    def _send(self, state: str) -> None:
        if self._socket is None:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            self._socket.sendto(state.encode(), address)
        except OSError as error:
            _log.warning("cannot notify systemd", state=state, err=str(error))


def watchdog_period(environ: Mapping[str, str], pid: int) -> float:
    """Half of WATCHDOG_USEC in seconds; 0 if the watchdog is off, meant for another pid, or not above 1 s."""
    text, owner = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    if not text.isdigit() or (owner.isdigit() and int(owner) != pid):
        return 0.0
    seconds = int(text) / 1e6
    return seconds / 2 if seconds > 1 else 0.0
