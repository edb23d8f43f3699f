"""Termination messages: the file that a container wrote, else the end of its log.

Source: Kubernetes 1.37 pkg/kubelet/kuberuntime (getTerminationMessage).
"""

from __future__ import annotations

import os

from kubelet_mp.model import runtime as names
from kubelet_mp.model.runtime import Container

MAX_MESSAGE = 4096  # bytes
MAX_LOG = 2048
MAX_LINES = 80
_LOG_READ = 64 * 1024  # bytes of the log's end that are looked at: a CRI line adds some 40 bytes of its own


def message(container: Container) -> str:
    """The message of an exited container: the runtime's own text, and what the file or the log says."""
    text = _file(container)
    fallback = container.annotations.get(names.TERMINATION_POLICY) == "FallbackToLogsOnError"
    if not text and fallback and container.exit_code and container.reason != "ContainerCannotRun":
        text = _log(container.log_path)
    if container.message and text:
        return f"{container.message}: {text}"
    return text or container.message


def _file(container: Container) -> str:
    path = container.annotations.get(names.TERMINATION_PATH, "")
    host = next((m.host_path for m in container.mounts if path and m.container_path == path), "")
    if not host:
        return ""
    try:
        return _tail(host, MAX_MESSAGE).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"Error on reading termination log {host}: {error.strerror or error}"


def _tail(path: str, size: int) -> bytes:
    """The last bytes of a regular file; a symlink planted by the container is not followed."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        end = os.lseek(fd, 0, os.SEEK_END)
        os.lseek(fd, max(0, end - size), os.SEEK_SET)
        return os.read(fd, size)
    finally:
        os.close(fd)


def _log(path: str) -> str:
    """The last lines of a CRI log, without its own columns."""
    if not path:
        return ""
    try:
        data = _tail(path, _LOG_READ)
    except OSError:
        return ""
    lines = data.split(b"\n")
    if len(data) == _LOG_READ:
        lines = lines[1:]
    texts = [_content(line) for line in lines if line]
    return b"".join(texts[-MAX_LINES:])[-MAX_LOG:].decode("utf-8", "replace")


def _content(line: bytes) -> bytes:
    """The text of `TIME STREAM TAG TEXT`, with its line end unless it is a part of a line."""
    parts = line.split(b" ", 3)
    if len(parts) < 4:
        return b""
    return parts[3] if parts[2] == b"P" else parts[3] + b"\n"
