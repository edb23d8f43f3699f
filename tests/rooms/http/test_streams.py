"""exec, attach, port-forward and run through the room to a runtime that is played by a listening socket."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator

import pytest
from cri_api.v1 import api_pb2 as pb

from kubelet_mp.rooms.http import streamquery
from kubelet_mp.rooms.http.pump import BUFFER
from kubelet_mp.rooms.http.streamquery import StreamRequestError
from tests.fakes.cri import FakeCRI
from tests.rooms.http.conftest import Server, status, unverified
from tests.support import wait_until

SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Own: kept\r\n\r\n"
ASK = ("{method} {path} HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
       "X-Stream-Protocol-Version: v4.channel.k8s.io\r\nX-Stream-Protocol-Version: v3.channel.k8s.io\r\n\r\n")


class Backend:
    """The runtime's streaming server: `play` gets each connection and the head of its request."""

    def __init__(self) -> None:
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.heads: list[bytes] = []
        self.play: Callable[[socket.socket], None] = lambda conn: None
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.sock.getsockname()[1]}"

    def _serve(self) -> None:
        while True:
            try:
                conn, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(conn,), daemon=True).start()

    def _one(self, conn: socket.socket) -> None:
        with conn:
            head = b""
            while b"\r\n\r\n" not in head:
                head += conn.recv(65536)
            self.heads.append(head)
            self.play(conn)


@pytest.fixture
def backend(fake_cri: FakeCRI) -> Iterator[Backend]:
    made = Backend()
    fake_cri.streaming_url = made.url
    yield made
    made.sock.close()


@pytest.fixture
def pod(server: Server, fake_cri: FakeCRI) -> str:
    """The id of the running container c of pod web."""
    fake_cri.add_image("i")
    labels = {"io.kubernetes.pod.uid": "u1", "io.kubernetes.container.name": "c"}
    box = pb.PodSandboxConfig(metadata=pb.PodSandboxMetadata(name="web", namespace="default", uid="u1"), labels=labels)
    box_id = fake_cri.RunPodSandbox(pb.RunPodSandboxRequest(config=box)).pod_sandbox_id
    config = pb.ContainerConfig(metadata=pb.ContainerMetadata(name="c"), image=pb.ImageSpec(image="i"), labels=labels)
    made = fake_cri.CreateContainer(pb.CreateContainerRequest(pod_sandbox_id=box_id, config=config))
    fake_cri.StartContainer(pb.StartContainerRequest(container_id=made.container_id))
    server.give(status("web", "u1", id=f"containerd://{made.container_id}"))
    return str(made.container_id)


def connect(server: Server, path: str, method: str = "POST") -> ssl.SSLSocket:
    raw = socket.create_connection(server.address("port"), 10)
    sock = unverified().wrap_socket(raw)
    sock.sendall(ASK.format(method=method, path=path).encode())
    return sock


def read_to(sock: ssl.SSLSocket, end: bytes) -> bytes:
    found = b""
    while end not in found:
        data = sock.recv(65536)
        assert data, found
        found += data
    return found


def echo(conn: socket.socket) -> None:
    conn.sendall(SWITCH)
    while data := conn.recv(65536):
        conn.sendall(data)


def test_bytes_go_both_ways_after_the_runtimes_own_answer(server: Server, backend: Backend, pod: str) -> None:
    backend.play = echo
    with connect(server, "/exec/default/web/c?command=cat&input=1&output=1") as sock:
        assert read_to(sock, b"\r\n\r\n") == SWITCH
        sock.sendall(b"hello")
        assert sock.recv(100) == b"hello"
    head = backend.heads[0]
    assert head.startswith(b"POST /exec/") and b"command=" not in head.partition(b"\r\n")[0]
    assert head.lower().count(b"x-stream-protocol-version:") == 2 and b"x-forwarded-for: 127.0.0.1" in head.lower()


def test_what_the_runtime_sent_last_still_arrives(server: Server, backend: Backend, pod: str) -> None:
    size = 8 * BUFFER

    def play(conn: socket.socket) -> None:
        conn.sendall(SWITCH + b"x" * size + b"end")

    backend.play = play
    with connect(server, "/exec/default/web/c?command=a&output=1") as sock:
        found = read_to(sock, b"end")
        assert len(found) == len(SWITCH) + size + 3
        assert sock.recv(1) == b""


def test_a_client_that_leaves_ends_the_runtimes_side(server: Server, backend: Backend, pod: str) -> None:
    ended = threading.Event()

    def play(conn: socket.socket) -> None:
        conn.sendall(SWITCH)
        while conn.recv(100):
            pass
        ended.set()

    backend.play = play
    with connect(server, "/attach/default/web/c?input=1") as sock:
        read_to(sock, b"\r\n\r\n")
    assert ended.wait(5)


def test_two_hundred_streams_and_the_port_still_answers(server: Server, backend: Backend, pod: str) -> None:
    backend.play = echo
    socks = [connect(server, "/exec/default/web/c?command=cat&input=1&output=1") for _ in range(200)]
    try:
        for sock in socks:
            read_to(sock, b"\r\n\r\n")
        for sock in socks:
            sock.sendall(b"ping")
        assert all(sock.recv(4) == b"ping" for sock in socks)
        assert server.ask("/healthz").text == "ok"
    finally:
        for sock in socks:
            sock.close()


def test_a_refusal_of_the_runtime_is_passed_on(server: Server, backend: Backend, pod: str) -> None:
    answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nConnection: close\r\n\r\ngone\n"
    backend.play = lambda conn: conn.sendall(answer)
    with connect(server, "/exec/default/web/c?command=a&output=1") as sock:
        assert read_to(sock, b"gone\n") == answer


def test_a_runtime_that_does_not_answer(server: Server, fake_cri: FakeCRI, pod: str) -> None:
    fake_cri.streaming_url = "http://127.0.0.1:1"
    with connect(server, "/exec/default/web/c?command=a&output=1") as sock:
        found = read_to(sock, b"refused")
    assert found.startswith(b"HTTP/1.1 500 ") and b"error dialing backend: " in found


@pytest.mark.parametrize(("path", "code", "text"), [
    ("/exec/default/web/c?command=a", 400, "you must specify at least 1 of stdin, stdout, stderr"),
    ("/exec/default/nope/c?command=a&output=1", 404, "pod does not exist"),
    ("/exec/default/web/nope?command=a&output=1", 500, 'container not found ("nope")'),
    ("/portForward/default/web/other-uid", 404, "pod not found"),
    ("/exec/default/web/c?command=a&output=1", 500, "Upgrade request required"),
])
def test_requests_that_cannot_be_served(server: Server, backend: Backend, pod: str, path: str, code: int, text: str
                                        ) -> None:
    answer = server.ask(path, "POST")
    assert (answer.status, answer.text) == (code, f"{text}\n")


def test_a_busy_runtime(server: Server, fake_cri: FakeCRI, pod: str) -> None:
    fake_cri.fail("Exec", "RESOURCE_EXHAUSTED", "too many streams")
    answer = server.ask("/exec/default/web/c?command=a&output=1", "POST")
    assert (answer.status, answer.headers["Retry-After"]) == (429, "60")


def test_run_answers_with_what_the_command_prints(server: Server, fake_cri: FakeCRI, pod: str) -> None:
    fake_cri.on_exec = lambda name, command: (f"{name} {command}", " and errors", 0)
    answer = server.ask("/run/default/web/c?cmd=ls+-l", "POST")
    assert (answer.status, answer.text) == (200, "c ['ls', '-l'] and errors")
    fake_cri.on_exec = lambda name, command: ("", "no such file", 2)
    answer = server.ask("/run/default/web/c?cmd=ls", "POST")
    assert (answer.status, answer.text) == (500, "command 'ls' exited with 2: no such file\n")


def test_a_web_socket_goes_through_to_the_runtime(server: Server, backend: Backend, pod: str) -> None:
    backend.play = lambda conn: conn.sendall(SWITCH)
    head = ("GET /exec/default/web/c?command=a&output=1 HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Protocol: {}\r\n\r\n")
    with unverified().wrap_socket(socket.create_connection(server.address("port"), 10)) as sock:
        sock.sendall(head.format("channel.k8s.io").encode())
        assert read_to(sock, b"\r\n\r\n") == SWITCH
    with unverified().wrap_socket(socket.create_connection(server.address("port"), 10)) as sock:
        sock.sendall(head.format("v5.channel.k8s.io").encode())
        assert read_to(sock, b"SPDY/3.1\n").startswith(b"HTTP/1.1 501 ")
    wait_until(lambda: len(backend.heads) == 1, 5, "the first to reach the runtime")


def test_only_1_sets_an_option_and_a_terminal_has_no_stderr() -> None:
    assert not streamquery.streams({"output": ["1"], "input": ["true"]}).stdin
    assert not streamquery.streams({"output": ["1"], "error": ["1"], "tty": ["1"]}).stderr
    assert streamquery.ports({"port": ["80,443", "8080"]}) == [80, 443, 8080]
    with pytest.raises(StreamRequestError, match="invalid port"):
        streamquery.ports({"port": ["0"]})
