"""The client of the API server is made late, and again until it can be."""

from typing import Any

import pytest

from kubelet_mp.config import Settings
from kubelet_mp.errors import ApiError, ConfigError
from kubelet_mp.rooms.lateapi import LateApi, connect


class Client:
    def get(self, path: str, **params: Any) -> dict[str, Any]:
        return {"path": path, **params}


def test_it_is_made_once_there_are_credentials() -> None:
    made: list[Any] = [ConfigError("cannot read kubeconfig"), Client()]

    def make() -> Any:
        found = made.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    api = LateApi(make)
    with pytest.raises(ApiError, match="no client of the API server: cannot read kubeconfig"):
        api.get("/api/v1/x")
    assert api.get("/api/v1/x", limit=1) == {"path": "/api/v1/x", "limit": 1}
    assert api.get("/api/v1/y") == {"path": "/api/v1/y"} and made == []


def test_standalone_there_is_none() -> None:
    assert connect(Settings(node_name="n"), "pods") is None
    assert connect(Settings(node_name="n", bootstrap_kubeconfig="/nonexistent"), "pods") is not None
