"""The commands against an http room on its local socket."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cri_api.v1 import api_pb2 as pb

from kubelet_mp.cli import logs, pods, why
from kubelet_mp.config import KubeletConfiguration, Settings
from kubelet_mp.rooms.http.room import HttpRoom
from kubelet_mp.wire.messages import PodStatus, SourceProblem, Timeline, TimelineEntry
from tests.fakes.cri import FakeCRI
from tests.fakes.link import RoomRunner
from tests.support import wait_until


@pytest.fixture
def fake() -> Iterator[FakeCRI]:
    with FakeCRI(logs=True) as fake:
        yield fake


@pytest.fixture
def root(tmp_path: Path, fake: FakeCRI) -> Iterator[str]:
    """The root directory of an agent with the pod default/web-node: containers c (with a log) and d."""
    kubelet = KubeletConfiguration(container_runtime_endpoint=fake.endpoint, enable_server=False, healthz_port=0)
    settings = Settings(node_name="node", root_dir=str(tmp_path), kubelet=kubelet)
    with RoomRunner(HttpRoom, settings) as runner:
        container = run_container(fake, tmp_path)
        for text in ("one", "two", "three"):
            fake.log(container, text)
        entry = TimelineEntry(1.0, 1.0, 1, "Normal", "Started", "Container started", "spec.containers{c}")
        runner.give(status(f"fake://{container}"), Timeline("u1", "default", "web-node", (entry,)),
                    SourceProblem("/m/x.yaml", "no YAML"))
        wait_until(lambda: runner.room.serving and runner.room.state.problems(), 5, "the room")
        yield str(tmp_path)


def run_container(fake: FakeCRI, directory: Path) -> str:
    fake.add_image("i")
    config = pb.PodSandboxConfig(metadata=pb.PodSandboxMetadata(name="web-node", namespace="default", uid="u1"),
                                 log_directory=str(directory / "logs"))
    box = fake.RunPodSandbox(pb.RunPodSandboxRequest(config=config)).pod_sandbox_id
    container = pb.ContainerConfig(metadata=pb.ContainerMetadata(name="c"), image=pb.ImageSpec(image="i"),
                                   log_path="c/0.log")
    made = fake.CreateContainer(pb.CreateContainerRequest(pod_sandbox_id=box, config=container)).container_id
    fake.StartContainer(pb.StartContainerRequest(container_id=made))
    return made


def status(container_id: str) -> PodStatus:
    def container(name: str) -> dict[str, Any]:
        return {"name": name, "state": {"running": {}}, "ready": True, "restartCount": 0, "containerID": container_id}

    return PodStatus("u1", {
        "metadata": {"name": "web-node", "namespace": "default", "uid": "u1"},
        "spec": {"containers": [{"name": "c"}, {"name": "d"}]},
        "status": {"phase": "Running", "containerStatuses": [container("c"), container("d")]},
    }, "file")


def test_pods(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert pods.run(["--root-dir", root]) == 0
    out = capsys.readouterr().out
    assert "web-node" in out and "/m/x.yaml: no YAML" in out
    assert pods.run(["--root-dir", root, "-o", "json"]) == 0
    assert '"namespace": "default"' in capsys.readouterr().out


def test_why(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert why.run(["--root-dir", root, "web"]) == 0
    out = capsys.readouterr().out
    assert "[c] Container started" in out and out.endswith("Waiting for: nothing, it runs\n")
    assert why.run(["--root-dir", root, "wep"]) == 1
    assert "did you mean default/web-node?" in capsys.readouterr().err


def test_logs(root: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert logs.run(["--root-dir", root, "web", "-c", "c", "--tail", "2", "--since", "1h"]) == 0
    assert capfdbinary.readouterr().out == b"two\nthree\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["web"], "has several containers: c, d (fix: choose one with -c)"),
        (["web", "-c", "nope"], 'container "nope" not found in pod "web-node"'),
        (["web", "-c", "c", "--previous"], 'previous terminated container "c" in pod "web-node" not found'),
        (["other"], 'there is no pod "other" on this node'),
    ],
)
def test_logs_that_cannot_be_had(
    root: str, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert logs.run(["--root-dir", root, *arguments]) == 1
    assert told in capsys.readouterr().err


def test_a_reader_that_leaves_ends_the_command_quietly(root: str, fake: FakeCRI) -> None:
    code = "import sys; from kubelet_mp.cli import logs; sys.exit(logs.run(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "--root-dir", root, "web", "-c", "c", "-f"]
    here = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=here) as child:
        assert child.stdout is not None and child.stderr is not None
        assert child.stdout.readline() == b"one\n"
        child.stdout.close()
        fake.log("c", "nobody reads this")
        assert child.wait(10) == 0
        assert child.stderr.read() == b""


@pytest.mark.parametrize("run", [pods.run, lambda argv: why.run([*argv, "web"]), lambda argv: logs.run([*argv, "web"])])
def test_without_an_agent_it_is_said_where_it_was_looked_for(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--root-dir", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert f'no agent is running with the socket "{tmp_path}/kubelet-mp.sock"' in err
    assert "--root-dir" in err


def test_an_agent_that_died_is_no_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(os.fspath(tmp_path / "kubelet-mp.sock"))
    assert pods.run(["--root-dir", str(tmp_path)]) == 1
    assert "no agent is running" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["w", "--since", "yesterday"], ["w", "--since", "0s"], ["w", "--tail", "x"]])
def test_wrong_options_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        logs.run(arguments)
    assert caught.value.code == 2
    assert arguments[1] in capsys.readouterr().err
