"""The Flask applications, one per listener, and the rules they share (404, 405, authentication).

Source: Kubernetes 1.37 pkg/kubelet/server/server.go.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

from flask import Flask, Request, Response, request
from werkzeug.exceptions import HTTPException
from werkzeug.routing import MapAdapter

from kubelet_mp import log
from kubelet_mp.rooms.http.auth import Gate, attributes, forbidden_text
from kubelet_mp.rooms.http.streamviews import StreamViews
from kubelet_mp.rooms.http.views import LocalViews, Views

PLAIN = "text/plain; charset=utf-8"
ANY = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
# prefixes that have routes below them
RESTFUL = ("pods", "runningpods", "containerLogs", "run", "exec", "attach", "portForward")
DEBUG_ONLY = ("run", "exec", "attach", "portForward", "containerLogs", "runningpods", "debug/pprof", "logs")
READ_MISSING = ("stats", "metrics/cadvisor", "metrics/resource", "metrics/probes", "metrics/slis")
MISSING = ("checkpoint", "logs", "debug", "statusz", "flagz", *READ_MISSING)
_log = log.get("http")
View = Callable[..., Response]


@dataclass(frozen=True)
class Site:
    """What one listener says of paths without a route, by their prefix."""

    restful: tuple[str, ...] = ()  # known: an unknown path below is told so in another way
    disabled: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()  # a kubelet has them, this one not yet

    def known(self, path: str) -> bool:
        return any(_below(path, prefix) for prefix in (*self.restful, *self.disabled, *self.missing))

    def no_route(self, path: str) -> Response:
        if any(_below(path, prefix) for prefix in self.disabled):
            return text("Debug endpoints are disabled.\n", 405)
        if any(_below(path, prefix) for prefix in self.missing):
            return text(f"{path} is not implemented by kubelet-mp yet\n", 501)
        if any(_below(path, prefix) for prefix in self.restful):
            return text("404: Page Not Found", 404)
        return text("404 page not found\n", 404)


def _below(path: str, prefix: str) -> bool:
    return path[1:] == prefix or path.startswith(f"/{prefix}/")


def text(body: str, status: int = 200, **headers: str) -> Response:
    return Response(body, status, {"Content-Type": PLAIN, **headers})


def only(view: View, *methods: str) -> View:
    """The view for these methods; others get the 405 that names them."""

    def checked(**arguments: str) -> Response:
        if request.method not in methods:
            return text("405: Method Not Allowed", 405, Allow=", ".join(methods))
        return view(**arguments)

    return checked


class _App(Flask):
    """Routes a request for a WebSocket as any other: it is the runtime that speaks it."""

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        adapter = super().create_url_adapter(request)
        if adapter is not None:
            adapter.websocket = False
        return adapter


def new_app(name: str, site: Site = Site()) -> Flask:
    app = _App(name, static_folder=None, template_folder=None)
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = False
    app.logger.disabled = True  # errors are told below, with the room's own logger
    app.register_error_handler(404, lambda _: site.no_route(request.path))
    app.register_error_handler(405, lambda _: text("405: Method Not Allowed", 405))
    app.register_error_handler(Exception, _failed)
    return app


def add(app: Flask, path: str, view: View) -> None:
    app.add_url_rule(path, endpoint=path, view_func=view, methods=list(ANY), provide_automatic_options=False)


def _failed(error: Exception) -> Response:
    """The edge of a request: whatever went wrong in a view is told in the log and answered with 500."""
    if isinstance(error, HTTPException):
        return text(f"{error.description}\n", error.code or 500)
    _log.exception("request failed", method=request.method, path=request.path, err=str(error))
    return text("Internal Server Error\n", 500)


def full_app(views: Views, streams: StreamViews, gate: Gate, debugging: bool) -> Flask:
    """10250. debugging: enableDebuggingHandlers."""
    site = Site(RESTFUL, (), MISSING) if debugging else Site(("pods",), DEBUG_ONLY, READ_MISSING)
    app = new_app("kubelet", site)
    app.before_request(lambda: _guard(gate, site))
    _group_a(app, views)
    if debugging:
        _group_b(app, views)
        _streams(app, streams)
    return app


def read_only_app(views: Views) -> Flask:
    """10255: no authentication, nothing but reading."""
    app = new_app("read-only", Site(("pods",), DEBUG_ONLY, READ_MISSING))
    _group_a(app, views)
    return app


def healthz_app(views: Views) -> Flask:
    """10248."""
    app = new_app("healthz")
    add(app, "/healthz", lambda: text("ok"))
    add(app, "/healthz/ping", lambda: text("ok"))
    return app


def local_app(views: Views, local: LocalViews) -> Flask:
    """The unix socket: for the command line, read-only."""
    app = new_app("local")
    add(app, "/local/pods", only(local.pods, "GET"))
    add(app, "/local/why/<namespace>/<pod>", only(local.why, "GET"))
    add(app, "/local/rooms", only(local.rooms, "GET"))
    add(app, "/containerLogs/<namespace>/<pod>/<container>", only(views.container_logs, "GET"))
    return app


def _group_a(app: Flask, views: Views) -> None:
    add(app, "/healthz", views.healthz)
    for name in views.checks:
        add(app, f"/healthz/{name}", lambda name=name: views.healthz_one(name))
    add(app, "/pods", only(views.pods, "GET"))
    add(app, "/metrics", views.metrics)


def _group_b(app: Flask, views: Views) -> None:
    add(app, "/configz", views.configz)
    add(app, "/runningpods/", only(views.running_pods, "GET"))
    add(app, "/containerLogs/<namespace>/<pod>/<container>", only(views.container_logs, "GET"))
    for path, missing in (("/containerLogs//<path:rest>", "podNamespace"),
                          ("/containerLogs/<namespace>//<container>", "podID"),
                          ("/containerLogs/<namespace>/<pod>//", "containerName")):
        add(app, path, lambda missing=missing, **_: text(f'{{"message": "Missing {missing}."}}', 400))


def _streams(app: Flask, views: StreamViews) -> None:
    container = "/<namespace>/<pod>/<container>"
    with_uid = "/<namespace>/<pod>/<uid>/<container>"
    for name, view in (("exec", views.exec), ("attach", views.attach)):
        for path in (container, with_uid):
            add(app, f"/{name}{path}", only(view, "GET", "POST"))
    for path in ("/<namespace>/<pod>", "/<namespace>/<pod>/<uid>"):
        add(app, f"/portForward{path}", only(views.port_forward, "GET", "POST"))
    for path in (container, with_uid):
        add(app, f"/run{path}", only(views.run, "POST"))


def _guard(gate: Gate, site: Site) -> Response | None:
    """Nothing is answered, and no view runs, before this lets the request through."""
    if request.url_rule is None and not site.known(request.path):
        return site.no_route(request.path)
    user = gate.user(request.environ.get("gunicorn.socket"))
    if user is None:
        return text("Unauthorized", 401)
    wanted = attributes(request.method, request.path)
    if not gate.authorizer.allows(user, wanted):
        return text(forbidden_text(user, wanted), 403)
    return None


def _warm_up() -> None:
    """Answer one request of no importance: what that leaves in memory is then shared by all forked rooms."""
    app = new_app("warm-up")
    add(app, "/healthz/<path:rest>", lambda rest: text("ok"))
    environ = {
        "REQUEST_METHOD": "GET", "SCRIPT_NAME": "", "PATH_INFO": "/healthz/x", "QUERY_STRING": "verbose",
        "SERVER_NAME": "localhost", "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(), "wsgi.errors": io.StringIO(),
    }
    app.wsgi_app(environ, lambda *_: lambda data: None)


_warm_up()
