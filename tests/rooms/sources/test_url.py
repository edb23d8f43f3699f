"""The URL source against a small real HTTP server."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kubelet_mp.rooms.sources.url import UrlSource


def pod(name, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "x:1"}], **spec}}


def pod_list(*items):
    return {"apiVersion": "v1", "kind": "PodList", "items": list(items)}


class Server(ThreadingHTTPServer):
    """`body` and `code` are what it answers; `seen` the headers of the last request."""

    daemon_threads = True
    body, code, seen = b"", 200, None

    def says(self, value, code=200):
        self.body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.code = code


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen = self.headers
        self.send_response(self.server.code)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def source(server):
    url = f"http://me:secret@127.0.0.1:{server.server_address[1]}/pods"
    source = UrlSource(url, {"X-Token": ["a", "b"]}, "node", 20.0, timeout=2.0, limit=5000)
    yield source
    source.close()


def said(source):
    """(ready, pod names, problem)"""
    reading = source.read()
    (item,) = reading.items.values()
    return reading.ready, [p["metadata"]["name"] for p in item.pods], item.problem


def test_a_pod_then_a_list_with_headers(server, source):
    server.says(pod("a"))
    assert said(source) == (True, ["a-node"], "")
    assert server.seen["X-Token"] == "a, b"
    server.says(pod_list(pod("a"), pod("b")))
    assert said(source) == (True, ["a-node", "b-node"], "")
    made = source.read().items.popitem()[1].pods[0]
    assert made["metadata"]["annotations"]["kubernetes.io/config.source"] == "http"
    assert "tolerations" not in made["spec"]


def test_unchanged_bytes_are_not_decoded_again(server, source):
    server.says(pod("a"))
    first = source.read().items.popitem()[1].pods[0]
    assert source.read().items.popitem()[1].pods[0] is first


@pytest.mark.parametrize(("body", "code", "message"), [
    (b"x", 404, "404 Not Found"), (b"x", 500, "500 Internal Server Error"), (b"{garbage", 200, "not valid YAML"),
    (pod("A"), 200, 'metadata.name: Invalid value: "A-node"'), (b"x" * 5001, 200, "larger than 5000 bytes"),
    (pod_list(pod("b"), pod("c", serviceAccountName="x")), 200, "static pods may not reference serviceaccounts"),
])
def test_errors_keep_the_last_good_pods_and_heal(server, source, body, code, message):
    server.says(body, code)
    ready, pods, problem = said(source)
    assert (ready, pods) == (False, []) and message in problem
    server.says(pod("a"))
    assert said(source) == (True, ["a-node"], "")
    server.says(body, code)
    for _ in range(2):
        ready, pods, problem = said(source)
        assert (ready, pods) == (True, ["a-node"]) and message in problem
    server.says(pod("a"))
    assert said(source) == (True, ["a-node"], "")


def test_an_empty_answer_means_no_pods(server, source):
    server.says(pod("a"))
    source.read()
    server.says(b"")
    assert said(source) == (True, [], "the answer is empty: no pods from this URL")
    server.says(pod_list())
    assert said(source) == (True, [], "")


def test_a_server_that_is_away_is_named_without_its_password(server, source):
    server.shutdown()
    server.server_close()
    ready, pods, problem = said(source)
    assert (ready, pods) == (False, []) and "Connection refused" in problem
    assert "secret" not in problem + "".join(source.read().items)
