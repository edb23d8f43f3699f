"""Who asks, and may they: authentication and authorization of 10250.

Implemented: client certificates, anonymous requests, mode AlwaysAllow. Whatever else is configured is refused
at start. Source: Kubernetes 1.37 pkg/kubelet/server/auth.go, cmd/kubelet/app/auth.go.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Any, Protocol

from kubelet_mp import log
from kubelet_mp.config import KubeletConfiguration
from kubelet_mp.errors import StartError

_log = log.get("http")

VERBS = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SUBRESOURCES = {
    "pods": ("pods", "proxy"),
    "runningpods": ("pods", "proxy"),
    "allocatedPods": ("pods", "proxy"),
    "healthz": ("healthz", "proxy"),
    "configz": ("configz", "proxy"),
    "flagz": ("configz",),
    "stats": ("stats",),
    "metrics": ("metrics",),
    "logs": ("log",),
    "checkpoint": ("checkpoint",),
    "statusz": ("statusz",),
}


@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...] = ()


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


@dataclass(frozen=True, slots=True)
class Attributes:
    """What is asked for: a verb on subresources of our own Node; any one that is allowed is enough."""

    verb: str
    subresources: tuple[str, ...]


def attributes(method: str, path: str) -> Attributes:
    """A WebSocket upgrade is a GET, so it needs the verb `get` only."""
    prefix = path.lstrip("/").partition("/")[0]
    return Attributes(VERBS.get(method, ""), _SUBRESOURCES.get(prefix, ("proxy",)))


def forbidden_text(user: User, wanted: Attributes) -> str:
    """The body of a 403."""
    names = " ".join(wanted.subresources)
    return f"Forbidden (user={user.name}, verb={wanted.verb}, resource=nodes, subresource(s)=[{names}])\n"


class Authorizer(Protocol):
    def allows(self, user: User, wanted: Attributes) -> bool: ...


class AlwaysAllow:
    """authorization.mode AlwaysAllow: whoever was authenticated may do everything."""

    def allows(self, user: User, wanted: Attributes) -> bool:
        return True


def certificate_user(peer: dict[str, Any] | None) -> User | None:
    """The user of a verified client certificate (as `SSLSocket.getpeercert` gives it): CN, and O as groups."""
    fields = [(key, str(value)) for part in (peer or {}).get("subject", ()) for key, value in part]
    names = [value for key, value in fields if key == "commonName"]
    if not names:
        return None
    return User(names[-1], tuple(value for key, value in fields if key == "organizationName"))


class Gate:
    """The authenticators in their order, then the authorizer."""

    def __init__(self, kubelet: KubeletConfiguration) -> None:
        """Raises StartError for a configuration that asks for more than there is."""
        if problem := unsupported(kubelet):
            raise problem
        self._certificates = bool(kubelet.authentication.x509.client_ca_file)
        self._anonymous = kubelet.authentication.anonymous.enabled
        self.authorizer: Authorizer = AlwaysAllow()
        if not (self._certificates or self._anonymous):
            _log.warning("every request to the main port is answered 401: no way of authentication is enabled",
                         fix="set authentication.x509.clientCAFile, or authentication.anonymous.enabled: true")

    def user(self, sock: Any) -> User | None:
        """Who is at the other end of the connection; None if nobody may be."""
        if self._certificates and isinstance(sock, ssl.SSLSocket):
            user = certificate_user(sock.getpeercert())
            if user is not None:
                return user
        return ANONYMOUS if self._anonymous else None


def unsupported(kubelet: KubeletConfiguration) -> StartError | None:
    """The first thing configured for 10250 that is not implemented, with what to set instead."""
    if kubelet.authentication.webhook.enabled:
        return StartError("authentication.webhook is not supported yet",
                          "set authentication.webhook.enabled: false")
    if kubelet.authorization.mode != "AlwaysAllow":
        return StartError(f"authorization.mode {kubelet.authorization.mode} is not supported yet",
                          "set authorization.mode: AlwaysAllow")
    return None

