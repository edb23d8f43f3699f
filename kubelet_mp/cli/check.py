"""`kubelet-mp check [flags]`: can this machine run the agent with these flags? One line a check, each with the fix.

Nothing is changed on the machine; ports are bound for an instant. Exit code 0 when the agent can start, else 1.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from kubelet_mp.cli.checks import ApiFacts, Facts, Finding, RuntimeFacts, run_all
from kubelet_mp.config import Settings
from kubelet_mp.config.load import Shown, load
from kubelet_mp.errors import BootError, RuntimeCallError
from kubelet_mp.host import facts as host
from kubelet_mp.host.cri import Runtime
from kubelet_mp.model import clock

_TIMEOUT = 5.0


def run(argv: Sequence[str], out: TextIO | None = None) -> int:
    """Print the report for these flags of the agent. Returns the exit code."""
    out = sys.stdout if out is None else out
    try:
        settings = load(argv)
    except Shown as shown:
        print(shown.text, file=out)
        return 0
    except BootError as error:
        print(line(Finding("FAIL", "configuration", error.message, error.fix or "")), file=out)
        return 1
    return report(run_all(settings, gather(settings)), out)


def report(findings: Iterable[Finding], out: TextIO) -> int:
    """Print one line a finding and the sum. Returns the exit code."""
    findings = list(findings)
    for finding in findings:
        print(line(finding), file=out)
    failed = sum(finding.level == "FAIL" for finding in findings)
    print(f"{failed} to fix before the agent can start" if failed else "the agent can start here", file=out)
    return 1 if failed else 0


def line(finding: Finding) -> str:
    """`FAIL  swap            text — fix: what to do`."""
    fix = f" — fix: {finding.fix}" if finding.fix else ""
    return f"{finding.level:<5} {finding.name:<15} {finding.text}{fix}"


def gather(settings: Settings, proc: str = "/proc", sys_cgroup: str = "/sys/fs/cgroup") -> Facts:
    """All facts, read from this machine now."""
    return Facts(
        host=host.HostFacts(
            uid=os.geteuid(),
            swaps=host.active_swaps(proc),
            cgroups=host.cgroups(proc, sys_cgroup),
            root=host.directory(settings.root_dir, proc),
            wall_time=clock.wall_time(),
            ports=tuple(host.try_port(*port) for port in wanted_ports(settings)),
            sysctls=host.sysctls(proc),
            sysctls_writable=host.sysctls_writable(proc),
            inotify=host.inotify_limits(proc),
            lock_holder=host.lock_holder(settings.instance_lock, proc),
        ),
        runtime=ask_runtime(settings.kubelet.container_runtime_endpoint),
        api=None if settings.standalone else _ask_api(settings),
    )


def _ask_api(settings: Settings) -> ApiFacts | None:
    from kubelet_mp.cli import apiserver  # its libraries are needed only here

    return apiserver.ask(settings, clock.wall_time())


def wanted_ports(settings: Settings) -> Iterator[tuple[str, str, int]]:
    """(field, address, number) of every port that the agent will listen on."""
    kubelet = settings.kubelet
    if kubelet.enable_server:
        yield "port", kubelet.address, kubelet.port
    if kubelet.read_only_port:
        yield "readOnlyPort", kubelet.address, kubelet.read_only_port
    if kubelet.healthz_port:
        yield "healthzPort", kubelet.healthz_bind_address, kubelet.healthz_port
    if settings.cadvisor_port:
        yield "--cadvisor-port", kubelet.address, settings.cadvisor_port


def ask_runtime(endpoint: str, timeout: float = _TIMEOUT) -> RuntimeFacts:
    """What the runtime at a CRI endpoint says of itself; timeout in seconds a call."""
    runtime = Runtime(endpoint, timeout=timeout)
    try:
        return _answers(endpoint, runtime)
    except RuntimeCallError as error:
        fix = error.fix or "see the log of the runtime, and whether containerRuntimeEndpoint is its socket"
        return RuntimeFacts(endpoint, error.message, fix)
    finally:
        runtime.close()


def _answers(endpoint: str, runtime: Runtime) -> RuntimeFacts:
    """Raises RuntimeCallError."""
    state = runtime.status()
    return RuntimeFacts(
        endpoint,
        name=state.name,
        version=state.version,
        ready=state.ready,
        ready_message=state.message,
        network_ready=state.network_ready,
        network_message=state.network_message,
        cgroup_driver=runtime.runtime_config(),
    )
