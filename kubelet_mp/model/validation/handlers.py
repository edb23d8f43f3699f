"""Checks of probes and lifecycle hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubelet_mp.model.validation import names
from kubelet_mp.model.validation.errors import Errors

Json = dict[str, Any]

_PROBE_KINDS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_KINDS = ("exec", "httpGet", "tcpSocket", "sleep")
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_SIGNALS = frozenset([
    *(f"SIG{name}" for name in (
        "ABRT", "ALRM", "BUS", "CHLD", "CLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "IOT", "KILL", "PIPE",
        "POLL", "PROF", "PWR", "QUIT", "SEGV", "STKFLT", "STOP", "SYS", "TERM", "TRAP", "TSTP", "TTIN",
        "TTOU", "URG", "USR1", "USR2", "VTALRM", "WINCH", "XCPU", "XFSZ", "RTMIN", "RTMAX",
    )),
    *(f"SIGRTMIN+{number}" for number in range(1, 16)), *(f"SIGRTMAX-{number}" for number in range(1, 15)),
])


def check_probes(container: Json, path: str, errors: Errors) -> None:
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            _probe(container[name], f"{path}.{name}", errors, readiness=name == "readinessProbe")


def _probe(probe: Json, path: str, errors: Errors, *, readiness: bool) -> None:
    _handler(probe, _PROBE_KINDS, path, errors, grace=0)
    for field in _COUNTS:
        errors.not_negative(f"{path}.{field}", probe.get(field, 0))
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and readiness:
        errors.invalid(f"{path}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")
    elif grace is not None and grace <= 0:
        errors.invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")
    if not readiness and probe["successThreshold"] != 1:
        errors.invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def check_lifecycle(lifecycle: Json, path: str, errors: Errors, *, grace: int, os_name: str) -> None:
    """Hooks and stop signal; `grace` is the pod's termination grace period in seconds."""
    for name in ("postStart", "preStop"):
        if name in lifecycle:
            _handler(lifecycle[name], _HOOK_KINDS, f"{path}.{name}", errors, grace=grace)
    signal = lifecycle.get("stopSignal")
    if signal is not None and not os_name:
        errors.forbidden(f"{path}.stopSignal", "may not be set for containers with empty `spec.os.name`")
    elif signal is not None and os_name == "linux" and signal not in _SIGNALS:
        errors.unsupported(f"{path}.stopSignal", signal, sorted(_SIGNALS))


def _handler(holder: Json, kinds: tuple[str, ...], path: str, errors: Errors, *, grace: int) -> None:
    given = [kind for kind in kinds if kind in holder]
    if not given:
        errors.required(path, "must specify a handler type")
    for kind in given[1:]:
        errors.forbidden(f"{path}.{kind}", "may not specify more than 1 handler type")
    for kind in given[:1]:
        if kind == "sleep":
            _sleep(holder[kind], f"{path}.sleep", errors, grace)
        else:
            _CHECKS[kind](holder[kind], f"{path}.{kind}", errors)


def _exec(action: Json, path: str, errors: Errors) -> None:
    if not action.get("command"):
        errors.required(f"{path}.command")


def _http(action: Json, path: str, errors: Errors) -> None:
    _port(action.get("port", 0), f"{path}.port", errors)
    if action["scheme"] not in ("HTTP", "HTTPS"):
        errors.unsupported(f"{path}.scheme", action["scheme"], ("HTTP", "HTTPS"))
    for header in action.get("httpHeaders", []):
        name = header.get("name", "")
        errors.each_invalid(f"{path}.httpHeaders", name, names.header_name(name))
    if action.get("protocol", "HTTP1") not in ("HTTP1", "HTTP2"):
        errors.unsupported(f"{path}.protocol", action["protocol"], ("HTTP1", "HTTP2"))


def _tcp(action: Json, path: str, errors: Errors) -> None:
    _port(action.get("port", 0), f"{path}.port", errors)


def _grpc(action: Json, path: str, errors: Errors) -> None:
    _port(action.get("port", 0), f"{path}.port", errors)
    if action.get("mode", "TLS") not in ("Plaintext", "TLS"):
        errors.unsupported(f"{path}.mode", action["mode"], ("Plaintext", "TLS"))


def _sleep(action: Json, path: str, errors: Errors, grace: int) -> None:
    seconds = action.get("seconds", 0)
    if not 0 <= seconds <= grace:
        detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        errors.invalid(path, seconds, detail)


def _port(port: int | str, path: str, errors: Errors) -> None:
    problems = names.port_name(port) if isinstance(port, str) else names.port_number(port)
    errors.each_invalid(path, port, problems)


_CHECKS: dict[str, Callable[[Json, str, Errors], None]] = {
    "exec": _exec, "httpGet": _http, "tcpSocket": _tcp, "grpc": _grpc,
}
