"""The Flask applications, one per listener, and the rules they share (404, 405, authentication).

Source: Kubernetes 1.37 pkg/kubelet/server/server.go.
"""

from __future__ import annotations

from collections.abc import Callable

from flask import Flask, Response, request

from kubelet_mp import log
from kubelet_mp.rooms.http.auth import Gate, attributes, forbidden_text
from kubelet_mp.rooms.http.views import LocalViews, Views

PLAIN = "text/plain; charset=utf-8"
ANY = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
RESTFUL = frozenset({  # prefixes that have routes below them
    "pods", "runningpods", "containerLogs", "run", "exec", "attach", "portForward", "stats", "checkpoint", "logs",
    "debug", "statusz", "flagz",
})
READABLE = frozenset({"pods", "stats"})
DEBUG_ONLY = ("run", "exec", "attach", "portForward", "containerLogs", "runningpods", "debug/pprof", "logs")
NOT_YET = ("run", "exec", "attach", "portForward", "stats", "checkpoint", "logs", "debug", "statusz", "flagz",
           "metrics/cadvisor", "metrics/resource", "metrics/probes", "metrics/slis")
_log = log.get("http")
View = Callable[..., Response]


def text(body: str, status: int = 200, **headers: str) -> Response:
    return Response(body, status, {"Content-Type": PLAIN, **headers})


def only(view: View, *methods: str) -> View:
    """The view for these methods; others get the 405 that names them."""

    def checked(**arguments: str) -> Response:
        if request.method not in methods:
            return text("405: Method Not Allowed", 405, Allow=", ".join(methods))
        return view(**arguments)

    return checked


def new_app(name: str, restful: frozenset[str] = frozenset()) -> Flask:
    """restful: prefixes under which a path without a route is told so in another way (and after authentication)."""
    app = Flask(name, static_folder=None, template_folder=None)
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = False
    app.logger.disabled = True  # errors are told below, with the room's own logger
    app.register_error_handler(404, lambda _: _not_found(restful))
    app.register_error_handler(405, lambda _: text("405: Method Not Allowed", 405))
    app.register_error_handler(Exception, _failed)
    return app


def add(app: Flask, path: str, view: View) -> None:
    app.add_url_rule(path, endpoint=path, view_func=view, methods=list(ANY), provide_automatic_options=False)


def _first() -> str:
    return request.path.lstrip("/").partition("/")[0]


def _not_found(restful: frozenset[str]) -> Response:
    if _first() in restful:
        return text("404: Page Not Found", 404)
    return text("404 page not found\n", 404)


def _failed(error: Exception) -> Response:
    """The edge of a request: whatever went wrong in a view is told in the log and answered with 500."""
    _log.exception("request failed", method=request.method, path=request.path, err=str(error))
    return text("Internal Server Error\n", 500)


def _unsupported(**_: str) -> Response:
    return text(f"{request.path} is not implemented by kubelet-mp yet\n", 501)


def _disabled(**_: str) -> Response:
    return text("Debug endpoints are disabled.\n", 405)


def full_app(views: Views, gate: Gate, debugging: bool) -> Flask:
    """10250. debugging: enableDebuggingHandlers."""
    app = new_app("kubelet", RESTFUL if debugging else READABLE)
    app.before_request(lambda: _guard(gate))
    _group_a(app, views)
    if debugging:
        _group_b(app, views)
    else:
        _refuse_debugging(app)
    for prefix in NOT_YET:
        if debugging or prefix.startswith(("metrics", "stats")):
            add(app, f"/{prefix}", _unsupported)
            add(app, f"/{prefix}/<path:rest>", _unsupported)
    return app


def read_only_app(views: Views) -> Flask:
    """10255: no authentication, nothing but reading."""
    app = new_app("read-only", READABLE)
    _group_a(app, views)
    _refuse_debugging(app)
    for prefix in NOT_YET:
        if prefix.startswith(("metrics", "stats")):
            add(app, f"/{prefix}", _unsupported)
            add(app, f"/{prefix}/<path:rest>", _unsupported)
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


def _refuse_debugging(app: Flask) -> None:
    for prefix in DEBUG_ONLY:
        add(app, f"/{prefix}", _disabled)
        add(app, f"/{prefix}/<path:rest>", _disabled)


def _guard(gate: Gate) -> Response | None:
    """Nothing is answered, and no view runs, before this lets the request through."""
    if request.url_rule is None and _first() not in RESTFUL:
        return text("404 page not found\n", 404)
    user = gate.user(request.environ.get("gunicorn.socket"))
    if user is None:
        return text("Unauthorized", 401)
    wanted = attributes(request.method, request.path)
    if not gate.authorizer.allows(user, wanted):
        return text(forbidden_text(user, wanted), 403)
    return None
