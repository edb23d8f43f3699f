"""Probes as data: what one asks, and what a row of outcomes means (Kubernetes 1.37 pkg/kubelet/prober)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

LIVENESS, READINESS, STARTUP = "liveness", "readiness", "startup"
KINDS = (STARTUP, LIVENESS, READINESS)
SUCCESS, FAILURE, UNKNOWN = "success", "failure", "unknown"
INITIAL = {LIVENESS: SUCCESS, READINESS: FAILURE, STARTUP: UNKNOWN}
FIELD = {kind: f"{kind}Probe" for kind in KINDS}
USER_AGENT = "kube-probe/1.37"


@dataclass(frozen=True, slots=True)
class Probe:
    """One probe of a container; times in seconds, `handler` the decoded probe object."""

    kind: str
    handler: Mapping[str, Any]
    initial_delay: float = 0.0
    timeout: float = 1.0
    period: float = 10.0
    success_threshold: int = 1
    failure_threshold: int = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run of a probe gave. `errored`: it could not be run at all, and proves nothing."""

    ok: bool
    message: str = ""
    warning: bool = False
    errored: bool = False


@dataclass(frozen=True, slots=True)
class Tally:
    """`result` as others see it, the newest raw result and how often in a row it came; `final`: stop probing."""

    result: str
    newest: str = ""
    run: int = 0
    final: bool = False


def probes_of(container: Mapping[str, Any]) -> list[Probe]:
    """The probes of a container in the order startup, liveness, readiness."""
    return [_probe(kind, container[FIELD[kind]]) for kind in KINDS if container.get(FIELD[kind])]


def _probe(kind: str, handler: Mapping[str, Any]) -> Probe:
    def number(key: str, default: int) -> int:
        value = handler.get(key)
        return default if not value else int(value)

    return Probe(kind, handler, number("initialDelaySeconds", 0), number("timeoutSeconds", 1),
                 number("periodSeconds", 10), number("successThreshold", 1), number("failureThreshold", 3))


def start(kind: str) -> Tally:
    return Tally(INITIAL[kind])


def count(probe: Probe, tally: Tally, outcome: Outcome) -> Tally:
    """The tally after one more outcome. Errors change nothing; below the threshold the result stays."""
    if outcome.errored or tally.final:
        return tally
    raw = SUCCESS if outcome.ok else FAILURE
    run = tally.run + 1 if raw == tally.newest else 1
    threshold = probe.success_threshold if outcome.ok else probe.failure_threshold
    if run < threshold:
        return replace(tally, newest=raw, run=run)
    final = (raw == FAILURE and probe.kind in (LIVENESS, STARTUP)) or (raw == SUCCESS and probe.kind == STARTUP)
    return Tally(raw, raw, run, final)


def port_number(container: Mapping[str, Any], port: Any) -> int:
    """The number of a port given by number or name. Raises ValueError if it is neither."""
    number = port
    if not isinstance(port, int) and not str(port).isdigit():
        named = (p["containerPort"] for p in container.get("ports") or () if p.get("name") == port)
        number = next(named, 0)
    if not 0 < int(number) < 65536:
        raise ValueError(f"invalid port {port!r} of container {container.get('name')}")
    return int(number)


def http_request(
    container: Mapping[str, Any], action: Mapping[str, Any], pod_ip: str
) -> tuple[str, list[tuple[str, str]]]:
    """(URL, headers) of an httpGet handler. Raises ValueError for a port that cannot be resolved."""
    host = action.get("host") or pod_ip
    scheme = str(action.get("scheme") or "HTTP").lower()
    host = f"[{host}]" if ":" in host else host
    path = "/" + str(action.get("path") or "").lstrip("/")
    url = f"{scheme}://{host}:{port_number(container, action.get('port'))}{path}"
    given = [(h["name"], str(h.get("value") or "")) for h in action.get("httpHeaders") or ()]
    return url, [(_canonical(name), value) for name, value in _with_defaults(given)]


def _with_defaults(given: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """User-Agent and Accept unless given; one of those given with an empty value is left out."""
    names = {name.lower() for name, _ in given}
    headers = [(n, v) for n, v in (("User-Agent", USER_AGENT), ("Accept", "*/*")) if n.lower() not in names]
    return headers + [(n, v) for n, v in given if v or n.lower() not in ("user-agent", "accept")]


def _canonical(name: str) -> str:
    return "-".join(part[:1].upper() + part[1:].lower() for part in name.split("-"))
