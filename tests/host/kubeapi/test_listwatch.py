"""Lists and watches against a real HTTP server."""

import threading

import pytest

from kubelet_mp.host.kubeapi.listwatch import FIRST_WAIT, LONGEST_WAIT, ListWatch, Wait, whole_items
from kubelet_mp.model.clock import monotonic
from tests.fakes.api import FakeApi
from tests.support import wait_until

NODES = "/api/v1/nodes"


def node(name):
    return {"kind": "Node", "metadata": {"name": name, "labels": {}}}


@pytest.fixture
def api():
    with FakeApi() as api:
        yield api


class Seen:
    """A running ListWatch and what it told, oldest first."""

    def __init__(self, api, **params):
        self.told, self.problems, self.crashes = [], [], []
        self.watch = ListWatch(
            api.kube(), NODES, params=params, on_list=lambda items: self.told.append([name_of(one) for one in items]),
            on_event=lambda kind, found: self.told.append((kind, name_of(found))),
            on_problem=self.problems.append, name="test", on_crash=self.crashes.append)

    def __enter__(self):
        self.watch.start()
        return self

    def __exit__(self, *_):
        self.watch.stop()

    def wait(self, *told):
        wait_until(lambda: self.told == list(told), 5, f"{told}, not {self.told}")


def name_of(found):
    return found["metadata"]["name"]


def test_a_list_then_what_happens(api):
    api.add(node("a"))
    with Seen(api) as seen:
        seen.wait(["a"])
        wait_until(lambda: api.watches == 1)
        api.add(node("b"))
        api.change(f"{NODES}/a", lambda found: found["metadata"]["labels"].update(x="y"))
        api.remove(f"{NODES}/a")
        seen.wait(["a"], ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "a"))
        assert not seen.problems
    request, = api.asked("watch")
    assert request.params["allowWatchBookmarks"] == "true" and 300 <= int(request.params["timeoutSeconds"]) <= 600


def test_one_object_by_name(api):
    with Seen(api, fieldSelector="metadata.name=a") as seen:
        wait_until(lambda: api.watches == 1)
        api.add(node("b"))
        api.add(node("a"))
        seen.wait([], ("ADDED", "a"))


def test_a_watch_that_ends_goes_on_where_it_was(api):
    with Seen(api) as seen:
        wait_until(lambda: api.watches == 1)
        api.add(node("a"))
        seen.wait([], ("ADDED", "a"))
        api.cut()
        api.add(node("b"))
        seen.wait([], ("ADDED", "a"), ("ADDED", "b"))
    assert len(api.asked("list")) == 1


def test_a_bookmark_moves_on_what_a_new_watch_starts_from(api):
    with Seen(api) as seen:
        wait_until(lambda: api.watches == 1)
        api.add({"kind": "Namespace", "metadata": {"name": "other"}})  # the version grows without an event here
        newest = api.store.version
        api.bookmark()
        wait_until(lambda: seen.watch._version == str(newest))
        api.cut()
        wait_until(lambda: len(api.asked("watch")) == 2)
        assert api.asked("watch")[1].params["resourceVersion"] == str(newest)


def test_a_version_that_is_too_old_is_listed_anew_at_once(api):
    with Seen(api) as seen:
        wait_until(lambda: api.watches == 1)
        api.add(node("a"))
        seen.wait([], ("ADDED", "a"))
        began = monotonic()
        api.expire()
        seen.wait([], ("ADDED", "a"), ["a"])
        assert monotonic() - began < FIRST_WAIT / 2 and not seen.problems
    assert [one.params.get("resourceVersion") for one in api.asked("list")] == ["0", None]


def test_a_refused_watch_says_so_backs_off_and_lists_again(api):
    api.fail(500, "watch", times=1)
    with Seen(api) as seen:
        wait_until(lambda: api.watches == 1)
        assert seen.told == [[], []]
        wait_until(lambda: len(seen.problems) == 2)
        assert "made to fail (500 InternalError)" in seen.problems[0] and seen.problems[1] == ""


def test_a_server_that_fails_is_asked_at_growing_intervals(api):
    api.fail(503, "list")
    with Seen(api) as seen:
        wait_until(lambda: len(api.asked("list")) == 2, 10)
        api.faults.clear()
        wait_until(lambda: "" in seen.problems, 10)
    assert len(seen.problems) == 2 and seen.told == [[]]  # one and the same problem is said once


def test_stop_wakes_a_watch_that_waits(api):
    with Seen(api) as seen:
        wait_until(lambda: api.watches == 1)
        began = monotonic()
        seen.watch.stop()
        assert monotonic() - began < 0.5 and not seen.watch._thread.is_alive()
        assert not seen.problems


def test_a_fault_in_a_callback_is_handed_on(api):
    api.add(node("a"))
    api.change(f"{NODES}/a", lambda found: found["metadata"].pop("name"))
    with Seen(api) as seen:
        wait_until(lambda: seen.crashes)
        assert isinstance(seen.crashes[0], KeyError)


def test_many_watches_share_a_client(api):
    kube, ready = api.kube(), []
    watches = [ListWatch(kube, NODES, on_list=ready.append, on_event=lambda kind, found: None,
                         on_problem=ready.append, name=str(number)) for number in range(20)]
    for watch in watches:
        watch.start()
    wait_until(lambda: api.watches == 20 and len(ready) == 20, 10)
    stoppers = [threading.Thread(target=watch.stop) for watch in watches]
    for stopper in stoppers:
        stopper.start()
    for stopper in stoppers:
        stopper.join(5)
    assert not any(watch._thread.is_alive() for watch in watches)


def test_waits_grow_to_a_limit_and_start_over():
    wait = Wait(roll=lambda: 1.0)
    assert [wait.next() for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, LONGEST_WAIT, LONGEST_WAIT]
    wait.reset()
    assert wait.next(at_least=5.0) == 5.0
    assert Wait(roll=lambda: 0.0).next() == FIRST_WAIT / 2
    assert Wait().next(at_least=1e9) == LONGEST_WAIT


def test_items_are_told_what_they_are():
    found = {"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "items": [{"metadata": {}}]}
    assert whole_items(found) == [{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {}}]
    assert whole_items({"kind": "PodList", "items": None}) == []
