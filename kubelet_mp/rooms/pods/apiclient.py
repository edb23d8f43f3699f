"""The API server as this room uses it: a client that is made when it is first needed.

While the agent bootstraps there are no credentials yet, and static pods run all the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from kubelet_mp.config import Settings
from kubelet_mp.errors import ApiError, KubeletError


class LateApi:
    """`make` builds the client and may raise KubeletError, upon which it is tried again with the next call."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._client: Any = None

    def client(self) -> Any:
        """The host.kubeapi.KubeApi. Raises ApiError while it cannot be made."""
        with self._lock:
            if self._client is None:
                try:
                    self._client = self._make()
                except ApiError:
                    raise
                except KubeletError as error:
                    raise ApiError(f"no client of the API server: {error.message}", error.fix) from error
            return self._client

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        """GET an object. Raises ApiError."""
        found: dict[str, Any] = self.client().get(path, **params)
        return found


def connect(settings: Settings) -> LateApi | None:
    """None standalone, where the client library is not even imported."""
    return None if settings.standalone else LateApi(lambda: _client(settings))


def _client(settings: Settings) -> Any:
    from kubelet_mp.host.kubeapi import api_for

    return api_for(settings, "pods")
