"""The views of streams: the application's part ends with the URL to which the worker hands the connection over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flask import Response, request

from kubelet_mp.rooms.http.pump import MAX_STREAMS, Pump
from kubelet_mp.rooms.http.streamquery import StreamRequestError, untranslated
from kubelet_mp.rooms.http.streams import PodStreams
from kubelet_mp.rooms.http.views import JSON, PLAIN
from kubelet_mp.rooms.http.worker import UPGRADE


@dataclass
class StreamViews:
    """For 10250."""

    streams: PodStreams
    pump: Pump

    def exec(self, namespace: str, pod: str, container: str, uid: str = "") -> Response:
        return self._upgrade(lambda: self.streams.exec(namespace, pod, container, _query(), uid))

    def attach(self, namespace: str, pod: str, container: str, uid: str = "") -> Response:
        return self._upgrade(lambda: self.streams.attach(namespace, pod, container, _query(), uid))

    def port_forward(self, namespace: str, pod: str, uid: str = "") -> Response:
        return self._upgrade(lambda: self.streams.port_forward(namespace, pod, _query(), uid))

    def run(self, namespace: str, pod: str, container: str, uid: str = "") -> Response:
        command = request.args.get("cmd", "").split(" ")
        try:
            return Response(self.streams.run(namespace, pod, container, command, uid), headers=JSON)
        except StreamRequestError as error:
            return _refused(error)

    def _upgrade(self, ask: Callable[[], str]) -> Response:
        try:
            self._check()
            url = ask()
        except StreamRequestError as error:
            return _refused(error)
        if "upgrade" not in request.headers.get("Connection", "").lower():
            return Response("Upgrade request required\n", 500, PLAIN)
        request.environ[UPGRADE] = url
        return Response(status=101)

    def _check(self) -> None:
        if self.pump.full:
            raise StreamRequestError(429, f"{MAX_STREAMS} streams are open already; close one and try again", 10)
        protocols = request.headers.get("Sec-WebSocket-Protocol", "")
        if found := untranslated(request.headers.get("Upgrade", ""), protocols):
            raise StreamRequestError(501, f"kubelet-mp does not translate the WebSocket protocol {found}: use SPDY/3.1")


def _query() -> dict[str, list[str]]:
    return request.args.to_dict(flat=False)


def _refused(error: StreamRequestError) -> Response:
    retry = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
    return Response(f"{error}\n", error.status, PLAIN | retry)
