"""Who we are to the API server and how we know it: what a kubeconfig file says, kept up to date.

Keys and tokens never appear in a repr, a log line or an error. What the file holds as data stays in memory.
Source: Kubernetes 1.37 k8s.io/client-go/tools/clientcmd.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import yaml

from kubelet_mp import log
from kubelet_mp.config import kubeconfig
from kubelet_mp.errors import ApiError, KubeletError
from kubelet_mp.host import files
from kubelet_mp.host.kubeapi.tls import TlsFiles, make_context

_LIMIT = 4 * files.MIB
_log = log.get()


@dataclass(frozen=True, slots=True)
class Login:
    """One state of the credentials. `server`: the URL without a slash at its end.

    context: for https; server_name: to expect in the server's certificate, "" for the URL's host.
    """

    server: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    context: ssl.SSLContext | None = field(default=None, repr=False)
    server_name: str = ""
    insecure: bool = False


class Credentials(Protocol):
    """Where a KubeApi gets its login from: another object each time that it has changed."""

    def current(self) -> Login:
        """The login to use now; cheap, from any thread. Raises ApiError while there is none."""


class Kubeconfig:
    """The current context of a kubeconfig file, read again when it or a file that it names was replaced.

    A new state that cannot be used (a rotation that is half done) leaves the old one in force.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._login: Login | None = None
        self._watched: tuple[str, ...] = (path,)
        self._stamps: tuple[object, ...] = ()

    def current(self) -> Login:
        with self._lock:
            stamps = tuple(_stamp(path) for path in self._watched)
            if self._login is None or stamps != self._stamps:
                self._stamps = stamps
                self._login = self._newest(self._login)
            return self._login

    def _newest(self, old: Login | None) -> Login:
        try:
            entry = read_entry(self.path)
            # stamped before it is read: what is replaced meanwhile is read again by the next call
            self._watched = (self.path, *entry.files)
            self._stamps = (self._stamps[0], *(_stamp(path) for path in entry.files))
            return entry.login()
        except KubeletError as error:
            if old is None:
                raise ApiError(f"no credentials for the API server: {error.message}", error.fix) from error
            _log.error("the new credentials for the API server cannot be used, the old ones are kept", err=str(error))
            return old


def _stamp(path: str) -> object:
    """What tells one content of a path from another; None while there is nothing."""
    with contextlib.suppress(files.FileError):
        return files.file_state(path)
    return None


@dataclass(frozen=True, slots=True)
class Entry:
    """The cluster and user of the current context. Paths in them are relative to `directory`."""

    source: str
    directory: str
    cluster: Mapping[str, Any] = field(repr=False)
    user: Mapping[str, Any] = field(repr=False)

    @property
    def files(self) -> tuple[str, ...]:
        """The files whose content is used."""
        return tuple(path for path in (
            self._path(self.cluster, "certificate-authority"), self._path(self.user, "client-certificate"),
            self._path(self.user, "client-key"), self._path(self.user, "tokenFile", data="")) if path)

    def identity(self) -> bytes:
        """The client certificate and its key as PEM, b"" if there is none. Raises KubeletError."""
        return self._content(self.user, "client-certificate") + b"\n" + self._content(self.user, "client-key") \
            if self.user.get("client-certificate") or self.user.get("client-certificate-data") else b""

    def whole_cluster(self) -> dict[str, Any]:
        """The cluster, without paths that are relative to the file that it stood in."""
        path = self._path(self.cluster, "certificate-authority")
        return {**self.cluster, "certificate-authority": os.path.abspath(path)} if path else dict(self.cluster)

    def login(self) -> Login:
        """Raises KubeletError where something is missing or wrong."""
        server, insecure = self._server(), bool(self.cluster.get("insecure-skip-tls-verify"))
        name = self.cluster.get("tls-server-name") or ""
        headers = self._authorization()
        if not server.startswith("https://"):
            return Login(server, headers)
        tls = TlsFiles(
            self._content(self.cluster, "certificate-authority"), self._content(self.user, "client-certificate"),
            self._content(self.user, "client-key"))
        return Login(server, headers, make_context(tls, self.source, insecure=insecure), name, insecure)

    def _server(self) -> str:
        server = str(self.cluster["server"]).rstrip("/")
        if "://" not in server:
            keys = ("certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify")
            server = ("https://" if any(self.cluster.get(key) for key in keys) else "http://") + server
        if not server.startswith(("https://", "http://")) or "@" in server:
            raise ApiError(
                f"kubeconfig {self.source}: the server must be an http or https URL without a user",
                "correct its server")
        return server

    def _authorization(self) -> dict[str, str]:
        token, path = str(self.user.get("token") or ""), self._path(self.user, "tokenFile", data="")
        if path:  # the file wins, as long as it has a token
            token = files.read_text(path).strip() or token
        if token:
            return {"Authorization": f"Bearer {token}"}
        if self.user.get("username"):
            pair = f"{self.user['username']}:{self.user.get('password') or ''}"
            return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
        return {}

    def _path(self, part: Mapping[str, Any], key: str, data: str = "-data") -> str:
        """The file named by `key`, "" if there is none or the data beside it takes its place."""
        if data and part.get(key + data):
            return ""
        return os.path.join(self.directory, str(part[key])) if part.get(key) else ""

    def _content(self, part: Mapping[str, Any], key: str) -> bytes:
        if part.get(f"{key}-data"):
            try:
                return base64.b64decode(str(part[f"{key}-data"]), validate=False)
            except (binascii.Error, ValueError) as error:
                raise ApiError(f"kubeconfig {self.source}: {key}-data is not base64", "encode it anew") from error
        path = self._path(part, key)
        return files.read_limited(path, _LIMIT) if path else b""


def read_entry(path: str) -> Entry:
    """The current context of a kubeconfig. Raises KubeletError."""
    try:
        data = yaml.safe_load(files.read_limited(path, _LIMIT))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        # the parser's words quote the text, which may be a token
        raise ApiError(f"kubeconfig {path} is not YAML", "write it anew, e.g. with kubectl config") from error
    problem = kubeconfig.problem_of(data)
    if problem:
        raise ApiError(f"kubeconfig {path} {problem}", "write it anew, e.g. with kubectl config")
    cluster, user = kubeconfig.current(data)
    return Entry(path, os.path.dirname(os.path.abspath(path)), cluster, user)
