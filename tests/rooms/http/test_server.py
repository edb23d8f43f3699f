"""The listeners, over real sockets and TLS: routes, methods, errors, and what stays apart from what."""

from __future__ import annotations

import json
import os
import socket
import ssl
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kubelet_mp.cli.client import Agent, AgentError
from kubelet_mp.config.model import AnonymousAuthentication, Authentication, WebhookAuthentication, X509Authentication
from kubelet_mp.errors import StartError
from kubelet_mp.rooms.http.listeners import open_tcp, open_unix
from kubelet_mp.rooms.http.worker import LOOP_NAME
from kubelet_mp.wire.messages import Health, Metrics, RoomHealth, SourceProblem, StatusSet, Timeline, TimelineEntry
from tests.rooms.http.conftest import Server, free_port, serve, status
from tests.support import wait_until

FULL, READ_ONLY, HEALTHZ = "port", "readOnlyPort", "healthzPort"


def test_pods_are_a_pod_list_on_both_ports(server: Server) -> None:
    server.give(status("b", "u2"), status("a", "u1"), StatusSet(frozenset({"u1", "u2"})))
    for port in (FULL, READ_ONLY):
        answer = server.ask("/pods", on=port)
        listed = json.loads(answer.body)
        assert (listed["kind"], listed["apiVersion"], answer.headers["Content-Type"]) == (
            "PodList", "v1", "application/json")
        assert [pod["metadata"]["name"] for pod in listed["items"]] == ["a", "b"]
        assert listed["items"][0]["status"]["phase"] == "Running"
    server.give(StatusSet(frozenset({"u2"})))
    assert [pod["metadata"]["name"] for pod in json.loads(server.ask("/pods/").body)["items"]] == ["b"]


@pytest.mark.parametrize(
    ("port", "method", "path", "code", "body"),
    [
        (FULL, "GET", "/healthz", 200, "ok"),
        (FULL, "POST", "/healthz", 200, "ok"),
        (FULL, "GET", "/healthz/ping", 200, "ok"),
        (FULL, "GET", "/healthz/syncloop", 200, "ok"),
        (FULL, "GET", "/healthz?verbose", 200, "[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n"),
        (READ_ONLY, "GET", "/healthz", 200, "ok"),
        (HEALTHZ, "GET", "/healthz", 200, "ok"),
        (HEALTHZ, "GET", "/pods", 404, "404 page not found\n"),
        (FULL, "POST", "/pods", 405, "405: Method Not Allowed"),
        (FULL, "HEAD", "/pods", 405, ""),
        (FULL, "DELETE", "/containerLogs/a/b/c", 405, "405: Method Not Allowed"),
        (FULL, "GET", "/pods/x", 404, "404: Page Not Found"),
        (FULL, "GET", "/containerLogs/x", 404, "404: Page Not Found"),
        (FULL, "GET", "/nope", 404, "404 page not found\n"),
        (FULL, "GET", "/", 404, "404 page not found\n"),
        (FULL, "POST", "/exec/a/b/c", 400, "you must specify at least 1 of stdin, stdout, stderr\n"),
        (FULL, "POST", "/exec/a/b/c?output=1", 404, "pod does not exist\n"),
        (FULL, "POST", "/portForward/a/b?port=70000", 400, 'invalid port "70000": it must be from 1 to 65535\n'),
        (FULL, "GET", "/stats/summary", 501, "/stats/summary is not implemented by kubelet-mp yet\n"),
        (READ_ONLY, "GET", "/containerLogs/a/b/c", 405, "Debug endpoints are disabled.\n"),
        (READ_ONLY, "POST", "/exec/a/b/c", 405, "Debug endpoints are disabled.\n"),
        (READ_ONLY, "GET", "/runningpods/", 405, "Debug endpoints are disabled.\n"),
        (READ_ONLY, "GET", "/debug/pprof/profile", 405, "Debug endpoints are disabled.\n"),
        (READ_ONLY, "GET", "/configz", 404, "404 page not found\n"),
        (READ_ONLY, "PUT", "/debug/flags/v", 404, "404 page not found\n"),
        (READ_ONLY, "DELETE", "/pods", 405, "405: Method Not Allowed"),
    ],
)
def test_answers(server: Server, port: str, method: str, path: str, code: int, body: str) -> None:
    answer = server.ask(path, method, on=port)
    assert (answer.status, answer.text) == (code, body)
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    if body.startswith("405:"):
        assert answer.headers["Allow"] == "GET"


def test_configz_is_the_effective_configuration(server: Server) -> None:
    found = json.loads(server.ask("/configz").body)["kubeletconfig"]
    assert (found["kind"], found["apiVersion"]) == ("KubeletConfiguration", "kubelet.config.k8s.io/v1beta1")
    assert found["authentication"]["anonymous"] == {"enabled": True}
    assert found["syncFrequency"] == "1m0s"


def test_metrics_are_those_of_all_rooms(server: Server) -> None:
    server.give(Metrics("pods", "# HELP kubelet_x_total X.\n# TYPE kubelet_x_total counter\nkubelet_x_total 3\n"),
                Health((RoomHealth("pods", os.getpid(), 1, 0, 0.0, 1.0, 0),)))
    server.ask("/pods")
    server.ask("/nope/x")
    answer = server.ask("/metrics", on=READ_ONLY)
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    counted = 'kubelet_http_requests_total{long_running="false",method="GET",path="%s",server_type="readwrite"} 1'
    for line in ("kubelet_x_total 3", 'kubelet_node_name{node="node"} 1', "# TYPE process_cpu_seconds_total counter",
                 counted % "pods", counted % "other"):
        assert line in answer.text.splitlines()
    server.runner.come_up("pods", 2)
    server.give(Metrics("pods", "# TYPE kubelet_x_total counter\nkubelet_x_total 2\n"))
    assert "kubelet_x_total 5" in server.ask("/metrics").text.splitlines()


def test_without_debugging_handlers_10250_shows_what_the_read_only_port_shows(tmp_path: Path, pki: Path) -> None:
    with serve(tmp_path, pki, enable_debugging_handlers=False) as runner:
        server = Server(runner, tmp_path)
        assert server.ask("/pods").status == 200
        assert server.ask("/containerLogs/a/b/c").text == "Debug endpoints are disabled.\n"
        assert server.ask("/configz").status == 404


# ---- TLS and authentication ----


def test_plain_http_on_the_tls_port_is_told_so(server: Server) -> None:
    host, port = server.address(FULL)
    with socket.create_connection((host, port), timeout=5) as sock:
        sock.sendall(b"GET /pods HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"400 Bad Request" in sock.recv(4096)


def test_tls_is_at_least_1_2_and_the_certificate_is_the_configured_one(server: Server, pki: Path) -> None:
    old = ssl.create_default_context(cafile=str(pki / "kubelet.crt"))
    old.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        server.ask("/healthz", tls=old)
    trusting = ssl.create_default_context(cafile=str(pki / "kubelet.crt"))
    assert server.ask("/healthz", tls=trusting).text == "ok"


def test_nobody_is_answered_unauthenticated_when_anonymous_requests_are_off(
    tmp_path: Path, pki: Path, make_client: Callable[[str], ssl.SSLContext], client_ca: Path
) -> None:
    closed = Authentication(x509=X509Authentication(client_ca_file=str(client_ca)),
                            webhook=WebhookAuthentication(enabled=False),
                            anonymous=AnonymousAuthentication(enabled=False))
    with serve(tmp_path, pki, authentication=closed) as runner:
        server = Server(runner, tmp_path)
        for path in ("/pods", "/healthz", "/metrics", "/configz", "/containerLogs/a/b/c", "/exec/a", "/pods/x"):
            answer = server.ask(path)
            assert (answer.status, answer.text) == (401, "Unauthorized"), path
        assert server.ask("/nope").status == 404
        assert server.ask("/pods", on=READ_ONLY).status == 200
        assert server.ask("/pods", tls=make_client("admin")).status == 200
        with pytest.raises((ssl.SSLError, ConnectionError)):
            server.ask("/pods", tls=make_client("stranger"))


# ---- the local socket ----


def test_the_local_socket_is_for_its_owner_only_and_read_only(server: Server) -> None:
    server.address(FULL)
    path = server.root / "kubelet-mp.sock"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with pytest.raises(AgentError) as caught:
        Agent(str(server.root)).get("/pods")
    assert caught.value.status == 404


def test_the_local_socket_tells_pods_stories_and_rooms(server: Server) -> None:
    entry = TimelineEntry(1.0, 2.0, 3, "Normal", "Started", "m", "spec.containers{c}")
    server.give(status(waiting_for="its volumes"), Timeline("u1", "default", "web", (entry,)),
                SourceProblem("/m/x.yaml", "no YAML"), Health((RoomHealth("pods", 1, 1, 0, 0.0, 1.0, 0),)))
    agent = Agent(str(server.root))
    pods = agent.get("/local/pods")
    assert pods["pods"][0]["waiting_for"] == "its volumes" and pods["problems"][0]["origin"] == "/m/x.yaml"
    assert agent.get("/local/why/default/web")["timeline"][0]["count"] == 3
    assert agent.get("/local/rooms")["rooms"][0]["room"] == "pods"
    with pytest.raises(AgentError, match='pod "default/nope" does not exist'):
        agent.get("/local/why/default/nope")


def test_a_long_root_directory_still_has_a_socket(tmp_path: Path, pki: Path) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    with serve(deep, pki) as runner:
        Server(runner, deep).give(status())
        assert Agent(str(deep)).get("/local/pods")["pods"][0]["name"] == "web"


# ---- start and stop ----


def test_a_port_in_use_is_named_with_what_to_do() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(StartError) as caught:
            open_tcp("127.0.0.1", port, "readOnlyPort", lambda seconds: None)
    assert f"port {port} on 127.0.0.1 is in use (readOnlyPort)" in str(caught.value)
    assert "set another readOnlyPort" in str(caught.value)


def test_a_port_that_is_given_up_meanwhile_is_taken() -> None:
    other = socket.socket()
    other.bind(("127.0.0.1", 0))
    other.listen()
    port = other.getsockname()[1]
    open_tcp("127.0.0.1", port, "port", lambda seconds: other.close()).close()


def test_an_address_that_is_not_ours_is_refused() -> None:
    with pytest.raises(StartError, match=r"cannot listen on 192\.0\.2\.1"):
        open_tcp("192.0.2.1", free_port(), "port", lambda seconds: None)


def test_a_file_where_the_socket_belongs_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("mine")
    with pytest.raises(StartError):
        open_unix(str(tmp_path / "s"))
    assert (tmp_path / "s").read_text() == "mine"


def test_ports_are_free_again_at_once_although_a_client_was_connected(tmp_path: Path, pki: Path) -> None:
    ports = {"read_only_port": free_port(), "healthz_port": free_port()}
    for turn in range(2):
        root = tmp_path / str(turn)
        root.mkdir()
        with serve(root, pki, **ports) as runner:
            server = Server(runner, root)
            server.give(status())
            connection = server.connect(READ_ONLY)
            connection.request("GET", "/pods")
            assert connection.getresponse().read()
    assert not [thread for thread in threading.enumerate() if thread.name == LOOP_NAME]


def test_the_heartbeat_ends_with_the_serving_loop(server: Server) -> None:
    server.give(status())
    room = server.runner.room
    wait_until(lambda: server.runner.beats > 1)
    room._worker.beat_at -= 1000
    beats = server.runner.beats
    room._beat()
    assert server.runner.beats == beats
    wait_until(lambda: server.runner.beats > beats, 5, "the loop's next turn")


def test_stalled_clients_do_not_keep_others_from_the_health_check(server: Server) -> None:
    server.give(status())
    host, port = server.address(FULL)
    stalled = [socket.create_connection((host, port)) for _ in range(80)]
    try:
        assert server.ask("/healthz", on=HEALTHZ).text == "ok"
    finally:
        for sock in stalled:
            sock.close()


def test_without_a_serving_certificate_no_handshake_succeeds_and_the_other_ports_answer(
    tmp_path: Path, pki: Path, fake_cri: object
) -> None:
    fields = {"tls_cert_file": "", "tls_private_key_file": "", "server_tls_bootstrap": True}
    with serve(tmp_path, pki, **fields) as runner:
        server = Server(runner, tmp_path)
        assert server.ask("/healthz", on=HEALTHZ).status == 200
        with pytest.raises(ssl.SSLError, match="INTERNAL_ERROR"):
            server.ask("/healthz")
        directory = tmp_path / "pki"
        directory.mkdir()
        signed = directory / "kubelet-server-current.pem"
        signed.write_bytes((pki / "kubelet.crt").read_bytes() + (pki / "kubelet.key").read_bytes())

        def answers() -> bool:
            try:
                return server.ask("/healthz").status == 200
            except ssl.SSLError:
                return False

        wait_until(answers, 4, "the certificate to be taken")
