"""What the API server's answers, and their absence, mean. Pure.

Source: Kubernetes 1.37 k8s.io/apimachinery/pkg/apis/meta/v1 (Status).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

import requests
import urllib3

from kubelet_mp.errors import ApiError

_SHOWN = 300  # characters of an answer that is no Status
_FIXES = {
    401: "check that the client certificate or token of the kubeconfig is valid, and not expired",
    403: "check the RBAC rules and the name of this node (system:node:NAME in group system:nodes)",
    429: "the API server is overloaded: wait",
}


def query(params: Mapping[str, Any]) -> dict[str, str]:
    """Query parameters as text; None is left out, booleans are lower-case."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in params.items() if value is not None
    }


def decode(method: str, path: str, body: bytes) -> dict[str, Any]:
    """The object in the body. Raises ApiError."""
    try:
        found = json.loads(body) if body else {}
    except ValueError as error:
        raise ApiError(f"{method} {path}: the answer is not JSON", "check that the server is an API server") from error
    if not isinstance(found, dict):
        raise ApiError(f"{method} {path}: the answer is not an object", "check that the server is an API server")
    return found


def refusal(method: str, path: str, status: int, retry_after: str, body: bytes) -> ApiError:
    """The error for a status that is no success."""
    told: dict[str, Any] = {}
    with contextlib.suppress(ApiError):
        told = decode(method, path, body)
    if told.get("kind") != "Status":
        text = " ".join(body[:_SHOWN].decode("utf-8", "replace").split())
        told = {"message": text or "no reason given"}
    return from_status(f"{method} {path}", {**told, "code": status}, retry_after)


def from_status(what: str, told: Mapping[str, Any], retry_after: str = "") -> ApiError:
    """The error that a Status object (code, reason, message) describes. `what` was asked for."""
    status, reason = int(told.get("code") or 0), str(told.get("reason") or "")
    seconds = retry_after or (told.get("details") or {}).get("retryAfterSeconds") or ""
    return ApiError(
        f"{what}: {told.get('message') or 'no reason given'} ({' '.join(filter(None, (str(status), reason)))})",
        _FIXES.get(status), status=status, reason=reason, retry_after=_seconds(seconds))


def _seconds(value: object) -> float | None:
    """A number of seconds; None for none, and for the date that HTTP allows too."""
    try:
        return max(float(str(value)), 0.0) if value else None
    except ValueError:
        return None


def may_repeat(method: str, error: Exception) -> bool:
    """Whether the request may be sent once more over a fresh connection: it did not reach the server, or is a GET
    whose kept connection was found closed."""
    if isinstance(error, requests.Timeout):
        return False
    inner = error.args[0] if error.args else None
    if isinstance(inner, urllib3.exceptions.ClosedPoolError):
        return True
    return method == "GET" and isinstance(inner, urllib3.exceptions.ProtocolError)


def unreachable(method: str, path: str, server: str, timeout: float, error: Exception) -> ApiError:
    """The error for a request that got no answer."""
    if isinstance(error, requests.exceptions.SSLError):
        return ApiError(
            f"{method} {path}: TLS with {server} failed: {reason(error)}",
            "check the certificate authority and server name in the kubeconfig, and the client certificate's dates")
    timed_out = (requests.Timeout, urllib3.exceptions.TimeoutError)
    why = f"no answer within {timeout:g} s" if isinstance(error, timed_out) else reason(error)
    return ApiError(f"{method} {path}: {server}: {why}", "check that the API server runs and can be reached from here")


def endless(method: str, path: str) -> ApiError:
    return ApiError(f"{method} {path}: the answer is too large or did not end in time")


def broken(method: str, path: str, error: Exception) -> ApiError:
    return ApiError(f"{method} {path}: the answer broke off: {reason(error)}")


def reason(error: BaseException) -> str:
    """The innermost reason, which says more in fewer words than the wrappings around it."""
    inner = error
    for _ in range(6):
        below = _below(inner)
        if below is None:
            break
        inner = below
    text = str(getattr(inner, "strerror", None) or inner)
    return text.rpartition(">: ")[2] or type(inner).__name__


def _below(error: BaseException) -> BaseException | None:
    found = (getattr(error, "reason", None), *error.args, error.__cause__)
    return next((one for one in found if isinstance(one, BaseException)), None)
