"""Lifecycle hooks of a running container: exec, httpGet, sleep.

Source: Kubernetes 1.37 pkg/kubelet/lifecycle/handlers.go. Any HTTP status counts as success; an HTTPS hook
that is answered in plain HTTP is tried again without TLS.
"""

from __future__ import annotations

import http.client
import ssl
import threading
from collections.abc import Mapping
from typing import Any

from kubelet_mp.errors import KubeletError
from kubelet_mp.rooms.pods.env import Work, field_path

USER_AGENT = "kube-lifecycle/1.37"
_HTTP_TIMEOUT = 60.0  # s for a server that accepts and never answers
_MAX_BODY = 10 * 1024


class HookError(KubeletError):
    """A hook failed, or is of a kind that does not exist."""


def run(work: Work, container: Mapping[str, Any], container_id: str, hook: Mapping[str, Any], ip: str) -> None:
    """Run a postStart or preStop handler to its end. Raises HookError or RuntimeCallError."""
    if hook.get("exec"):
        _exec(work, container_id, hook["exec"].get("command") or [])
    elif hook.get("httpGet"):
        _http(work, container, hook["httpGet"], ip)
    elif hook.get("sleep"):
        threading.Event().wait(float(hook["sleep"].get("seconds", 0)))
    else:
        raise HookError(f"invalid handler: {dict(hook)}", "use exec, httpGet or sleep")


def _exec(work: Work, container_id: str, command: list[str]) -> None:
    result = work.env.runtime.exec_sync(container_id, command, 0)
    if result.exit_code:
        text = result.stderr.decode("utf-8", "replace")
        raise HookError(f"command '{' '.join(command)}' exited with {result.exit_code}: {text}")


def _http(work: Work, container: Mapping[str, Any], action: Mapping[str, Any], ip: str) -> None:
    host = action.get("host") or ip
    port = _port(container, action.get("port"))
    tls = str(action.get("scheme", "HTTP")).upper() == "HTTPS"
    try:
        _get(host, port, action, tls)
    except ssl.SSLError as error:
        if "HTTP_REQUEST" not in str(error) and "WRONG_VERSION_NUMBER" not in str(error):
            raise HookError(f"HTTPS hook of {host}:{port} failed: {error}") from error
        _fall_back(work, container, action, host, port)
    except (OSError, http.client.HTTPException) as error:
        raise HookError(f"HTTP hook of {host}:{port} failed: {error}") from error


def _fall_back(
    work: Work, container: Mapping[str, Any], action: Mapping[str, Any], host: str, port: int
) -> None:
    work.event("Warning", "LifecycleHTTPFallback",
               f"request to HTTPS lifecycle hook {host} got HTTP response, retry with HTTP succeeded",
               field_path(work.pod, container["name"]))
    try:
        _get(host, port, action, tls=False)
    except (OSError, http.client.HTTPException) as error:
        raise HookError(f"HTTP hook of {host}:{port} failed: {error}") from error


def _get(host: str, port: int, action: Mapping[str, Any], tls: bool) -> None:
    headers = {"User-Agent": USER_AGENT, "Accept": "*/*", "Connection": "close"}
    headers.update({h["name"]: h["value"] for h in action.get("httpHeaders") or []})
    connection = _connection(host, port, tls)
    try:
        connection.request("GET", action.get("path") or "/", headers=headers)
        connection.getresponse().read(_MAX_BODY)
    finally:
        connection.close()


def _connection(host: str, port: int, tls: bool) -> http.client.HTTPConnection:
    if not tls:
        return http.client.HTTPConnection(host, port, timeout=_HTTP_TIMEOUT)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, timeout=_HTTP_TIMEOUT, context=context)


def _port(container: Mapping[str, Any], port: Any) -> int:
    if isinstance(port, int):
        return port
    for candidate in container.get("ports") or []:
        if candidate.get("name") == port:
            return int(candidate["containerPort"])
    if isinstance(port, str) and port.isdigit():
        return int(port)
    raise HookError(f"couldn't find port: {port} in container {container.get('name')}")
