"""`kubelet-mp check` as a whole: a runtime that answers, none, and something else on the socket."""

import io
import socket
from pathlib import Path

import pytest

from kubelet_mp.cli import check
from kubelet_mp.config import Settings
from kubelet_mp.config.decode import legacy_defaults
from kubelet_mp.host import facts
from tests.fakes.cri import FakeCRI, NotCRI, PlainHTTP


def test_a_runtime_that_answers() -> None:
    with FakeCRI(version="2.1.9") as fake:
        found = check.ask_runtime(fake.endpoint)
    assert (found.problem, found.name, found.version) == ("", "containerd", "2.1.9")
    assert (found.ready, found.network_ready, found.cgroup_driver) == (True, True, "cgroupfs")


def test_a_runtime_without_network_and_without_a_word_about_its_driver() -> None:
    with FakeCRI(events=False) as fake:
        fake.set_ready(network=False, message="cni plugin not initialized")
        found = check.ask_runtime(fake.endpoint)
    assert (found.ready, found.network_ready, found.cgroup_driver) == (True, False, None)
    assert "cni plugin not initialized" in found.network_message


def test_no_runtime(tmp_path: Path) -> None:
    found = check.ask_runtime(f"unix://{tmp_path}/none.sock")
    assert found.problem
    assert found.fix


@pytest.mark.parametrize("server", [NotCRI, PlainHTTP])
def test_something_else_on_the_socket(server: type[NotCRI] | type[PlainHTTP]) -> None:
    with server() as other:
        found = check.ask_runtime(other.endpoint)
    assert "validate CRI v1 runtime API" in found.problem
    assert "CRI plugin" in found.fix


def test_a_runtime_that_hangs_is_given_up() -> None:
    with FakeCRI() as fake:
        hang = fake.hang("Version")
        found = check.ask_runtime(fake.endpoint, timeout=0.2)
        hang.release()
    assert "DeadlineExceeded" in found.problem


def test_ports_follow_the_configuration() -> None:
    settings = Settings(node_name="n", kubelet=legacy_defaults(), cadvisor_port=0)
    assert [port for _, _, port in check.wanted_ports(settings)] == [10250, 10255, 10248]
    quiet = legacy_defaults().model_copy(update={"enable_server": False, "healthz_port": 0, "read_only_port": 0})
    ports = list(check.wanted_ports(Settings(node_name="n", kubelet=quiet)))
    assert ports == [("--cadvisor-port", "0.0.0.0", 4194)]


def test_the_whole_command_against_this_machine(tmp_path: Path) -> None:
    out = io.StringIO()
    with FakeCRI() as fake, socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code = check.run(
            [
                f"--container-runtime-endpoint={fake.endpoint}",
                f"--root-dir={tmp_path}/root",
                f"--healthz-port={port}",
                "--fail-cgroupv1=false",
            ],
            out,
        )
    lines = out.getvalue().splitlines()
    assert code == 1
    assert any(line.startswith("ok    runtime") and "containerd" in line for line in lines)
    assert any(line.startswith("FAIL  port") and f":{port} " in line for line in lines)
    assert any(f"{tmp_path}/root will be made in {tmp_path}" in line for line in lines)
    assert not (tmp_path / "root").exists()


def test_a_refused_command_line_is_one_fail_line() -> None:
    out = io.StringIO()
    assert check.run(["--no-such-flag"], out) == 1
    assert out.getvalue().startswith("FAIL  configuration")
    out = io.StringIO()
    assert check.run(["--version"], out) == 0
    assert "v1.37.2" in out.getvalue()


def test_gathering_changes_nothing_and_fills_every_fact(tmp_path: Path) -> None:
    settings = Settings(node_name="n", kubelet=legacy_defaults(), root_dir=str(tmp_path))
    found = check.gather(settings).host
    assert found.root.exists
    assert found.sysctls.keys() == facts.SYSCTLS.keys()
    assert list(tmp_path.iterdir()) == []
