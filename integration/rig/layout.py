"""Where a private runtime keeps everything: a few folders, one bridge, one cgroup, so that all can go."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from integration.rig import debs, goparts


@dataclass(frozen=True)
class Binaries:
    """A container runtime's programs."""

    containerd: Path
    ctr: Path
    runc: Path
    cni: Path  # folder of the CNI plugins
    crictl: Path | None = None

    @property
    def path(self) -> str:
        """PATH for containerd, which looks its shim up there."""
        return f"{self.containerd.parent}:{os.environ.get('PATH', '')}:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Layout:
    """The places of one private runtime. `name` tells it from others on the machine."""

    name: str
    subnet: str

    @property
    def run(self) -> Path:
        """Gone after a reboot: socket, state, network namespaces, process id."""
        return Path(f"/run/kubelet-mp-{self.name}")

    @property
    def data(self) -> Path:
        """Kept over a reboot: images, snapshots, address leases."""
        return Path(f"/var/lib/kubelet-mp-{self.name}")

    @property
    def log(self) -> Path:
        return Path(f"/var/log/kubelet-mp-{self.name}")

    @property
    def socket(self) -> Path:
        return self.run / "containerd.sock"

    @property
    def endpoint(self) -> str:
        return f"unix://{self.socket}"

    @property
    def network(self) -> str:
        return f"kubelet-mp-{self.name}"

    @property
    def bridge(self) -> str:
        """An interface name, of at most 15 characters."""
        return "kmp" + hashlib.sha256(self.name.encode()).hexdigest()[:8]

    @property
    def cgroup(self) -> str:
        """Every cgroup of the pods is made below this one."""
        return f"/kmp-{self.name}"

    @property
    def cluster_network(self) -> str:
        """Addresses for a control plane beside this runtime: its Services, its API server, its nodes."""
        octets = self.subnet.partition("/")[0].split(".")
        return f"{octets[0]}.{int(octets[1]) + 20}.{octets[2]}.0/22"


def quickstart() -> Layout:
    return Layout("quickstart", "10.213.0.0/24")


def tests() -> Layout:
    """The runtime of the tests. `KUBELET_MP_INSTANCE` names a second one on the same machine."""
    instance = os.environ.get("KUBELET_MP_INSTANCE")
    if not instance:
        return Layout("test", "10.214.0.0/22")
    third = int(hashlib.sha256(instance.encode()).hexdigest()[:4], 16) % 63 * 4
    return Layout(f"test-{instance}", f"10.215.{third}.0/22")


def debian_tests() -> Layout:
    """Beside the tests' own runtime, the same on Debian's containerd."""
    base = tests()
    return Layout(base.name.replace("test", "debian", 1), base.subnet.replace("10.21", "10.22", 1))


def second_node() -> Layout:
    """Beside the tests' own runtime, one for a second node of the same cluster."""
    base = tests()
    return Layout(base.name.replace("test", "second", 1), base.subnet.replace("10.21", "10.20", 1))


def by_hand(debian: bool) -> Layout:
    """An agent that is driven from a command line, beside a run of the tests."""
    base = debian_tests() if debian else tests()
    return Layout(f"hand-{base.name}", base.subnet.replace("10.2", "10.1", 1))


def debian_binaries() -> Binaries:
    """Debian's containerd, runc and CNI plugins (Debian 12: containerd 1.6, runc 1.1, plugins 1.1)."""
    root = debs.ensure("runtime", debs.RUNTIME)
    usr = root / "usr"
    programs = usr / "bin"
    return Binaries(programs / "containerd", programs / "ctr", usr / "sbin" / "runc", usr / "lib" / "cni")


def cluster_programs() -> Path:
    """The folder with what integration/cluster/go.mod pins: the control plane, kubectl, the upstream kubelet."""
    return goparts.ensure_cluster()


def built_binaries() -> Binaries:
    """What integration/go.mod pins: containerd 2, runc, crictl and the CNI plugins."""
    root = goparts.ensure()
    return Binaries(root / "containerd", root / "ctr", root / "runc", root, root / "crictl")
