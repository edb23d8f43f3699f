"""Whether a kubeconfig file can be used at all; its credentials are not read here."""

from __future__ import annotations

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
            f"cannot read kubeconfig {path}: {error.strerror}", "correct --kubeconfig, or leave it out"
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"kubeconfig {path} is not YAML: {' '.join(str(error).split())}") from error
    problem = problem_of(data)
    if problem:
        raise ConfigError(f"kubeconfig {path} {problem}", "write it anew, e.g. with kubectl config")


def problem_of(data: Any) -> str:
    """What is wrong with a decoded kubeconfig; "" when nothing is."""
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
    return ""


def _named(items: Any, name: Any) -> dict[str, Any] | None:
    found = [item for item in items or [] if isinstance(item, dict) and item.get("name") == name]
    return found[0] if found and name else None
