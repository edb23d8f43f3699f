"""The rig itself: pods by hand on both runtimes, and an end without a trace."""

from __future__ import annotations

import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from ipaddress import ip_address, ip_network

import pytest

from integration.rig import images, layout, sweep
from integration.rig.layout import Layout
from integration.rig.runtime import Runtime, reserved, start

PAGE = ("sh", "-c", "echo it works > /tmp/index.html; exec httpd -f -p 80 -h /tmp")


@pytest.fixture(params=["runtime", "debian_runtime"])
def any_runtime(request: pytest.FixtureRequest) -> Runtime:
    found: Runtime = request.getfixturevalue(request.param)
    return found


def eventually(attempt: Callable[[], str], seconds: float = 10) -> str:
    """The first result of `attempt` that is no OSError."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return attempt()
        except OSError:
            if time.monotonic() > deadline:
                raise


def page(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/", timeout=5) as answer:
        return str(answer.read().decode())


def test_versions(runtime: Runtime, debian_runtime: Runtime) -> None:
    with runtime.cri() as new, debian_runtime.cri() as old:
        assert new.version()[1].startswith("v2.")
        assert not old.version()[1].startswith("v2.")


def test_pod_serves_a_page_on_its_own_address(any_runtime: Runtime) -> None:
    with any_runtime.cri() as cri:
        assert {images.BUSYBOX, images.PAUSE} <= cri.image_names()
        sandbox, container = cri.run("page", *PAGE, cgroup=f"{any_runtime.layout.cgroup}/page")
        address = cri.address(sandbox)
        assert ip_address(address) in ip_network(any_runtime.layout.subnet)
        assert eventually(lambda: page(address)) == "it works\n"
        assert cri.exec(container, "sh", "-c", "hostname; exit 3").code == 3
        assert [one.id for one in cri.containers(pod="page", running=True)] == [container]
        cri.remove(sandbox)
        assert cri.sandboxes("page") == []


def test_pods_outlive_the_daemon(any_runtime: Runtime) -> None:
    with any_runtime.cri() as cri:
        sandbox, container = cri.run("stays", "sleep", "3600", cgroup=f"{any_runtime.layout.cgroup}/stays")
        began = cri.inspect(container)[0].started_at
    any_runtime.stop_daemon()
    assert not any_runtime.running()
    any_runtime.start_daemon()
    with any_runtime.cri() as cri:
        assert [one.id for one in cri.containers(pod="stays", running=True)] == [container]
        assert cri.inspect(container)[0].started_at == began
        cri.remove(sandbox)


def test_crictl_sees_the_same(runtime: Runtime) -> None:
    with runtime.cri() as cri:
        sandbox, container = cri.run("seen", "sleep", "3600", cgroup=f"{runtime.layout.cgroup}/seen")
        assert runtime.crictl("ps", "--quiet", "--no-trunc").split() == [container]
        cri.remove(sandbox)


@pytest.fixture
def other() -> Iterator[Layout]:
    place = Layout(f"{layout.tests().name}-other", "10.216.0.0/24")
    with reserved(place):
        yield place
        Runtime(place, layout.built_binaries()).stop()


def test_end_after_a_crash_leaves_no_trace(other: Layout) -> None:
    runtime = start(other, layout.built_binaries())
    with runtime.cri() as cri:
        cri.run("one", "sleep", "3600", cgroup=f"{other.cgroup}/one")
        cri.run("two", "sleep", "3600", cgroup=f"{other.cgroup}/two")
    for pid in sweep.processes(f"{other.run}/containerd.toml"):
        sweep.kill(pid, signal.SIGKILL)
    assert sweep.leftovers(other), "the crash left nothing, so this test shows nothing"
    assert runtime.stop() == []
    assert sweep.leftovers(other) == []
    assert not other.run.exists()
    assert not other.data.exists()


def test_sweep_removes_what_an_orderly_end_cannot(other: Layout) -> None:
    runtime = start(other, layout.built_binaries())
    with runtime.cri() as cri:
        cri.run("one", "sleep", "3600", cgroup=f"{other.cgroup}/one")
    runtime.stop_daemon()
    assert any(line.startswith("mount") for line in sweep.leftovers(other))
    sweep.sweep(other)
    assert sweep.leftovers(other) == []
