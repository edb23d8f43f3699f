"""Requests about single objects of the API server, and the opening of streams."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Mapping
from typing import Any

import requests
import urllib3

from kubelet_mp import __version__
from kubelet_mp.config import Settings
from kubelet_mp.errors import ApiError
from kubelet_mp.host.kubeapi import answers
from kubelet_mp.host.kubeapi.credentials import Credentials, Kubeconfig, Login
from kubelet_mp.host.kubeapi.transport import open_session
from kubelet_mp.model import clock

TIMEOUT = 10.0  # s
LIMIT = 256 << 20  # bytes of an answer
_CHUNK = 64 * 1024
_KINDS = {
    "strategic": "application/strategic-merge-patch+json", "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
}

Json = dict[str, Any]


class KubeApi:
    """The API server as one user sees it; any thread may call. `timeout` in seconds for a whole request.

    Each method takes the path ("/api/v1/nodes/x") and query parameters, gives the decoded answer, and raises
    ApiError. Nothing is tried twice but a GET over a connection that the server had closed.
    """

    def __init__(self, credentials: Credentials, *, timeout: float = TIMEOUT, agent: str = "") -> None:
        self._credentials, self._timeout = credentials, timeout
        self._agent = agent or f"kubelet-mp/{__version__}"
        self._lock = threading.Lock()
        self._login: Login | None = None
        self._session: requests.Session | None = None

    def get(self, path: str, *, timeout: float = 0.0, **params: Any) -> Json:
        return self._request("GET", path, None, "", timeout, params)

    def create(self, path: str, body: Any, *, timeout: float = 0.0, **params: Any) -> Json:
        """POST to a collection or a subresource."""
        return self._request("POST", path, body, "application/json", timeout, params)

    def update(self, path: str, body: Any, *, timeout: float = 0.0, **params: Any) -> Json:
        """PUT the whole object; its resourceVersion, if there is one, must still hold (else `.conflict`)."""
        return self._request("PUT", path, body, "application/json", timeout, params)

    def patch(
        self, path: str, body: Any, *, kind: str = "strategic", timeout: float = 0.0, **params: Any
    ) -> Json:
        """`kind`: strategic, merge or json."""
        return self._request("PATCH", path, body, _KINDS[kind], timeout, params)

    def delete(self, path: str, body: Any = None, *, timeout: float = 0.0, **params: Any) -> Json:
        """`body`: DeleteOptions, e.g. gracePeriodSeconds and preconditions."""
        return self._request("DELETE", path, body, "application/json" if body is not None else "", timeout, params)

    def stream(self, path: str, *, quiet: float, **params: Any) -> requests.Response:
        """GET an answer that the caller reads and closes. `quiet`: s without a byte after which reading fails."""
        answer = self._send("GET", path, None, "", self._timeout, params)
        if answer.ok:
            _let_wait(answer, quiet)
            return answer
        with answer:
            raise self._refusal("GET", path, answer, clock.monotonic() + self._timeout)

    def close(self) -> None:
        """Drop the idle connections; a later call opens new ones."""
        with self._lock:
            session, self._session, self._login = self._session, None, None
        if session is not None:
            session.close()

    # ---- one request ----

    def _request(
        self, method: str, path: str, body: Any, content: str, timeout: float, params: Mapping[str, Any]
    ) -> Json:
        timeout = timeout or self._timeout
        deadline = clock.monotonic() + timeout
        with self._send(method, path, body, content, timeout, params) as answer:
            if not answer.ok:
                raise self._refusal(method, path, answer, deadline)
            return answers.decode(method, path, self._body(method, path, answer, deadline))

    def _send(
        self, method: str, path: str, body: Any, content: str, timeout: float, params: Mapping[str, Any]
    ) -> requests.Response:
        data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        headers = {"Content-Type": content} if content else {}
        for attempt in (1, 2):
            login, session = self._opened()
            try:
                return session.request(
                    method, login.server + path, params=answers.query(params), data=data, headers=headers,
                    timeout=timeout, stream=True, allow_redirects=False)
            except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
                if attempt == 2 or not answers.may_repeat(method, error):
                    raise answers.unreachable(method, path, login.server, timeout, error) from error
        raise AssertionError("the second attempt returns or raises")

    def _opened(self) -> tuple[Login, requests.Session]:
        """The session of the newest login. An older one loses its idle connections; its streams go on."""
        login = self._credentials.current()
        with self._lock:
            old = None
            if self._session is None or login is not self._login:
                old, self._session, self._login = self._session, open_session(login, self._agent), login
            session = self._session
        if old is not None:
            old.close()
        return login, session

    def _body(self, method: str, path: str, answer: requests.Response, deadline: float) -> bytes:
        body = bytearray()
        try:
            while chunk := answer.raw.read1(_CHUNK):  # read() would wait for a whole chunk of a dripping body
                body += chunk
                if len(body) > LIMIT or clock.monotonic() > deadline:
                    raise answers.endless(method, path)
        except (OSError, urllib3.exceptions.HTTPError) as error:
            raise answers.broken(method, path, error) from error
        return bytes(body)

    def _refusal(self, method: str, path: str, answer: requests.Response, deadline: float) -> ApiError:
        body = b""
        with contextlib.suppress(ApiError):  # the status alone says enough
            body = self._body(method, path, answer, deadline)
        return answers.refusal(method, path, answer.status_code, answer.headers.get("Retry-After", ""), body)


def _let_wait(answer: requests.Response, seconds: float) -> None:
    """A stream may be silent for longer than the beginning of an answer may take."""
    sock = getattr(getattr(answer.raw, "connection", None), "sock", None)
    if sock is not None:
        sock.settimeout(seconds)


def api_for(settings: Settings, name: str) -> KubeApi:
    """The API server of --kubeconfig for a room called `name`. Raises ApiError while there are no credentials."""
    credentials = Kubeconfig(settings.kubeconfig)
    credentials.current()
    return KubeApi(credentials, agent=f"kubelet-mp/{__version__} ({name})")
