"""The views: each turns what the room knows into one answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import Response, request

from kubelet_mp.config import Settings
from kubelet_mp.errors import RuntimeCallError
from kubelet_mp.model import clock
from kubelet_mp.rooms.http import health, localapi, metrics
from kubelet_mp.rooms.http.logquery import LogRequestError
from kubelet_mp.rooms.http.podlogs import PodLogs
from kubelet_mp.rooms.http.state import State, encode

PLAIN = {"Content-Type": "text/plain; charset=utf-8"}
JSON = {"Content-Type": "application/json"}


@dataclass
class Views:
    """For 10250 and 10255. running: the pods that the runtime runs, as a list of Pod objects."""

    settings: Settings
    state: State
    logs: PodLogs
    own_metrics: metrics.HttpMetrics
    running: Callable[[], list[dict[str, Any]]]
    supervisor: int

    def __post_init__(self) -> None:
        self.checks = health.checks(self.state, self.settings.kubelet.sync_frequency)

    def healthz(self) -> Response:
        status, body = health.all_checks(self.checks, "verbose" in request.args, request.args.getlist("exclude"))
        return Response(body, status, PLAIN)

    def healthz_one(self, name: str) -> Response:
        status, body = health.one_check(self.checks[name])
        return Response(body, status, PLAIN)

    def pods(self) -> Response:
        bodies = b",".join(view.body for view in self.state.pods())
        return Response(b'{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[' + bodies + b"]}\n",
                        headers=JSON)

    def running_pods(self) -> Response:
        try:
            items = self.running()
        except RuntimeCallError as error:
            return Response(error.message, 500, PLAIN)
        return Response(encode({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}), headers=JSON)

    def configz(self) -> Response:
        return Response(encode({"kubeletconfig": self.settings.as_v1beta1()}), headers=JSON)

    def metrics(self) -> Response:
        body = metrics.page(self.state, self.own_metrics, self.supervisor)
        return Response(body, headers={"Content-Type": metrics.CONTENT_TYPE})

    def container_logs(self, namespace: str, pod: str, container: str) -> Response:
        sock = request.environ.get("gunicorn.socket")
        query = request.args.to_dict(flat=False)
        try:
            stream = self.logs.open(namespace, pod, container, query, sock.fileno() if sock is not None else -1)
        except LogRequestError as error:
            headers = PLAIN | ({"Retry-After": "10"} if error.status == 429 else {})
            return Response(str(error), error.status, headers)
        response = Response(stream.chunks, headers=PLAIN)
        response.call_on_close(stream.close)
        return response


@dataclass
class LocalViews:
    """For the command line."""

    settings: Settings
    state: State

    def pods(self) -> Response:
        return _json(localapi.pods(self.state, self.settings.node_name, clock.monotonic(), clock.wall_time()))

    def why(self, namespace: str, pod: str) -> Response:
        found = localapi.why(self.state, namespace, pod, clock.monotonic(), clock.wall_time())
        if found is None:
            return _json({"error": f'pod "{namespace}/{pod}" does not exist'}, 404)
        return _json(found)

    def rooms(self) -> Response:
        return _json(localapi.rooms(self.state))


def _json(value: Any, status: int = 200) -> Response:
    return Response(encode(value), status, JSON)
