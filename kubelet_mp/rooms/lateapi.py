"""A client of the API server that is made when it is first needed.

While the agent bootstraps there are no credentials yet, and static pods run all the same. Nothing here imports the
client library before that: standalone it is never loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from kubelet_mp.config import Settings
from kubelet_mp.errors import ApiError, KubeletError


class LateApi:
    """`make` builds a host.kubeapi.KubeApi and may raise KubeletError, upon which the next call tries again.

    Thread-safe. Calling it gives the client, and raises ApiError while there can be none.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._client: Any = None

    def __call__(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = self._made()
            return self._client

    def _made(self) -> Any:
        try:
            return self._make()
        except ApiError:
            raise
        except KubeletError as error:
            raise ApiError(f"no client of the API server: {error.message}", error.fix) from error

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        """GET an object. Raises ApiError."""
        found: dict[str, Any] = self().get(path, **params)
        return found


def connect(settings: Settings, room: str) -> LateApi | None:
    """For the room of this name; None standalone."""
    return None if settings.standalone else LateApi(lambda: client_for(settings, room))


def client_for(settings: Settings, room: str) -> Any:
    """The host.kubeapi.KubeApi of a room. Raises KubeletError while there are no credentials, and standalone."""
    if settings.standalone:
        raise ApiError("there is no API server", "give --kubeconfig")
    from kubelet_mp.host.kubeapi import api_for

    return api_for(settings, room)
