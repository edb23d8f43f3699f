"""The fake API server's HTTP side, and what a test does with it."""

from __future__ import annotations

import contextlib
import copy
import json
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from kubelet_mp.host.kubeapi import KubeApi, Kubeconfig, Login
from kubelet_mp.model.clock import NS, SYSTEM, monotonic, rfc3339
from tests.fakes.api.faults import RELEASE, Fault, Faults
from tests.fakes.api.store import Address, Change, Json, Refused, Store, matches, path_of

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True)
class Request:
    """One that came in. `verb` as in Fault; `body` decoded."""

    verb: str
    path: str
    params: dict[str, str]
    body: Any
    headers: dict[str, str] = field(repr=False)


@dataclass(frozen=True)
class _Fixed:
    """Credentials that never change."""

    login: Login

    def current(self) -> Login:
        return self.login


class FakeApi:
    """Objects by their path ("/api/v1/namespaces/default/pods/web"); a `tls` context makes it an https server.

    A test changes objects with add, change and remove (as a controller would: without checks), makes requests
    fail with fail, delay, hang and drop, ends watches with cut, makes the past unknown with expire, and takes the
    whole server away with down and up.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.store, self.faults, self.requests = Store(), Faults(), list[Request]()
        self.epoch = 0  # watches end when it changes
        self.bookmarks = 0
        self.watches = 0  # that run now
        self.connections = 0  # that were ever opened
        self._tls, self._lock, self._sockets = tls, threading.Lock(), set[socket.socket]()
        self._port, self._server, self._kubes = 0, None, list[KubeApi]()  # type: ignore[var-annotated]

    # ---- for tests: the server ----

    def up(self) -> None:
        server: Any = _Server(("127.0.0.1", self._port), _Handler)
        server.fake = self
        if self._tls is not None:
            server.socket = self._tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self._server, self._port = server, server.server_address[1]
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()

    def down(self) -> None:
        """No one listens any more, and all connections break; the objects stay."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
        self.cut()
        with self._lock:
            sockets = list(self._sockets)
        for sock in sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self._port}"

    def kube(self, timeout: float = 5.0) -> KubeApi:
        """A client without credentials."""
        self._kubes.append(KubeApi(_Fixed(Login(self.url)), timeout=timeout))
        return self._kubes[-1]

    def kubeconfig(self, path: Path, user: Json | None = None, cluster: Json | None = None) -> str:
        """Write a kubeconfig for this server; gives its path."""
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "c", "cluster": {"server": self.url, **(cluster or {})}}],
            "users": [{"name": "u", "user": user or {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        }))
        return str(path)

    def kube_of(self, kubeconfig: str, timeout: float = 5.0) -> KubeApi:
        self._kubes.append(KubeApi(Kubeconfig(kubeconfig), timeout=timeout))
        return self._kubes[-1]

    def __enter__(self) -> FakeApi:
        self.up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.faults.clear()
        self.down()
        for kube in self._kubes:
            kube.close()

    # ---- for tests: the objects ----

    def add(self, found: Json) -> Json:
        """Create it, and a uid and versions with it; gives what was stored."""
        path = path_of(found)
        return self.store.create(Address.parse(path.rpartition("/")[0]), found)

    def get(self, path: str) -> Json | None:
        try:
            return self.store.find(Address.parse(path))
        except Refused:
            return None

    def change(self, path: str, edit: Callable[[Json], Any]) -> Json:
        """`edit` changes a copy in place, spec and status alike."""
        return self.store.change(Address.parse(path), edit)

    def remove(self, path: str) -> None:
        """At once, without grace."""
        self.store.remove(Address.parse(path))

    def all(self, path: str) -> list[Json]:
        """The objects of a collection."""
        at = Address.parse(path)
        with self.store.changed:
            return [copy.deepcopy(one) for key, one in self.store.objects.items() if at.holds(key)]

    # ---- for tests: faults ----

    def fail(
        self, status: int, verb: str = "", path: str = "", *, times: int = -1, reason: str = "InternalError",
        message: str = "made to fail", after: int = 0,
    ) -> None:
        """Requests that fit get this status; `times` below 0: until faults.clear()."""
        self.faults.add(Fault(verb, path, times, Refused(status, reason, message, after)))

    def delay(self, seconds: float, verb: str = "", path: str = "", *, times: int = -1) -> None:
        self.faults.add(Fault(verb, path, times, delay=seconds))

    def hang(self, verb: str = "", path: str = "", *, times: int = -1) -> threading.Event:
        """Requests that fit are answered only once the event is set."""
        event = threading.Event()
        self.faults.add(Fault(verb, path, times, hang=event))
        return event

    def drop(self, verb: str = "", path: str = "", *, times: int = 1) -> None:
        """Requests that fit are done, but the connection is closed without an answer."""
        self.faults.add(Fault(verb, path, times, drop=True))

    def expire(self) -> None:
        """All watches end, and none can be taken up at a version that was known until now: 410."""
        with self.store.changed:
            self.store.version += 1
            self.store.oldest = self.store.version
        self.cut()

    def cut(self) -> None:
        """All watches end."""
        with self.store.changed:
            self.epoch += 1
            self.store.changed.notify_all()

    def bookmark(self) -> None:
        """Tell all watches the newest version."""
        with self.store.changed:
            self.bookmarks += 1
            self.store.changed.notify_all()

    def asked(self, verb: str = "", path: str = "") -> list[Request]:
        """The requests so far that fit, oldest first; path: a part of it."""
        return [one for one in list(self.requests) if verb in ("", one.verb) and path in one.path]

    # ---- for the handler ----

    def opened(self, sock: socket.socket) -> None:
        with self._lock:
            self._sockets.add(sock)
            self.connections += 1

    def closed(self, sock: socket.socket) -> None:
        with self._lock:
            self._sockets.discard(sock)

    def answer(self, request: Request) -> tuple[int, Json]:
        """Do what a request other than a watch asks for. Raises Refused."""
        if request.path == "/version":
            return 200, {"major": "1", "minor": "37", "gitVersion": "v1.37.2"}
        at, params = Address.parse(request.path), request.params
        if request.verb == "list":
            return 200, self.store.list(at, params.get("fieldSelector", ""), params.get("labelSelector", ""))
        if request.verb == "get":
            return 200, self.store.find(at)
        if request.verb == "create":
            return 201, self._token(at, request.body) if at.sub == "token" else self.store.create(at, request.body)
        if request.verb == "update":
            return 200, self.store.update(at, request.body)
        if request.verb == "patch":
            return 200, self.store.patch(at, request.body, request.headers.get("Content-Type", ""))
        return 200, self.store.delete(at, {**params, **(request.body or {})})

    def _token(self, at: Address, body: Json) -> Json:
        """TokenRequest: a token that says how many there were before it."""
        number = len(self.asked("create", "/token"))
        spec = body.get("spec") or {}
        expires = rfc3339(SYSTEM.wall_time_ns() + int(spec.get("expirationSeconds") or 3600) * NS)
        return {**body, "status": {"token": f"token-{at.namespace}-{at.name}-{number}", "expirationTimestamp": expires}}

    def events(self, request: Request) -> Iterator[Json | None]:
        """The events of a watch as they happen, None where it would wait; it ends by cut or timeoutSeconds."""
        at, params, store = Address.parse(request.path), request.params, self.store
        ends = monotonic() + float(params.get("timeoutSeconds") or 1800)
        fields, labels = params.get("fieldSelector", ""), params.get("labelSelector", "")
        with store.changed:
            epoch, marks, since = self.epoch, self.bookmarks, int(params.get("resourceVersion") or 0)
            if since < store.oldest and since:
                refused = Refused(410, "Expired", f"too old resource version: {since} ({store.oldest})")
                yield {"type": "ERROR", "object": refused.status}
                return
            if not since:
                since = store.version
                for key, found in store.objects.items():
                    if at.holds(key) and matches(found, fields, labels):
                        yield {"type": "ADDED", "object": found}
        while True:
            with store.changed:
                fresh = [change for change in store.changes if change.version > since]
                marked, marks = self.bookmarks > marks, self.bookmarks
                if not (fresh or marked) and self.epoch == epoch:
                    store.changed.wait(min(1.0, max(ends - monotonic(), 0.01)))
                version = store.version
                over = self.epoch != epoch or monotonic() >= ends
            yield from filter(None, (_event(change, at, fields, labels) for change in fresh))
            since = max([since, *(change.version for change in fresh)])
            if marked and params.get("allowWatchBookmarks") == "true":
                meta = {"resourceVersion": str(version), "creationTimestamp": None}
                yield {"type": "BOOKMARK", "object": {"kind": at.kind, "metadata": meta}}
            if over:
                return
            yield None


def _event(change: Change, at: Address, fields: str, labels: str) -> Json | None:
    if not at.holds(change.address):
        return None
    was = change.old is not None and matches(change.old, fields, labels)
    if change.new is not None and matches(change.new, fields, labels):
        return {"type": "MODIFIED" if was else "ADDED", "object": change.new}
    if not was or change.old is None:
        return None
    version = {"resourceVersion": str(change.version)}
    return {"type": "DELETED", "object": {**change.old, "metadata": {**change.old["metadata"], **version}}}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away, or do not trust us, are part of the tests."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Any

    def setup(self) -> None:
        if isinstance(self.request, ssl.SSLSocket):
            self.request.settimeout(10)
            self.request.do_handshake()
        super().setup()
        self.server.fake.opened(self.connection)

    def finish(self) -> None:
        self.server.fake.closed(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, *args: Any) -> None:
        """Silent."""

    def _serve(self) -> None:
        fake: FakeApi = self.server.fake
        request = self._read()
        fault = fake.faults.take(request.verb, request.path)
        fake.requests.append(request)
        try:
            self._reply(fake, request, fault)
        except OSError:
            self.close_connection = True  # the client went away, or the server went down

    def _reply(self, fake: FakeApi, request: Request, fault: Fault | None) -> None:
        try:
            if fault is not None:
                self._suffer(fault)
            if request.verb == "watch":
                self._stream(fake, request)
                return
            code, found = fake.answer(request)
        except Refused as refused:
            self._send(refused.code, refused.status, refused.after)
            return
        if fault is not None and fault.drop:
            self.close_connection = True
        else:
            self._send(code, found)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def _read(self) -> Request:
        parts = urlsplit(self.path)
        params = dict(parse_qsl(parts.query))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        verb = _VERBS.get(self.command, "")
        if not verb:
            verb = "watch" if params.get("watch") == "true" else "get"
            with contextlib.suppress(Refused):
                verb = "list" if verb == "get" and not Address.parse(parts.path).name else verb
        return Request(verb, parts.path, params, json.loads(body) if body else None, dict(self.headers))

    def _suffer(self, fault: Fault) -> None:
        if fault.delay:
            threading.Event().wait(fault.delay)
        if fault.hang is not None:
            fault.hang.wait(RELEASE)
        if fault.refused is not None:
            raise fault.refused

    def _send(self, code: int, found: Json, after: int = 0) -> None:
        data = json.dumps(found).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if after:
            self.send_header("Retry-After", str(after))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, fake: FakeApi, request: Request) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with fake.store.changed:
            fake.watches += 1
        try:
            for event in fake.events(request):
                if event is not None:
                    data = json.dumps(event).encode() + b"\n"
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.write(b"0\r\n\r\n")
        finally:
            with fake.store.changed:
                fake.watches -= 1
