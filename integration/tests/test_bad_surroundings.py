"""What goes wrong around the agent: the runtime is down or hangs, the disk is full, the manifest URL fails."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from integration.rig import images
from integration.rig.agent import Agent
from integration.rig.console import run
from integration.rig.manifests import container, pod
from tests.fakes.cri import FakeCRI

QUICK = ("sh", "-c", "trap 'exit 0' TERM; sleep 1000000 & wait")


def quick(name: str, **spec: Any) -> dict[str, Any]:
    return pod(name, container("c", *QUICK), **spec)


def settled(agent: Agent, name: str) -> list[str]:
    """Wait until a pod runs and is shown so; return its containers."""
    running = agent.wait_running(name)
    agent.wait(lambda: agent.status(name).get("phase") == "Running", 10, f"{name} is shown Running")
    return running


def check_calm(agent: Agent, running: list[str]) -> None:
    """The pod `calm` still runs in its first container."""
    assert [c.id for c in agent.cri.containers(agent.full_name("calm"), running=True)] == running
    agent.wait(lambda: agent.status("calm").get("phase") == "Running", 10, "calm is shown Running")
    assert agent.container_status("calm")["restartCount"] == 0


def told(agent: Agent, *patterns: str, seconds: float = 20) -> str:
    """Wait until `kubelet-mp pods` matches all the patterns; return what it prints."""

    def shown() -> str:
        text = agent.cli("pods").stdout
        return text if all(re.search(pattern, text) for pattern in patterns) else ""

    return str(agent.wait(shown, seconds, f"`kubelet-mp pods` shows {patterns}"))


# ---- the runtime

def test_a_runtime_that_is_down_at_the_start(agent, runtime):
    """The agent waits for it, says so, answers meanwhile, and goes on at once when it comes."""
    a = agent()
    a.put("calm", quick("calm"))
    runtime.stop_daemon()
    a.start()
    told(a, "Attention: the container runtime is not ready: .*containerd.sock")
    a.wait(lambda: re.search(r"Waiting for: runtime: .*containerd\.sock", a.cli("why", "calm").stdout), 10, "why")
    assert len(re.findall(r"^[EW].*the container runtime .*|^[EW].*containerd\.sock", a.log.read_text(), re.M)) < 30
    assert a.alive() and len(a.rooms()) == 10
    rooms = a.rooms()
    runtime.start_daemon()
    check_calm(a, settled(a, "calm"))
    a.wait(lambda: "Attention" not in a.cli("pods").stdout, 20, "the note is gone")
    assert a.rooms() == rooms, "no room had to die for it"


def test_a_runtime_that_goes_away(agent, runtime):
    """Pods stay as they are; what was changed meanwhile is done when it is back."""
    a = agent().start()
    a.put("calm", quick("calm"))
    a.put("goes", quick("goes"))
    calm = settled(a, "calm")
    settled(a, "goes")
    rooms = a.rooms()
    runtime.stop_daemon()
    a.remove("goes")
    a.put("comes", quick("comes"))
    told(a, "Attention: the container runtime is not ready: .*containerd.sock", seconds=45)  # it may only restart
    told(a, "comes-node-1 .*Pending", "calm-node-1 .*Running")
    runtime.start_daemon()
    settled(a, "comes")
    a.wait_gone("goes")
    check_calm(a, calm)
    assert a.rooms() == rooms, "no room had to die for it"


@contextmanager
def on_a_fake(agent: Any, **config: Any) -> Iterator[tuple[Agent, FakeCRI]]:
    """An agent on a runtime whose faults can be chosen. It is stopped before the runtime is."""
    with FakeCRI(images=(images.BUSYBOX,)) as fake:
        a = agent(config={"containerRuntimeEndpoint": fake.endpoint, **config}).start()
        yield a, fake
        assert a.stop() == 0


def shown_running(a: Agent, name: str, seconds: float = 20) -> None:
    a.wait(lambda: a.status(name).get("phase") == "Running", seconds, f"{name} is shown Running")


def names(request: Any) -> str:
    return str(request.config.metadata.name)


def test_one_call_of_the_runtime_that_hangs(agent):
    """It holds up its own pod and no other; `why` names the call; it is given up at its deadline (twice 4 s)."""
    with on_a_fake(agent, runtimeRequestTimeout="4s") as (a, fake):
        rooms = a.rooms()
        hang = fake.hang("RunPodSandbox", when=lambda r: names(r).startswith("stuck"), times=1)
        a.put("stuck", quick("stuck"))
        hang.reached(10)
        for name in ("calm", "other"):
            a.put(name, quick(name))
            shown_running(a, name)
        a.wait(lambda: "Waiting for: the runtime to set up its sandbox (RunPodSandbox)" in a.cli("why", "stuck").stdout,
               10, "why names the call")
        a.wait(lambda: "DeadlineExceeded" in a.cli("why", "stuck").stdout, 15, "the deadline of the call")
        shown_running(a, "stuck", 30)
        assert a.rooms() == rooms


@pytest.mark.parametrize("call", ["ListPodSandbox", "ListContainers", "Status"])
def test_a_runtime_that_hangs_altogether(agent, call):
    """The agent goes on answering, says what hangs, and recovers by itself."""
    with on_a_fake(agent, runtimeRequestTimeout="3s") as (a, fake):
        a.put("calm", quick("calm"))
        shown_running(a, "calm")
        rooms = a.rooms()
        hang = fake.hang(call)
        hang.reached(20)
        said = re.compile(rf"{call}.*DeadlineExceeded|DeadlineExceeded.*{call}")
        a.wait(lambda: said.search(a.log.read_text()), 30, "a log line")
        assert a.status("calm")["phase"] == "Running" and a.cli("pods").returncode == 0
        fake.heal()
        a.put("later", quick("later"))
        shown_running(a, "later", 30)
        assert a.rooms() == rooms
        assert a.container_status("calm")["restartCount"] == 0
        assert fake.count("StopContainer") == 0


def test_calls_that_fail_once(agent):
    """The error is told on the pod, and got over."""
    with on_a_fake(agent) as (a, fake):
        fake.fail("RunPodSandbox", "UNKNOWN", "injected", when=lambda r: names(r).startswith("box"))
        fake.fail("CreateContainer", "UNKNOWN", "injected",
                  when=lambda r: r.sandbox_config.metadata.name.startswith("make"))
        fake.fail("StartContainer", "UNKNOWN", "injected", when=lambda r: fake.containers[
            r.container_id].sandbox.config.metadata.name.startswith("start"))
        pods = {"box": "FailedCreatePodSandBox .*injected", "make": "CreateContainerError|Failed .*injected",
                "start": "RunContainerError|Failed .*injected"}
        for name in pods:
            a.put(name, quick(name))
        for name, event in pods.items():
            a.wait(lambda name=name, event=event: re.search(event, a.cli("why", name).stdout), 20, event)
        for name in pods:
            shown_running(a, name, 40)


# ---- the disk

@pytest.fixture
def small_disk(agent) -> Iterator[Agent]:
    """An agent whose root directory is a file system of 8 MiB."""
    a = agent()
    run(["mount", "-t", "tmpfs", "-o", "size=8m", "small", a.root], timeout=10)
    yield a  # the agent's clean-up unmounts it


def fill(folder: Path) -> Path:
    """Take the last byte of a file system."""
    target = folder / "filler"
    with open(target, "wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError as error:
                assert error.errno == errno.ENOSPC
    return target


def test_a_full_disk_below_the_root_directory(small_disk):
    """It is said where it is felt, nothing that runs is lost, and all goes on when there is room."""
    a = small_disk.start()
    a.put("calm", quick("calm"))
    a.put("goes", quick("goes"))
    calm = settled(a, "calm")
    settled(a, "goes")
    filler = fill(a.root)
    a.put("comes", quick("comes", volumes=[{"name": "v", "emptyDir": {}}]))
    a.wait(lambda: "No space left on device" in a.cli("why", "comes").stdout, 20, "why names the full disk")
    assert "No space left on device" in a.log.read_text()
    a.remove("goes")
    a.wait_gone("goes")
    check_calm(a, calm)

    for room in ("pods", "volumes", "sources", "http"):
        gone = a.rooms()[room]
        os.kill(gone, signal.SIGKILL)
        a.wait(lambda room=room, gone=gone: a.rooms().get(room) not in (None, gone), 10, f"{room} is back")
    a.wait(lambda: _answers(a), 10, "it answers")
    check_calm(a, calm)
    a.stop()
    a.start()  # nothing that must be written keeps it from starting
    check_calm(a, calm)

    filler.unlink()
    settled(a, "comes")
    check_calm(a, calm)
    assert a.pod("goes") is None


def _answers(a: Agent) -> bool:
    try:
        return len(a.pods()) >= 2
    except OSError:
        return False


# ---- the manifest URL

class Source(BaseHTTPRequestHandler):
    """Serves `answer`, the way that `mode` says."""

    mode: ClassVar[str] = "good"
    answer: ClassVar[bytes] = b""
    headers_seen: ClassVar[list[str]] = []
    go_on: ClassVar[threading.Event] = threading.Event()

    def do_GET(self) -> None:
        type(self).headers_seen.append(self.headers.get("X-Node", ""))
        if self.mode == "slow":
            self.go_on.wait(30)
        code = {"404": 404, "500": 500}.get(self.mode, 200)
        bad = {"garbage": b"<html>\x00 no pod</html>", "huge": b"#" * (11 << 20)}
        body = bad.get(self.mode, self.answer)
        try:
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            return  # the agent gave up

    def log_message(self, *args: Any) -> None:
        """Nothing: pytest shows what matters."""


@contextmanager
def serving(port: int = 0) -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", port), Source)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def listed(*pods: dict[str, Any]) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "PodList", "items": pods}).encode()


FAULTS = {
    "404": "404 Not Found",
    "500": "500 Internal Server Error",
    "garbage": "not valid YAML|couldn't parse as pod|control character|special characters",
    "huge": "larger than 10485760 bytes",
    "slow": "no answer within 10 s",
}


def test_a_manifest_url_with_every_fault(agent):
    """The pods of the last good answer stay; the fault is shown; the next good answer is taken."""
    Source.mode, Source.answer = "good", listed(quick("calm"))
    Source.headers_seen.clear()
    Source.go_on.clear()
    with serving() as server:
        port = server.server_address[1]
        url = f"http://user:secret@127.0.0.1:{port}/pods"
        a = agent(config={"staticPodPath": None, "staticPodURL": url, "httpCheckFrequency": "500ms",
                          "staticPodURLHeader": {"X-Node": ["edge"]}}).start()
        calm = settled(a, "calm")
        assert Source.headers_seen[0] == "edge"
        for mode, said in FAULTS.items():
            Source.mode = mode
            text = told(a, rf"127\.0\.0\.1:{port}/pods.*({said})")
            check_calm(a, calm)
            assert "secret" not in text
        Source.go_on.set()
        Source.mode, Source.answer = "good", listed(quick("calm"), quick("second"))
        settled(a, "second")
        a.wait(lambda: f":{port}" not in a.cli("pods").stdout, 10, "the fault is no longer shown")
        check_calm(a, calm)
    told(a, rf"127\.0\.0\.1:{port}/pods.*[Cc]onnection refused")
    check_calm(a, calm)
    Source.answer = listed(quick("calm"))
    with serving(port):
        a.wait_gone("second")
        check_calm(a, calm)
    assert "secret" not in a.log.read_text()


def test_a_manifest_url_that_is_down_at_the_start(agent):
    """Files work without it, and it is asked again and again."""
    Source.mode, Source.answer = "good", listed(quick("second"))
    with serving() as server:
        port = server.server_address[1]
    a = agent(config={"staticPodURL": f"http://127.0.0.1:{port}/", "httpCheckFrequency": "500ms"}).start()
    a.put("calm", quick("calm"))
    calm = settled(a, "calm")
    told(a, rf"127\.0\.0\.1:{port}/.*[Cc]onnection refused")
    with serving(port):
        settled(a, "second")
    check_calm(a, calm)
