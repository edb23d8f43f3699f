"""A small real HTTP server that behaves and misbehaves."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kubelet_mp.host.fetch import Fetcher, FetchError, shown_url


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        getattr(self, "do_" + self.path.strip("/").replace("-", "_"))()

    def _answer(self, body, code=200, **headers):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_headers(self):
        self._answer("\n".join(f"{name}: {value}" for name, value in self.headers.items()).encode())

    def do_big(self):
        self._answer(b"x" * 2000)

    def do_moved(self):
        self._answer(b"", 302, Location="/big")

    def do_round(self):
        self._answer(b"", 302, Location="/round")

    def do_missing(self):
        self._answer(b"no", 404)

    def do_chunked(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")

    def do_cut(self):
        self.send_response(200)
        self.send_header("Content-Length", "10")
        self.end_headers()
        self.wfile.write(b"abc")
        self.close_connection = True

    def do_silent(self):
        self.server.over.wait(5)
        self.close_connection = True

    def do_drip(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        while not self.server.over.wait(0.05):
            self.wfile.write(b"x")
            self.wfile.flush()

    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def url():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.over = threading.Event()
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.over.set()
    server.shutdown()
    server.server_close()


def get(url, timeout=5.0, limit=5000, **headers):
    fetcher = Fetcher(url, headers, timeout=timeout, limit=limit)
    try:
        return fetcher.get()
    finally:
        fetcher.close()


def test_bodies_headers_and_redirects(url):
    assert get(url + "/big") == get(url + "/moved") == b"x" * 2000
    assert get(url + "/chunked") == b"abcde"
    assert b"X-Mine: a, b" in get(url + "/headers", **{"X-Mine": "a, b"})


@pytest.mark.parametrize(("path", "message"), [
    ("/missing", "404 Not Found"), ("/silent", r"no answer within 0\.3 s"), ("/drip", r"did not end within 0\.3 s"),
    ("/round", "Exceeded 10 redirects"), ("/cut", "IncompleteRead"),
])
def test_failures_say_what_happened(url, path, message):
    with pytest.raises(FetchError, match=message) as caught:
        get(url + path, timeout=0.3)
    assert f"GET {url}{path}: " in str(caught.value)


def test_the_size_is_limited(url):
    assert len(get(url + "/big", limit=2000)) == 2000
    with pytest.raises(FetchError, match="larger than 1999 bytes"):
        get(url + "/big", limit=1999)


def test_nobody_there(url):
    with pytest.raises(FetchError, match="Connection refused"):
        get("http://127.0.0.1:1/x")
    with pytest.raises(FetchError):
        get("http://")
    with pytest.raises(FetchError):
        get("nonsense")


def test_the_environment_does_not_matter(url, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/none")
    assert get(url + "/chunked") == b"abcde"


def test_credentials_are_not_shown(url):
    assert shown_url("https://me:secret@h:1/p?q") == "https://h:1/p?q"
    with pytest.raises(FetchError) as caught:
        get("http://me:secret@127.0.0.1:1/x")
    assert "secret" not in str(caught.value)
