"""The checks of `kubelet-mp check`: each a pure function from settings and facts to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from kubelet_mp.config import Settings, preflight
from kubelet_mp.errors import ConfigError
from kubelet_mp.host.facts import SYSCTLS, HostFacts

Level = Literal["ok", "warn", "FAIL"]

_GIB = 1 << 30
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "ceph", "fuse.sshfs", "9p")
_INOTIFY = {"fs.inotify.max_user_instances": 128, "fs.inotify.max_user_watches": 8192}
_YEARS = range(2025, 2100)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. fix: what to do, "" when ok."""

    level: Level
    name: str
    text: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class RuntimeFacts:
    """What the container runtime said. problem: why it could not be asked, "" when it could;
    cgroup_driver: None when the runtime cannot tell."""

    endpoint: str
    problem: str = ""
    fix: str = ""
    name: str = ""
    version: str = ""
    ready: bool = False
    ready_message: str = ""
    network_ready: bool = False
    network_message: str = ""
    cgroup_driver: str | None = None


@dataclass(frozen=True, slots=True)
class ApiFacts:
    """What the API server said to the user of the file `kubeconfig`. problem: why it could not be asked.

    bootstrap_because: why the bootstrap kubeconfig is the one that is used now. user, not_after: of the client
    certificate, if there is one; seconds since the epoch. unusable: why it cannot be used.
    """

    kubeconfig: str
    bootstrap_because: str = ""
    problem: str = ""
    fix: str = ""
    server: str = ""
    version: str = ""
    user: str = ""
    not_after: float = 0.0
    unusable: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """api: None where the agent is standalone."""

    host: HostFacts
    runtime: RuntimeFacts
    api: ApiFacts | None = None


def run_all(settings: Settings, facts: Facts) -> list[Finding]:
    """Every finding, in the order of the report."""
    return [finding for check in CHECKS for finding in check(settings, facts)]


def _refused(name: str, errors: Iterable[ConfigError], fine: str = "") -> Iterator[Finding]:
    """The errors as FAIL lines, or `fine` as an ok line."""
    found = [Finding("FAIL", name, error.message, error.fix or "") for error in errors]
    yield from found or ([Finding("ok", name, fine)] if fine else [])


def user(settings: Settings, facts: Facts) -> Iterator[Finding]:
    if facts.host.uid == 0:
        yield Finding("ok", "user", "runs as root")
    else:
        yield Finding("FAIL", "user", f"runs as uid {facts.host.uid}", "run it as root")


def configuration(settings: Settings, facts: Facts) -> Iterator[Finding]:
    errors = [
        *preflight.webhooks(settings), *preflight.certificates(settings), *preflight.not_implemented(settings)]
    mode = "standalone" if settings.standalone else "with an API server"
    yield from _refused("configuration", errors, f"valid, node {settings.node_name}, {mode}")
    for text in (*settings.warnings, *preflight.without_effect(settings)):
        yield Finding("warn", "configuration", text, "take it out to silence this")


def api_server(settings: Settings, facts: Facts) -> Iterator[Finding]:
    said = facts.api
    if said is None:
        return
    if said.problem:
        yield Finding("FAIL", "API server", said.problem, said.fix)
    elif said.unusable:
        yield Finding("FAIL", "API server", f"{said.kubeconfig}: {said.unusable}",
                      "give --bootstrap-kubeconfig, or a kubeconfig with a new certificate")
    else:
        yield Finding("ok", "API server", f"{said.version} at {said.server}")


def client_certificate(settings: Settings, facts: Facts) -> Iterator[Finding]:
    said = facts.api
    if said is None or said.problem or said.unusable:
        return
    if said.bootstrap_because:
        yield Finding("warn", "certificate", f"will be asked for: {said.bootstrap_because}",
                      "if none comes, see kubectl get csr: somebody may have to approve it")
    elif said.user:
        end = datetime.fromtimestamp(said.not_after, UTC)
        yield Finding("ok", "certificate", f"{said.user}, until {end:%Y-%m-%d %H:%M:%S} UTC")
        yield from _other_user(settings, said.user)


def _other_user(settings: Settings, user: str) -> Iterator[Finding]:
    """With Node authorization a node may only be served under its own name."""
    if user.startswith("system:node:") and user != f"system:node:{settings.node_name}":
        yield Finding("FAIL", "certificate", f"is that of {user}, and this is node {settings.node_name}",
                      "give --hostname-override, or the kubeconfig of this node")


def runtime(settings: Settings, facts: Facts) -> Iterator[Finding]:
    said = facts.runtime
    if said.problem:
        yield Finding("FAIL", "runtime", f"{said.endpoint}: {said.problem}", said.fix)
    elif not said.ready:
        text = f"{said.name} {said.version} is not ready: {said.ready_message}"
        yield Finding("FAIL", "runtime", text, "see the log of the runtime")
    else:
        yield Finding("ok", "runtime", f"{said.name} {said.version} at {said.endpoint}")


def network(settings: Settings, facts: Facts) -> Iterator[Finding]:
    said = facts.runtime
    if said.problem:
        yield Finding("warn", "network", "unknown without the runtime", "make the runtime answer first")
    elif said.network_ready:
        yield Finding("ok", "network", "the runtime's network (CNI) is ready")
    else:
        fix = "put a CNI configuration into /etc/cni/net.d and the plugins where the runtime looks for them"
        yield Finding("FAIL", "network", f"not ready: {said.network_message}", fix)


def cgroups(settings: Settings, facts: Facts) -> Iterator[Finding]:
    kubelet, found = settings.kubelet, facts.host.cgroups
    errors = [
        *preflight.cgroup_version(kubelet, found.version),
        *preflight.cgroup_behaviour(kubelet, found.version),
        *preflight.cgroup_controllers(kubelet, found.version, found.controllers, cfs_period=found.cfs_period),
    ]
    yield from _refused("cgroups", errors, f"version {found.version}")
    if not facts.runtime.problem:
        driver = facts.runtime.cgroup_driver
        known = "the runtime's too" if driver else "the runtime cannot tell its own"
        fine = f"{kubelet.cgroup_driver}, {known}"
        yield from _refused("cgroup driver", preflight.driver(kubelet, driver), fine)


def swap(settings: Settings, facts: Facts) -> Iterator[Finding]:
    swaps = facts.host.swaps
    fine = "off" if not swaps else f"on ({', '.join(swaps)}), allowed by failSwapOn: false"
    yield from _refused("swap", preflight.swap(settings.kubelet, swaps), fine)


def ports(settings: Settings, facts: Facts) -> Iterator[Finding]:
    for port in facts.host.ports:
        where = f"{port.address}:{port.number} ({port.field})"
        if port.problem:
            fix = f"find who has it with ss -ltnp 'sport = :{port.number}', or set {port.field} to another"
            yield Finding("FAIL", "port", f"{where}: {port.problem}", fix)
        else:
            yield Finding("ok", "port", f"{where} is free")


def root_directory(settings: Settings, facts: Facts) -> Iterator[Finding]:
    root = facts.host.root
    problem = _root_problem(settings, facts)
    if problem:
        yield Finding("FAIL", "root directory", *problem)
    elif root.free < _GIB or root.free * 10 < root.size:
        fix = "free some space, or put --root-dir on another filesystem"
        yield Finding("warn", "root directory", f"{root.path}: only {root.free / _GIB:.1f} GiB free", fix)
    else:
        state = "exists" if root.exists else f"will be made in {root.nearest}"
        yield Finding("ok", "root directory", f"{root.path} {state}, {root.free / _GIB:.1f} GiB free")


def _root_problem(settings: Settings, facts: Facts) -> tuple[str, str] | None:
    root = facts.host.root
    if not root.writable:
        return f"{root.path}: {root.nearest} cannot be written", "choose another --root-dir or run as root"
    if root.fs_type in _REMOTE:
        return f"{root.path} is on {root.fs_type}", "put --root-dir on a local filesystem"
    return None


def instance(settings: Settings, facts: Facts) -> Iterator[Finding]:
    holder = facts.host.lock_holder
    if holder is None:
        yield Finding("ok", "instance", "no other instance uses this root directory")
    else:
        text = f"process {holder} already uses {settings.root_dir} (lock {settings.instance_lock})"
        yield Finding("FAIL", "instance", text, "stop it, or give this one another --root-dir")


def clock(settings: Settings, facts: Facts) -> Iterator[Finding]:
    now = datetime.fromtimestamp(facts.host.wall_time, UTC)
    if now.year in _YEARS:
        yield Finding("ok", "clock", f"{now:%Y-%m-%d %H:%M:%S} UTC")
    else:
        fix = "set the clock, e.g. timedatectl set-ntp true; certificates and logs depend on it"
        yield Finding("warn", "clock", f"says {now:%Y-%m-%d}, which cannot be right", fix)


def kernel(settings: Settings, facts: Facts) -> Iterator[Finding]:
    """Differing settings are written at start, unless protectKernelDefaults makes them an error."""
    strict = settings.kubelet.protect_kernel_defaults
    writes = facts.host.sysctls_writable
    differ = False
    for name, wanted in SYSCTLS.items():
        value = facts.host.sysctls.get(name)
        if value is None or value == wanted:
            continue
        differ = True
        fix = f"sysctl -w {name}={wanted}" + (" or protectKernelDefaults: false" if strict else "")
        if strict:
            yield Finding("FAIL", "kernel", f"{name} is {value}, not {wanted}", fix)
        elif not writes:
            yield Finding("warn", "kernel", f"{name} is {value}, not {wanted}, and cannot be written", fix)
    if not differ:
        yield Finding("ok", "kernel", "settings are as wanted")
    elif writes and not strict:
        yield Finding("ok", "kernel", "settings differ and can be written at start")


def inotify(settings: Settings, facts: Facts) -> Iterator[Finding]:
    low = False
    for name, least in _INOTIFY.items():
        value = facts.host.inotify.get(name)
        if value is not None and value < least:
            low = True
            fix = f"sysctl -w {name}={least} (and more with many pods)"
            yield Finding("warn", "inotify", f"{name} is only {value}", fix)
    if not low:
        yield Finding("ok", "inotify", "limits are high enough")


CHECKS: tuple[Callable[[Settings, Facts], Iterator[Finding]], ...] = (
    user,
    configuration,
    api_server,
    client_certificate,
    runtime,
    network,
    cgroups,
    swap,
    ports,
    root_directory,
    instance,
    clock,
    kernel,
    inotify,
)
