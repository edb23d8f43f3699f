"""A client of the API server that is made when it is first needed, for all duties together."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kubelet_mp.config import Settings
from kubelet_mp.errors import ApiError, KubeletError
from kubelet_mp.rooms.reporter.duty import Api

Make = Callable[[], Api]


class LateApi:
    """`make` may raise KubeletError while there are no credentials; it is tried again with the next call."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._client: Api | None = None

    def __call__(self) -> Api:
        """Raises ApiError while the client cannot be made."""
        with self._lock:
            if self._client is None:
                self._client = self._made()
            return self._client

    def _made(self) -> Api:
        try:
            return self._make()
        except ApiError:
            raise
        except KubeletError as error:
            raise ApiError(f"no client of the API server: {error.message}", error.fix) from error


def connect(settings: Settings) -> Api:
    """Standalone there is none, and the client library is not even imported. Raises KubeletError."""
    if settings.standalone:
        raise ApiError("there is no API server", "give --kubeconfig")
    from kubelet_mp.host.kubeapi import api_for

    return api_for(settings, "reporter")
