"""Handlers against real servers on loopback."""

import socket
import threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
import pytest

from kubelet_mp.errors import RuntimeTimeout
from kubelet_mp.model.probes import Probe
from kubelet_mp.model.runtime import ExecResult
from kubelet_mp.rooms.probes.handlers import Target, run


class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/local":
            self.reply(302, location="/end")
        elif self.path == "/end":
            self.reply(500)
        elif self.path == "/away":
            self.reply(302, location="http://elsewhere.invalid/")
        elif self.path == "/loop":
            self.reply(302, location="/loop")
        elif self.path == "/slow":
            self.server.release.wait(10)
            self.reply(200)
        else:
            self.server.seen.append((self.path, self.headers.items()))
            self.reply(204)

    def reply(self, code, location=""):
        self.send_response(code)
        if location:
            self.send_header("Location", location)
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    server.seen, server.release = [], threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.release.set()
    server.shutdown()
    server.server_close()


def target():
    return Target({"name": "c", "env": [{"name": "X", "value": "y"}]}, "id1", "127.0.0.1")


def http(server, path, timeout=5.0):
    handler = {"httpGet": {"path": path, "port": server.server_port, "httpHeaders": [{"name": "X-A", "value": "1"}]}}
    return run(Probe("liveness", handler, timeout=timeout), target(), None)


def test_http_verdicts(server):
    assert http(server, "/ok?a=%20").ok
    path, headers = server.seen[0]
    assert path == "/ok?a=%20" and ("X-A", "1") in headers and ("User-Agent", "kube-probe/1.37") in headers
    assert http(server, "/local").message == "HTTP probe failed with statuscode: 500"
    away = http(server, "/away")
    assert away.ok and away.warning
    assert "stopped after 10 redirects" in http(server, "/loop").message


def test_a_slow_answer_is_a_failure(server):
    outcome = http(server, "/slow", timeout=0.2)
    assert not outcome.ok and not outcome.errored and "deadline exceeded" in outcome.message


def test_tcp(server):
    probe = Probe("readiness", {"tcpSocket": {"port": server.server_port}})
    assert run(probe, target(), None).ok
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        probe = Probe("readiness", {"tcpSocket": {"port": closed.getsockname()[1]}})
        assert "connection refused" in run(probe, target(), None).message


class Runtime:
    def __init__(self, code=0, error=None):
        self.code, self.error, self.calls = code, error, []

    def exec_sync(self, container_id, command, timeout):
        self.calls.append((container_id, list(command), timeout))
        if self.error:
            raise self.error
        return ExecResult(b"out", b"err", self.code)


def test_exec():
    runtime = Runtime()
    probe = Probe("liveness", {"exec": {"command": ["cat", "$(X)", "$(Z)"]}}, timeout=2)
    assert run(probe, target(), runtime).ok
    assert runtime.calls == [("id1", ["cat", "y", "$(Z)"], 2)]
    failed = run(probe, target(), Runtime(code=1))
    assert not failed.ok and failed.message == "outerr"
    late = run(probe, target(), Runtime(error=RuntimeTimeout("command timed out")))
    assert late.message == "command timed out" and not late.errored


def test_what_cannot_be_run_is_an_error_and_no_verdict():
    assert run(Probe("liveness", {"tcpSocket": {"port": "nope"}}), target(), None).errored
    assert run(Probe("liveness", {}), target(), None).errored


@pytest.mark.parametrize("answer, ok", [(b"\x08\x01", True), (b"\x08\x02", False), (b"", False)])
def test_grpc(answer, ok):
    names = []

    def check(request, context):
        names.append(request)
        return answer

    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(
        "grpc.health.v1.Health", {"Check": grpc.unary_unary_rpc_method_handler(check)}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        probe = Probe("liveness", {"grpc": {"port": port, "service": "db"}}, timeout=5)
        outcome = run(probe, target(), None)
        assert outcome.ok is ok and names == [b"\x0a\x02db"]
        assert ok or outcome.message.startswith('service unhealthy (responded with "')
    finally:
        server.stop(0).wait()
