"""Speaking with the agent on this node: HTTP over the unix socket in its root directory."""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import socket
import urllib.parse
from collections.abc import Iterator
from typing import Any

from kubelet_mp.errors import KubeletError

SOCKET = "kubelet-mp.sock"
ROOT = "/var/lib/kubelet"
TIMEOUT = 10.0  # s
_MAX_UNIX_PATH = 100


class AgentError(KubeletError):
    """The agent is not there, or refuses. status: of its answer, 0 without one."""

    def __init__(self, message: str, fix: str | None = None, *, status: int = 0) -> None:
        super().__init__(message, fix)
        self.status = status


def add_root_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--root-dir", default=ROOT, metavar="DIR", help=f"root directory of the agent to ask (default {ROOT})"
    )


class UnixConnection(http.client.HTTPConnection):
    """An HTTP connection over a unix socket; long paths go through the directory's descriptor."""

    def __init__(self, path: str, timeout: float | None) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        with contextlib.ExitStack() as stack:
            self.sock.connect(self._name(stack))

    def _name(self, stack: contextlib.ExitStack) -> str:
        if len(os.fsencode(self._path)) <= _MAX_UNIX_PATH:
            return self._path
        directory = os.open(os.path.dirname(self._path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, directory)
        return f"/proc/self/fd/{directory}/{os.path.basename(self._path)}"


class Agent:
    """The agent whose root directory is given."""

    def __init__(self, root_dir: str) -> None:
        self.path = os.path.join(root_dir, SOCKET)

    def get(self, path: str) -> Any:
        """The decoded JSON of GET `path`. Raises AgentError."""
        with self._request(path, TIMEOUT) as response:
            return json.load(response)

    def stream(self, path: str, query: dict[str, str]) -> Iterator[bytes]:
        """The body of GET `path` as it comes, without end of time. Raises AgentError."""
        target = f"{path}?{urllib.parse.urlencode(query)}" if query else path
        with self._request(target, None) as response:
            while chunk := response.read1(65536):
                yield chunk

    @contextlib.contextmanager
    def _request(self, target: str, timeout: float | None) -> Iterator[http.client.HTTPResponse]:
        connection = UnixConnection(self.path, timeout)
        try:
            try:
                connection.request("GET", target, headers={"Connection": "close"})
                response = connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                raise _unreachable(self.path, error) from error
            if response.status != 200:
                raise AgentError(_told(response), status=response.status)
            yield response
        finally:
            connection.close()


def _told(response: http.client.HTTPResponse) -> str:
    text = response.read(65536).decode("utf-8", "replace").strip()
    try:
        return str(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError):
        return text or f"the agent answers {response.status}"


def _unreachable(path: str, error: Exception) -> AgentError:
    if isinstance(error, PermissionError):
        return AgentError(f'no permission to use the agent\'s socket "{path}"', "run this as root (sudo)")
    if isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
        return AgentError(
            f'no agent is running with the socket "{path}"',
            "start kubelet-mp, or name the agent's root directory with --root-dir",
        )
    if isinstance(error, TimeoutError):
        return AgentError(
            f'the agent does not answer on "{path}" within {TIMEOUT:.0f} s',
            "look at its log (journalctl -u kubelet-mp)",
        )
    return AgentError(f'the agent\'s answer on "{path}" broke off: {error}', "try again; it may be restarting")


def quote(*parts: str) -> str:
    return "/".join(urllib.parse.quote(part, safe="") for part in parts)
