"""Registration, status, lease and watch of the Node in the whole room, with an API server over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from kubelet_mp.config import KubeletConfiguration, Settings
from kubelet_mp.errors import ApiError
from kubelet_mp.model.runtime import Image
from kubelet_mp.rooms.reporter.node.duty import NodeKeeper
from kubelet_mp.rooms.reporter.node.lease import COLLECTION
from kubelet_mp.rooms.reporter.room import ReporterRoom
from kubelet_mp.wire.messages import Event, Message, NodeFacts, NodeImages, NodeObject, RelistDone, RuntimeStateChanged
from tests.fakes.api import FakeApi
from tests.fakes.link import RoomRunner
from tests.rooms.reporter.node.test_pure import FACTS, HOST, RUNTIME
from tests.support import wait_until

NODE = "/api/v1/nodes/node"
LEASE = f"{COLLECTION}/node"
ALL: tuple[Message, ...] = (
    FACTS, RuntimeStateChanged(RUNTIME), NodeImages((Image("i", ("t",), size=1),)), RelistDone(1.0, frozenset()))


class Ears:
    """A duty that hears the events."""

    def __init__(self, context: Any) -> None:
        self.events: list[Event] = []

    def start(self) -> None: ...

    def close(self) -> None: ...

    def replay(self, room: str) -> None: ...

    def handle(self, message: Message) -> None:
        if isinstance(message, Event):
            self.events.append(message)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as api:
        yield api


def room(
    api: FakeApi, make_api: Callable[[], Any] | None = None, patience: float = 5.0, **kubelet: Any
) -> RoomRunner:
    settings = Settings(node_name="node", hostname="node", kubeconfig="none", kubelet=KubeletConfiguration(**kubelet))
    make = (Ears, lambda context: NodeKeeper(context, lambda: HOST, patience))
    return RoomRunner(ReporterRoom, settings, make=make, make_api=make_api or api.kube)


def reasons(runner: RoomRunner) -> list[str]:
    return [event.reason for event in runner.room.duties[0].events]


def ready(api: FakeApi) -> str:
    found = api.get(NODE) or {}
    return next((c["status"] for c in (found.get("status") or {}).get("conditions") or [] if c["type"] == "Ready"), "")


def test_a_node_is_registered_ready_and_told_to_everyone(api: FakeApi) -> None:
    with room(api) as reporter:
        reporter.give(*ALL)
        wait_until(lambda: ready(api) == "True")
        told = reporter.wait_for(NodeObject)
        assert told.node["metadata"]["uid"] == api.get(NODE)["metadata"]["uid"]  # type: ignore[index]
        assert "images" not in told.node["status"]
        wait_until(lambda: "NodeReady" in reasons(reporter))
        assert reasons(reporter)[0] == "Starting"
        reporter.come_up("pods")
        wait_until(lambda: reporter.link.of(NodeObject, to="pods"))


def test_readiness_is_written_at_once_both_ways(api: FakeApi) -> None:
    with room(api) as reporter:
        reporter.give(*ALL)
        wait_until(lambda: ready(api) == "True")
        reporter.give(RuntimeStateChanged(replace(RUNTIME, ready=False, message="container runtime is down: x")))
        wait_until(lambda: ready(api) == "False")
        reporter.give(RuntimeStateChanged(RUNTIME))
        wait_until(lambda: ready(api) == "True")
        wait_until(lambda: reasons(reporter).count("NodeReady") == 2)
        assert reasons(reporter).count("NodeNotReady") == 1


def test_an_existing_ready_node_does_not_flap_for_a_restart(api: FakeApi) -> None:
    with room(api) as reporter:
        reporter.give(*ALL)
        wait_until(lambda: ready(api) == "True" and api.get(LEASE))
    api.change(NODE, lambda node: node["metadata"]["labels"].update({"theirs": "x", "kubernetes.io/os": "other"}))
    changes = len(api.store.changes)
    with room(api) as reporter:
        reporter.give(FACTS, RuntimeStateChanged(RUNTIME))
        wait_until(lambda: api.asked("update", LEASE))
        reporter.give(RelistDone(1.0, frozenset()))
        wait_until(lambda: api.get(NODE)["metadata"]["labels"]["kubernetes.io/os"] == "linux")  # type: ignore[index]
        reporter.wait_for(NodeObject)
    states = {c["status"] for change in api.store.changes[changes:] if change.new and change.new["kind"] == "Node"
              for c in change.new["status"]["conditions"] if c["type"] == "Ready"}
    assert states == {"True"}
    assert api.get(NODE)["metadata"]["labels"]["theirs"] == "x"  # type: ignore[index]


def test_a_reboot_is_told(api: FakeApi) -> None:
    api.add({"kind": "Node", "metadata": {"name": "node"}, "status": {"nodeInfo": {"bootID": "before"}}})
    with room(api) as reporter:
        reporter.give(*ALL)
        wait_until(lambda: "Rebooted" in reasons(reporter))
        found = next(e for e in reporter.room.duties[0].events if e.reason == "Rebooted")
        assert found.message == "Node node has been rebooted, boot id: boot"


def test_nothing_is_written_while_nothing_changes_until_it_is_time(api: FakeApi) -> None:
    with room(api, node_status_update_frequency="20ms") as reporter:
        reporter.give(*ALL)
        worker, turns = reporter.room.duties[1]._worker, []
        wait_until(lambda: worker._report_at > 0)
        before, due, write = len(api.asked("patch", NODE)), worker._report_at, worker._write
        worker._write = lambda *given: (turns.append(1), write(*given))
        wait_until(lambda: len(turns) > 3)
        assert (len(api.asked("patch", NODE)), worker._report_at) == (before, due)
        worker._report_at = 0.0
        wait_until(lambda: worker._report_at >= due)
        assert len(api.asked("patch", NODE)) == before + 1


def test_without_registration_a_node_is_waited_for(api: FakeApi) -> None:
    with room(api, register_node=False) as reporter:
        reporter.give(*ALL)
        wait_until(lambda: api.asked("get", NODE))
        assert not api.asked("create", "/nodes")
        api.add({"kind": "Node", "metadata": {"name": "node"}})
        wait_until(lambda: ready(api) == "True")
        assert not api.asked("create", "/api/v1/nodes")


def test_registration_goes_on_until_the_server_lets_it(api: FakeApi) -> None:
    api.fail(503, "create", "/api/v1/nodes", times=2)
    with room(api) as reporter:
        reporter.give(*ALL)
        wait_until(lambda: ready(api) == "True")
        assert len(api.asked("create", "/api/v1/nodes")) == 3


def test_a_forbidden_registration_of_a_node_that_is_there_adopts_it(api: FakeApi) -> None:
    api.add({"kind": "Node", "metadata": {"name": "node"}})
    api.fail(403, "create", "/api/v1/nodes", reason="Forbidden")
    with room(api) as reporter:
        reporter.give(*ALL)
        wait_until(lambda: ready(api) == "True")


def test_credentials_may_come_late(api: FakeApi) -> None:
    tries = []

    def make() -> Any:
        tries.append(1)
        if len(tries) < 4:
            raise ApiError("no credentials yet")
        return api.kube()

    with room(api, make) as reporter:
        reporter.give(*ALL)
        wait_until(lambda: ready(api) == "True" and api.get(LEASE))


def test_the_lease_is_renewed_while_a_status_write_hangs(api: FakeApi) -> None:
    with room(api, node_lease_duration_seconds=1) as reporter:
        reporter.give(*ALL)
        wait_until(lambda: api.get(LEASE))
        held = api.hang("patch", NODE)
        reporter.give(RuntimeStateChanged(replace(RUNTIME, ready=False, message="x")))
        wait_until(lambda: len(api.asked("patch", NODE)) >= 1)
        count = len(api.asked("update", LEASE))
        wait_until(lambda: len(api.asked("update", LEASE)) > count)
        held.set()
        owner = api.get(LEASE)["metadata"]["ownerReferences"][0]  # type: ignore[index]
        assert owner["uid"] == api.get(NODE)["metadata"]["uid"]  # type: ignore[index]


def test_a_lease_that_is_gone_or_changed_by_another_is_held_again(api: FakeApi) -> None:
    with room(api, node_lease_duration_seconds=1) as reporter:
        reporter.give(*ALL)
        wait_until(lambda: api.get(LEASE))
        api.change(LEASE, lambda lease: lease["spec"].update(holderIdentity="other"))
        wait_until(lambda: api.get(LEASE)["spec"]["holderIdentity"] == "node")  # type: ignore[index]
        api.remove(LEASE)
        wait_until(lambda: api.get(LEASE))


def test_a_node_without_facts_is_registered_not_ready_after_a_while(api: FakeApi) -> None:
    with room(api, patience=0.05):
        wait_until(lambda: ready(api) == "False")
        condition = api.get(NODE)["status"]["conditions"][-1]  # type: ignore[index]
        assert "missing node capacity" in condition["message"]


def test_a_cordon_is_told_and_a_deleted_node_is_not_made_again(api: FakeApi) -> None:
    with room(api, node_status_update_frequency="50ms") as reporter:
        reporter.give(*ALL)
        wait_until(lambda: ready(api) == "True")
        api.change(NODE, lambda node: node.setdefault("spec", {}).update(unschedulable=True))
        wait_until(lambda: "NodeNotSchedulable" in reasons(reporter))
        api.change(NODE, lambda node: node["spec"].pop("unschedulable"))
        wait_until(lambda: "NodeSchedulable" in reasons(reporter))
        api.remove(NODE)
        count = len(api.asked("get", NODE))
        wait_until(lambda: len(api.asked("get", NODE)) > count)
        assert len(api.asked("create", "/api/v1/nodes")) == 1
        api.add({"kind": "Node", "metadata": {"name": "node"}})
        wait_until(lambda: ready(api) == "True")


def test_new_facts_reach_the_node(api: FakeApi) -> None:
    with room(api) as reporter:
        reporter.give(*ALL)
        wait_until(lambda: ready(api) == "True")
        other: NodeFacts = replace(FACTS, addresses=("192.0.2.7",))
        reporter.give(other)
        wait_until(lambda: {"type": "InternalIP", "address": "192.0.2.7"} in api.get(NODE)["status"]["addresses"])  # type: ignore[index]
