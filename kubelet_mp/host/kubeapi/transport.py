"""HTTP connections to the API server, as one login wants them; nothing of the environment counts."""

from __future__ import annotations

import http.cookiejar
import socket
from typing import Any

import requests
import urllib3
from requests.adapters import HTTPAdapter

from kubelet_mp.host.kubeapi.credentials import Login

_KEPT = 12  # idle connections that are kept open: the reporter alone writes with eight threads and a few more

_SOCKET_OPTIONS = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    # a server that vanished without a word: a watch notices it within a minute
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 60_000),  # ms that sent data may stay unacknowledged
]


def open_session(login: Login, agent: str) -> requests.Session:
    """A session for one login. Threads may share it: it keeps no state but its connections."""
    session = requests.Session()
    session.trust_env = False
    session.verify = not login.insecure
    session.cookies.set_policy(http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))
    session.headers.update({
        "User-Agent": agent, "Accept": "application/json", "Accept-Encoding": "identity", **login.headers,
    })
    session.adapters.clear()
    session.mount(login.server, _Adapter(login))
    if login.insecure:
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    return session


class _Adapter(HTTPAdapter):
    """Uses the login's own TLS context, and no roots beside those in it."""

    def __init__(self, login: Login) -> None:
        self._login = login
        super().__init__(pool_connections=1, pool_maxsize=_KEPT, max_retries=0)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **more: Any) -> None:
        if self._login.context is not None:
            more.update(ssl_context=self._login.context, server_hostname=self._login.server_name or None)
        super().init_poolmanager(connections, maxsize, block, socket_options=_SOCKET_OPTIONS, **more)

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """The context says it all; the inherited method would trust the roots that requests brings along."""
