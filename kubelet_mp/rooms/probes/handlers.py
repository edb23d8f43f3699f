"""Running one probe: exec, httpGet, tcpSocket or grpc. Blocks for at most about the probe's timeout."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kubelet_mp.errors import RuntimeCallError, RuntimeTimeout
from kubelet_mp.host import httpprobe
from kubelet_mp.host.plugins import grpchealth
from kubelet_mp.model import clock
from kubelet_mp.model.expansion import expand_all
from kubelet_mp.model.probes import Outcome, Probe, http_request, port_number
from kubelet_mp.model.runtime import ExecResult

MAX_OUTPUT = 10 * 1024
TRIES = 3


class Executor(Protocol):
    """What exec probes need of the runtime."""

    def exec_sync(self, container_id: str, command: Sequence[str], timeout: int) -> ExecResult:
        """Run it to its end; RuntimeTimeout after `timeout` s, RuntimeCallError if it cannot be run."""


@dataclass(frozen=True, slots=True)
class Target:
    """The container that is probed."""

    container: Mapping[str, Any]
    container_id: str
    pod_ip: str


def run(probe: Probe, target: Target, runtime: Executor) -> Outcome:
    """The outcome of one run; what cannot be run at all is tried up to three times."""
    outcome = Outcome(False, "missing probe handler", errored=True)
    for _ in range(TRIES):
        outcome = _run_once(probe, target, runtime)
        if not outcome.errored:
            break
    return outcome


def _run_once(probe: Probe, target: Target, runtime: Executor) -> Outcome:
    for field, handler in _HANDLERS.items():
        if probe.handler.get(field) is not None:
            try:
                return handler(probe, target, runtime)
            except ValueError as error:
                return Outcome(False, str(error), errored=True)
    return Outcome(False, f"missing probe handler for {target.container.get('name')}", errored=True)


def _exec(probe: Probe, target: Target, runtime: Executor) -> Outcome:
    env = {e["name"]: e.get("value") or "" for e in target.container.get("env") or () if not e.get("valueFrom")}
    command = expand_all(probe.handler["exec"].get("command") or [], env)
    try:
        result = runtime.exec_sync(target.container_id, command, int(probe.timeout))
    except RuntimeTimeout as error:
        return Outcome(False, error.message)
    except RuntimeCallError as error:
        return Outcome(False, error.message, errored=True)
    output = (result.stdout + result.stderr)[:MAX_OUTPUT].decode("utf-8", "replace")
    return Outcome(result.exit_code == 0, output)


def _http(probe: Probe, target: Target, runtime: Executor) -> Outcome:
    url, headers = http_request(target.container, probe.handler["httpGet"], target.pod_ip)
    try:
        answer = httpprobe.get(url, headers, probe.timeout, clock.monotonic)
    except httpprobe.ProbeFailed as error:
        return Outcome(False, str(error))
    if answer.foreign:
        return Outcome(True, f"Probe terminated redirects, Response body: {answer.body}", warning=True)
    if 200 <= answer.status < 400:
        return Outcome(True, answer.body)
    return Outcome(False, f"HTTP probe failed with statuscode: {answer.status}")


def _tcp(probe: Probe, target: Target, runtime: Executor) -> Outcome:
    action = probe.handler["tcpSocket"]
    host = action.get("host") or target.pod_ip
    problem = httpprobe.tcp(host, port_number(target.container, action.get("port")), probe.timeout)
    return Outcome(not problem, problem)


def _grpc(probe: Probe, target: Target, runtime: Executor) -> Outcome:
    action = probe.handler["grpc"]
    host = f"[{target.pod_ip}]" if ":" in target.pod_ip else target.pod_ip
    serving, problem = grpchealth.check(f"{host}:{action['port']}", action.get("service") or "", probe.timeout)
    return Outcome(serving, problem)


_HANDLERS: dict[str, Callable[[Probe, Target, Executor], Outcome]] = {
    "exec": _exec, "httpGet": _http, "tcpSocket": _tcp, "grpc": _grpc,
}
