"""Each check on facts made by hand: the level, what is named, and that a fix is given."""

import io
from dataclasses import replace
from typing import Any

import pytest

from kubelet_mp.cli.check import line, report
from kubelet_mp.cli.checks import Facts, Finding, RuntimeFacts, run_all
from kubelet_mp.config import KubeletConfiguration, Settings
from kubelet_mp.config.decode import legacy_defaults
from kubelet_mp.host.facts import SYSCTLS, Cgroups, Directory, HostFacts, Port

ROOT = Directory("/var/lib/kubelet", True, "/var/lib/kubelet", True, "ext4", 50 << 30, 100 << 30)
HOST = HostFacts(
    uid=0,
    swaps=(),
    cgroups=Cgroups(2, frozenset({"cpu", "memory"})),
    root=ROOT,
    wall_time=1_800_000_000.0,
    ports=(Port("port", "0.0.0.0", 10250),),
    sysctls=dict(SYSCTLS),
    inotify={"fs.inotify.max_user_instances": 1024, "fs.inotify.max_user_watches": 65536},
)
RUNTIME = RuntimeFacts(
    "unix:///run/c.sock", name="containerd", version="2.1", ready=True, network_ready=True, cgroup_driver="cgroupfs"
)
V1 = frozenset({"cpu", "cpuacct", "cpuset", "memory"})


def found(
    *, runtime: dict[str, Any] | None = None, kubelet: KubeletConfiguration | None = None, **host: Any
) -> list[Finding]:
    """Findings that are not ok, on a machine that is fine but for the given facts."""
    settings = Settings(node_name="n", kubelet=kubelet or legacy_defaults())
    facts = Facts(replace(HOST, **host), replace(RUNTIME, **(runtime or {})))
    return [finding for finding in run_all(settings, facts) if finding.level != "ok"]


def test_a_machine_that_is_fine() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("facts", "level", "name", "word"),
    [
        ({"uid": 1000}, "FAIL", "user", "1000"),
        ({"swaps": ("/dev/sda2",)}, "FAIL", "swap", "/dev/sda2"),
        ({"cgroups": Cgroups(1, V1)}, "FAIL", "cgroups", "cgroup v1"),
        ({"cgroups": Cgroups(0)}, "FAIL", "cgroups", "no cgroup"),
        ({"ports": (Port("port", "0.0.0.0", 10250, "Address already in use"),)}, "FAIL", "port", "10250"),
        ({"root": replace(ROOT, fs_type="nfs4")}, "FAIL", "root directory", "nfs4"),
        ({"root": replace(ROOT, writable=False)}, "FAIL", "root directory", "cannot be written"),
        ({"root": replace(ROOT, free=1 << 20)}, "warn", "root directory", "only 0.0 GiB"),
        ({"root": replace(ROOT, free=9 << 30)}, "warn", "root directory", "only 9.0 GiB"),
        ({"lock_holder": 77}, "FAIL", "instance", "77"),
        ({"wall_time": 0.0}, "warn", "clock", "1970"),
        ({"inotify": {"fs.inotify.max_user_instances": 8}}, "warn", "inotify", "only 8"),
        ({"runtime": {"problem": "the socket does not exist", "fix": "start it"}}, "FAIL", "runtime", "socket"),
        ({"runtime": {"ready": False, "ready_message": "starting"}}, "FAIL", "runtime", "starting"),
        ({"runtime": {"network_ready": False, "network_message": "cni"}}, "FAIL", "network", "cni"),
        ({"runtime": {"cgroup_driver": "systemd"}}, "FAIL", "cgroup driver", "systemd"),
        ({"kubelet": KubeletConfiguration()}, "FAIL", "configuration", "webhook"),
        ({"sysctls": {"vm.overcommit_memory": 0}, "sysctls_writable": False}, "warn", "kernel", "overcommit"),
    ],
)
def test_what_is_wrong_is_named_with_a_fix(facts: dict[str, Any], level: str, name: str, word: str) -> None:
    findings = [finding for finding in found(**facts) if finding.name == name]
    assert findings[0].level == level
    assert word in findings[0].text
    assert all(finding.fix for finding in findings)


def test_what_the_configuration_allows_is_no_failure() -> None:
    relaxed = legacy_defaults().model_copy(update={"fail_swap_on": False, "fail_cgroup_v1": False})
    assert found(kubelet=relaxed, swaps=("/dev/sda2",), cgroups=Cgroups(1, V1)) == []
    assert found(runtime={"cgroup_driver": None}) == []


def test_kernel_settings_are_an_error_only_when_they_may_not_be_changed() -> None:
    strict = legacy_defaults().model_copy(update={"protect_kernel_defaults": True})
    assert found(sysctls={"kernel.panic": 0}) == []
    assert [finding.level for finding in found(sysctls={"kernel.panic": 0}, kubelet=strict)] == ["FAIL"]
    assert found(sysctls={"kernel.panic": None}, kubelet=strict) == []


def test_the_report_sums_up_and_sets_the_exit_code() -> None:
    out = io.StringIO()
    assert report([Finding("ok", "swap", "off"), Finding("warn", "clock", "old", "set it")], out) == 0
    assert out.getvalue().splitlines()[-1] == "the agent can start here"
    out = io.StringIO()
    assert report([Finding("FAIL", "swap", "on", "swapoff -a")], out) == 1
    assert out.getvalue().splitlines() == [
        line(Finding("FAIL", "swap", "on", "swapoff -a")),
        "1 to fix before the agent can start",
    ]
    assert "fix: swapoff -a" in out.getvalue()
