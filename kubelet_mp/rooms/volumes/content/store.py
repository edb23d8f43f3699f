"""All that volumes get from the API server, behind one object; None stands for it where there is no API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubelet_mp.config import Settings
from kubelet_mp.model import clock
from kubelet_mp.rooms.lateapi import connect as connect_late
from kubelet_mp.rooms.volumes.content.fetched import DEFAULT_TTL, Fetched, ttl_of
from kubelet_mp.rooms.volumes.content.keys import Json, Key, Objects
from kubelet_mp.rooms.volumes.content.tokens import TokenKey, Tokens
from kubelet_mp.rooms.volumes.content.watched import MakeWatch, Watch, Watched

Crash = Callable[[BaseException], None]


class ApiContent:
    """`objects` and `tokens` may be asked from any thread; the rest is for the room's main thread.

    polled: nobody tells of changes, so volumes are to be written anew from time to time.
    """

    def __init__(self, objects: Objects, tokens: Tokens, *, polled: bool) -> None:
        self.objects, self.tokens, self.polled = objects, tokens, polled
        self.ttl = DEFAULT_TTL

    def hold(self, uid: str, keys: frozenset[Key]) -> None:
        """The pod needs these objects (and perhaps tokens)."""
        self.objects.hold(uid, keys)
        self.tokens.hold(uid)

    def drop(self, uid: str) -> None:
        self.objects.drop(uid)
        self.tokens.drop(uid)

    def object(self, key: Key) -> Json | None:
        """None when it does not exist. Raises ApiError."""
        return self.objects.get(key)

    def token(self, key: TokenKey) -> str:
        """Raises ApiError."""
        return self.tokens.get(key)

    def take_node(self, node: Mapping[str, Any]) -> None:
        self.ttl = ttl_of(node)

    def close(self) -> None:
        self.objects.close()


def build(strategy: str, client: Callable[[], Any], watch: MakeWatch, changed: Callable[[Key], None],
          now: Callable[[], float] = clock.monotonic) -> ApiContent:
    """`client` gives a KubeApi or raises ApiError; `strategy`: Watch, Cache or Get."""

    def fetch(path: str) -> Mapping[str, Any]:
        return client().get(path)

    def request(path: str, body: dict[str, Any]) -> Mapping[str, Any]:
        return client().create(path, body)

    tokens = Tokens(request, now)
    if strategy == "Watch":
        return ApiContent(Watched(watch, changed), tokens, polled=False)
    made = ApiContent(Fetched(fetch, now, lambda: made.ttl if strategy == "Cache" else 0.0), tokens, polled=True)
    return made


def connect(settings: Settings, changed: Callable[[Key], None], crashed: Crash) -> ApiContent | None:
    """None standalone, where the client library is not even imported. `crashed` gets a fault of ours in a watch."""
    client = connect_late(settings, "volumes")
    if client is None:
        return None
    strategy = settings.kubelet.config_map_and_secret_change_detection_strategy
    return build(strategy, client, _watching(client, crashed), changed)


def _watching(client: Callable[[], Any], crashed: Crash) -> MakeWatch:
    def make(key: Key, on_list: Any, on_event: Any, on_problem: Any) -> Watch:
        from kubelet_mp.host.kubeapi import ListWatch

        return ListWatch(
            client(), key.collection, params={"fieldSelector": f"metadata.name={key.name}"}, on_list=on_list,
            on_event=on_event, on_problem=on_problem, on_crash=crashed, name=f"{key.kind}-{key.name}")

    return make
