"""What exec, attach and port-forward are asked for. Pure.

Source: Kubernetes 1.37 k8s.io/cri-streaming/pkg/streaming/remotecommand; http-api.md §1 and §4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Query = Mapping[str, Sequence[str]]
MAX_PORT = 65535
_TUNNEL = "SPDY/3.1+"  # SPDY inside of a WebSocket
_TRANSLATED = "v5.channel.k8s.io"


class StreamRequestError(Exception):
    """The request cannot be served; status: of the answer, whose body is the text."""

    def __init__(self, status: int, text: str, retry_after: int = 0) -> None:
        super().__init__(text)
        self.status, self.retry_after = status, retry_after


@dataclass(frozen=True, slots=True)
class Streams:
    """Which streams a command gets."""

    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool


def streams(query: Query) -> Streams:
    """Only the value "1" sets an option; a terminal has no stderr of its own. Raises StreamRequestError."""
    asked = {name: "1" in query.get(name, ())[:1] for name in ("input", "output", "error", "tty")}
    found = Streams(asked["input"], asked["output"], asked["error"] and not asked["tty"], asked["tty"])
    if not (found.stdin or found.stdout or found.stderr):
        raise StreamRequestError(400, "you must specify at least 1 of stdin, stdout, stderr")
    return found


def ports(query: Query) -> list[int]:
    """The ports of a port-forward, none where the client names them by stream. Raises StreamRequestError."""
    found = []
    for word in (word for value in query.get("port", ()) for word in value.split(",")):
        if not (word.isascii() and word.isdigit() and 0 < int(word) <= MAX_PORT):
            raise StreamRequestError(400, f'invalid port "{word}": it must be from 1 to {MAX_PORT}')
        found.append(int(word))
    return found


def untranslated(upgrade: str, protocols: str) -> str:
    """The WebSocket sub-protocol that upstream translates to SPDY itself, and this agent does not; "" for others.

    upgrade, protocols: the headers Upgrade and Sec-WebSocket-Protocol.
    """
    if upgrade.strip().lower() != "websocket":
        return ""
    names = [name.strip() for name in protocols.split(",")]
    return next((name for name in names if name == _TRANSLATED or name.startswith(_TUNNEL)), "")
