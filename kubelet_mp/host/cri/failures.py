"""gRPC failures as errors of our own."""

from __future__ import annotations

from typing import Any

import grpc

from kubelet_mp.errors import (
    RuntimeCallError,
    RuntimeNotFound,
    RuntimeTimeout,
    RuntimeUnavailable,
    RuntimeUnimplemented,
    StartError,
)

_KINDS: dict[grpc.StatusCode, type[RuntimeCallError]] = {
    grpc.StatusCode.NOT_FOUND: RuntimeNotFound,
    grpc.StatusCode.UNAVAILABLE: RuntimeUnavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: RuntimeTimeout,
    grpc.StatusCode.UNIMPLEMENTED: RuntimeUnimplemented,
}
_ALIEN = ("Trying to connect an http1.x server", "Failed parsing HTTP/2")


class NotCRI(StartError, RuntimeCallError):
    """Something answers at the endpoint, but it does not speak CRI v1."""


def failure(method: str, endpoint: str, error: grpc.RpcError) -> RuntimeCallError:
    """The error of ours for a failed call. Its message has Go's form: rpc error: code = X desc = Y."""
    code, detail = _code(error), _details(error)
    kind = _KINDS.get(code, RuntimeCallError)
    return kind(f"rpc error: code = {go_name(code)} desc = {detail}", _fix(code, endpoint), method=method,
                code=code.name, detail=detail)


def not_cri(endpoint: str, why: str) -> NotCRI:
    return NotCRI(
        f'validate CRI v1 runtime API for endpoint "{endpoint}": {why}',
        "set containerRuntimeEndpoint to the socket of a CRI v1 runtime, and see that its CRI plugin is enabled",
        method="Version", detail=why,
    )


def is_alien(error: RuntimeCallError) -> bool:
    """Whether the answer can only come from something that is no CRI v1 runtime."""
    return isinstance(error, RuntimeUnimplemented) or any(text in error.message for text in _ALIEN)


def go_name(code: grpc.StatusCode) -> str:
    """The code as Go prints it: NOT_FOUND → NotFound."""
    return "Canceled" if code is grpc.StatusCode.CANCELLED else code.name.title().replace("_", "")


def _code(error: grpc.RpcError) -> grpc.StatusCode:
    code: Any = error.code() if hasattr(error, "code") else None
    return code if isinstance(code, grpc.StatusCode) else grpc.StatusCode.UNKNOWN


def _details(error: grpc.RpcError) -> str:
    return (error.details() or "") if hasattr(error, "details") else str(error)


def _fix(code: grpc.StatusCode, endpoint: str) -> str | None:
    if code is grpc.StatusCode.UNAVAILABLE:
        return f"start the container runtime, or set containerRuntimeEndpoint (now {endpoint}) to its socket"
    return None
