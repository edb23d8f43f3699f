"""Whether a kubeconfig file can be used at all, and what its current context is; certificates are not read here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from kubelet_mp.errors import ConfigError

_LIMIT = 4 << 20


def check(path: str) -> None:
    """Raise ConfigError, which names the file, unless it is a kubeconfig with a usable current context."""
    try:
        with open(path, "rb") as file:
            data = yaml.safe_load(file.read(_LIMIT))
    except OSError as error:
        raise ConfigError(
            f"cannot read kubeconfig {path}: {error.strerror}",
            "correct --kubeconfig or --bootstrap-kubeconfig, or leave it out",
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"kubeconfig {path} is not YAML{_where(error)}") from error
    problem = problem_of(data)
    if problem:
        raise ConfigError(f"kubeconfig {path} {problem}", "write it anew, e.g. with kubectl config")


def check_either(path: str, bootstrap: str) -> None:
    """Raise ConfigError unless --kubeconfig can be used, or is to be written with the help of `bootstrap`.

    What is a kubeconfig but asks for something that is not supported is refused, and never written over.
    """
    if not bootstrap or _is_whole(path):
        check(path)
    else:
        check(bootstrap)


def _is_whole(path: str) -> bool:
    """Whether it is a kubeconfig with all its parts, supported or not."""
    try:
        with open(path, "rb") as file:
            data = yaml.safe_load(file.read(_LIMIT))
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        return False
    return not _broken(data)


def _where(error: Exception) -> str:
    """The place and kind of a fault of syntax. Never the line itself, which may be a token or a key."""
    mark = getattr(error, "problem_mark", None)
    return f": line {mark.line + 1}: {getattr(error, 'problem', '')}" if mark else ""


_REFUSED_OF_USER = {
    "exec": "an exec plugin", "auth-provider": "an auth provider", "as": "impersonation", "as-uid": "impersonation",
    "as-groups": "impersonation", "as-user-extra": "impersonation",
}


def problem_of(data: Any) -> str:
    """What is wrong with a decoded kubeconfig, or asked for and not supported; "" when nothing is."""
    return _broken(data) or _refused(*current(data))


def _broken(data: Any) -> str:
    """What is wrong with its parts; "" when nothing is."""
    if not isinstance(data, dict) or data.get("kind") != "Config":
        return "is not of kind Config"
    context = _named(data.get("contexts"), data.get("current-context"))
    if context is None:
        return f"has no context {data.get('current-context')!r}"
    inner = context.get("context") or {}
    cluster = _named(data.get("clusters"), inner.get("cluster"))
    if cluster is None:
        return f"has no cluster {inner.get('cluster')!r}"
    if not (cluster.get("cluster") or {}).get("server"):
        return f"gives no server for cluster {inner.get('cluster')!r}"
    if inner.get("user") and _named(data.get("users"), inner["user"]) is None:
        return f"has no user {inner['user']!r}"
    return ""


def current(data: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The cluster and the user of the current context of a kubeconfig that has them."""
    context = (_named(data["contexts"], data["current-context"]) or {}).get("context") or {}
    cluster = _named(data["clusters"], context.get("cluster")) or {}
    user = _named(data.get("users"), context.get("user")) or {}
    return cluster.get("cluster") or {}, user.get("user") or {}


def _refused(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> str:
    for key, what in _REFUSED_OF_USER.items():
        if user.get(key):
            return f"asks for {what} ({key}), which is not supported: use a client certificate or a token file"
    if cluster.get("proxy-url"):
        return "asks for a proxy (proxy-url), which is not supported: give a server that is reachable without one"
    if cluster.get("insecure-skip-tls-verify") and any(
        cluster.get(key) for key in ("certificate-authority", "certificate-authority-data")
    ):
        return "has both a certificate authority and insecure-skip-tls-verify: leave one of them out"
    return ""


def _named(items: Any, name: Any) -> dict[str, Any] | None:
    found = [item for item in items or [] if isinstance(item, dict) and item.get("name") == name]
    return found[0] if found and name else None
