"""Which runtime handler a pod's RuntimeClass names. What a class adds to the pod is in its spec already.

Source: Kubernetes 1.37 pkg/kubelet/runtimeclass.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from kubelet_mp.errors import ApiError, ContainerConfigError

KEEP = 60.0  # s that an answer is used; the handler of a class cannot be changed, only the class replaced
_PATH = "/apis/node.k8s.io/v1/runtimeclasses/"


class RuntimeClasses:
    """`get` GETs a path of the API server (None: there is none) and may raise ApiError. Thread-safe."""

    def __init__(self, get: Callable[[str], Mapping[str, Any]] | None, now: Callable[[], float]) -> None:
        self._get, self._now = get, now
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, str]] = {}

    def handler(self, name: str | None) -> str:
        """The handler's name, "" for the runtime's default. Raises ContainerConfigError."""
        if not name:
            return ""
        if self._get is None:
            raise ContainerConfigError(f'failed to get sandbox runtime: RuntimeClass "{name}" not found',
                                       "RuntimeClasses come from an API server")
        with self._lock:
            asked, handler = self._known.get(name, (float("-inf"), ""))
        return handler if self._now() - asked < KEEP else self._ask(name)

    def _ask(self, name: str) -> str:
        assert self._get is not None
        try:
            handler = str(self._get(_PATH + name).get("handler") or "")
        except ApiError as error:
            return self._without_answer(name, error)
        with self._lock:
            self._known[name] = (self._now(), handler)
        return handler

    def _without_answer(self, name: str, error: ApiError) -> str:
        with self._lock:
            if error.status == 404:
                self._known.pop(name, None)
                raise ContainerConfigError(f'runtimeclass.node.k8s.io "{name}" not found',
                                           "create the RuntimeClass, or correct the pod") from error
            known = self._known.get(name)
        if known is None:
            raise ContainerConfigError(f"failed to lookup RuntimeClass {name}: {error.message}") from error
        return known[1]  # the API server is away: what it said last holds
