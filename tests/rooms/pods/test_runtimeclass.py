"""RuntimeClasses: asked for once in a while, remembered while the API server is away."""

from collections.abc import Mapping
from typing import Any

import pytest

from kubelet_mp.errors import ApiError, ContainerConfigError
from kubelet_mp.rooms.pods.runtimeclass import KEEP, RuntimeClasses


class Server:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer: Mapping[str, Any] | ApiError = {"handler": "kata"}
        self.now = 0.0

    def get(self, path: str) -> Mapping[str, Any]:
        self.asked.append(path)
        if isinstance(self.answer, ApiError):
            raise self.answer
        return self.answer


def test_the_handler_is_asked_for_and_kept_a_while() -> None:
    server = Server()
    classes = RuntimeClasses(server.get, lambda: server.now)
    assert classes.handler(None) == "" and not server.asked
    assert [classes.handler("sandboxed") for _ in range(3)] == ["kata"] * 3
    assert server.asked == ["/apis/node.k8s.io/v1/runtimeclasses/sandboxed"]
    server.now, server.answer = KEEP + 1, ApiError("connection refused")
    assert classes.handler("sandboxed") == "kata"
    server.answer = ApiError("gone", status=404)
    with pytest.raises(ContainerConfigError, match=r'^runtimeclass\.node\.k8s\.io "sandboxed" not found'):
        classes.handler("sandboxed")
    server.answer = ApiError("connection refused")
    with pytest.raises(ContainerConfigError, match="failed to lookup RuntimeClass sandboxed: connection refused"):
        classes.handler("sandboxed")


def test_without_an_api_server_there_are_no_classes() -> None:
    with pytest.raises(ContainerConfigError, match="come from an API server"):
        RuntimeClasses(None, lambda: 0.0).handler("x")
