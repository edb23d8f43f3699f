"""Watch, Cache and Get against an API server over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kubelet_mp.errors import ApiError
from kubelet_mp.rooms.volumes.content.fetched import ttl_of
from kubelet_mp.rooms.volumes.content.keys import CONFIG_MAP, Key
from kubelet_mp.rooms.volumes.content.store import ApiContent, Sources, build, watching
from tests.fakes.api import FakeApi
from tests.support import FakeClock, wait_until

KEY = Key(CONFIG_MAP, "ns", "a")
PATH = "/api/v1/namespaces/ns/configmaps"


def config_map(name: str = "a", word: str = "1", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ns"},
            "data": {"k": word}, **fields}


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as server:
        yield server


class Side:
    """A content and what it told."""

    def __init__(self, api: FakeApi, strategy: str) -> None:
        self.changed: list[Key] = []
        self.crashes: list[BaseException] = []
        self.clock, client = FakeClock(), api.kube()
        watch = watching(lambda: client, self.crashes.append)
        self.content: ApiContent = build(strategy, Sources(
            lambda: client, watch, self.changed.append, lambda *event: None, "n", self.clock))

    def hold(self, uid: str, *names: str) -> None:
        self.content.hold(uid, frozenset(Key(CONFIG_MAP, "ns", name) for name in names))

    def word(self) -> str | None:
        found = self.content.object(KEY)
        return found["data"]["k"] if found else None


@pytest.fixture
def watch(api: FakeApi) -> Iterator[Side]:
    side = Side(api, "Watch")
    yield side
    side.content.close()
    assert side.crashes == []


def test_one_watch_of_one_name_for_all_pods_as_long_as_one_needs_it(api: FakeApi, watch: Side):
    api.add(config_map())
    for number in range(20):
        watch.hold(f"u{number}", "a")
    words: list[str | None] = []
    threads = [threading.Thread(target=lambda: words.append(watch.word())) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert words == ["1"] * 20
    wait_until(lambda: api.watches == 1)
    assert {r.params["fieldSelector"] for r in api.requests} == {"metadata.name=a"}
    assert len(api.asked("list")) == len(api.asked("watch")) == 1
    for number in range(19):
        watch.content.drop(f"u{number}")
    assert watch.word() == "1" and api.watches == 1
    watch.content.drop("u19")
    wait_until(lambda: api.bookmark() or api.watches == 0)  # the server notices when it writes
    with pytest.raises(ApiError, match="no pod needs it"):
        watch.word()


def test_changes_are_told_at_once_and_only_real_ones(api: FakeApi, watch: Side):
    watch.hold("u", "a")
    assert watch.word() is None and watch.changed == []
    wait_until(lambda: api.watches == 1)
    api.add(config_map())
    wait_until(lambda: len(watch.changed) == 1)
    assert watch.word() == "1"
    api.change(f"{PATH}/a", lambda o: o["metadata"].update(labels={"x": "y"}))
    api.change(f"{PATH}/a", lambda o: o["data"].update(k="2"))
    wait_until(lambda: watch.word() == "2")
    api.remove(f"{PATH}/a")
    wait_until(lambda: len(watch.changed) == 3)
    assert watch.word() is None and set(watch.changed) == {KEY}
    assert len(api.asked("list")) == 1


def test_an_immutable_object_is_not_watched(api: FakeApi, watch: Side):
    api.add(config_map(immutable=True))
    watch.hold("u", "a")
    assert watch.word() == "1" and watch.word() == "1"
    assert api.asked("watch") == [] and len(api.asked("list")) == 1


def test_a_refusal_is_told_and_then_that_all_is_well(api: FakeApi, watch: Side):
    api.add(config_map())
    api.fail(403, "list", times=1, reason="Forbidden", message="no relationship found")
    watch.hold("u", "a")
    with pytest.raises(ApiError, match="no relationship found"):
        watch.word()
    wait_until(lambda: watch.changed == [KEY])
    assert watch.word() == "1"


def test_what_is_known_stays_known_while_the_server_is_away(api: FakeApi, watch: Side):
    api.add(config_map())
    watch.hold("u", "a")
    assert watch.word() == "1"
    wait_until(lambda: api.watches == 1)
    api.down()
    assert watch.word() == "1"
    api.up()
    api.change(f"{PATH}/a", lambda o: o["data"].update(k="2"))
    wait_until(lambda: watch.word() == "2")


def test_get_asks_each_time_but_for_bursts(api: FakeApi):
    api.add(config_map())
    side = Side(api, "Get")
    side.hold("u", "a")
    assert side.word() == side.word() == "1" and len(api.asked()) == 1
    api.change(f"{PATH}/a", lambda o: o["data"].update(k="2"))
    side.clock.advance(1.1)
    assert side.word() == "2" and len(api.asked("get")) == len(api.asked()) == 2


def test_cache_asks_each_ttl_and_for_a_new_pod(api: FakeApi):
    api.add(config_map())
    side = Side(api, "Cache")
    assert side.content.polled
    side.content.take_node({"metadata": {"annotations": {"node.alpha.kubernetes.io/ttl": "30"}}})
    side.hold("u", "a")
    side.word()
    side.clock.advance(29)
    side.word()
    assert len(api.asked()) == 1
    side.hold("v", "a")
    side.word()
    assert len(api.asked()) == 2
    side.clock.advance(31)
    side.word()
    assert len(api.asked()) == 3
    side.content.drop("u")
    side.content.drop("v")
    side.word()
    assert len(api.asked()) == 4


@pytest.mark.parametrize(("text", "seconds"), [("0", 0.0), ("15", 15.0), ("", 60.0), ("x", 60.0), (None, 60.0)])
def test_ttl(text: str | None, seconds: float):
    assert ttl_of({"metadata": {"annotations": {"node.alpha.kubernetes.io/ttl": text}}}) == seconds
