"""The gRPC health service (grpc.health.v1.Health/Check) of a container.

Its two messages have one field each, so they are written and read here: the generated package for them
demands a protobuf release that the CRI stubs cannot live with.
"""

from __future__ import annotations

import grpc

USER_AGENT = "kube-probe/1.37"
SERVING = 1
_STATUS = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}


def check(address: str, service: str, timeout: float) -> tuple[bool, str]:
    """(serving, what went wrong). `address` is host:port; `timeout` in seconds covers dialing and the call."""
    options = [("grpc.primary_user_agent", USER_AGENT), ("grpc.use_local_subchannel_pool", 1),
               ("grpc.enable_http_proxy", 0)]
    with grpc.insecure_channel(address, options=options) as channel:
        call = channel.unary_unary("/grpc.health.v1.Health/Check", request_serializer=_request,
                                   response_deserializer=_status)
        try:
            status = call(service, timeout=timeout, wait_for_ready=True)
        except grpc.RpcError as error:
            return False, _explain(address, service, timeout, error)
    if status == SERVING:
        return True, ""
    return False, f"service unhealthy (responded with {_STATUS.get(status, str(status))!r})".replace("'", '"')


def _explain(address: str, service: str, timeout: float, error: grpc.RpcError) -> str:
    code = error.code()
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return f"this server does not implement the grpc health protocol (grpc.health.v1.Health): {error.details()}"
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"timeout: failed to connect service {address!r} within {timeout:g}s: context deadline exceeded".replace(
            "'", '"')
    return f"error: health rpc probe failed: code {code.name}: {error.details()}"


def _request(service: str) -> bytes:
    name = service.encode()
    return b"" if not name else b"\x0a" + _varint(len(name)) + name


def _status(data: bytes) -> int:
    """HealthCheckResponse.status: field 1, a varint below 128; an absent field is 0."""
    return data[1] if len(data) >= 2 and data[0] == 0x08 else 0


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))
