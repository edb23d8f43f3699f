"""The client against a real HTTP server."""

import threading

import pytest

from kubelet_mp.config import Settings
from kubelet_mp.errors import ApiError
from kubelet_mp.host.kubeapi import api_for
from kubelet_mp.model.clock import monotonic
from tests.fakes.api import FakeApi

NODE = "/api/v1/nodes/n"


@pytest.fixture
def api():
    with FakeApi() as api:
        yield api


def node(**more):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, **more}


def test_an_object_through_its_life(api):
    kube = api.kube()
    made = kube.create("/api/v1/nodes", node(status={"conditions": [{"type": "Ready", "status": "False"}]}))
    assert kube.get(NODE) == made
    condition = {"type": "Ready", "status": "True"}
    patched = kube.patch(f"{NODE}/status", {"status": {"conditions": [condition]}})
    assert patched["status"]["conditions"] == [condition]
    assert kube.patch(NODE, {"metadata": {"labels": {"a": "b"}}}, kind="merge")["metadata"]["labels"] == {"a": "b"}
    added = [{"op": "add", "path": "/metadata/labels/c~1d", "value": "e"}]
    assert kube.patch(NODE, added, kind="json")["metadata"]["labels"] == {"a": "b", "c/d": "e"}
    with pytest.raises(ApiError) as stale:
        kube.update(NODE, made)
    assert stale.value.conflict and "modified" in stale.value.message
    kube.update(NODE, {**kube.get(NODE), "spec": {"unschedulable": True}})
    assert api.get(NODE)["spec"] == {"unschedulable": True}
    with pytest.raises(ApiError) as other:
        kube.delete(NODE, {"preconditions": {"uid": "someone else"}})
    assert other.value.conflict
    kube.delete(NODE)
    with pytest.raises(ApiError, match=f'GET {NODE}: nodes "n" not found .404 NotFound.') as gone:
        kube.get(NODE)
    assert gone.value.not_found and gone.value.reason == "NotFound"


def test_what_is_sent(api):
    api.add(node())
    api.kube().get(NODE, resourceVersion="0", pretty=False, absent=None)
    request, = api.asked("get")
    assert request.params == {"resourceVersion": "0", "pretty": "false"}
    assert request.headers["User-Agent"].startswith("kubelet-mp/") and "Authorization" not in request.headers


def test_a_name_that_is_taken(api):
    api.add(node())
    with pytest.raises(ApiError) as taken:
        api.kube().create("/api/v1/nodes", node())
    assert taken.value.already_exists and not taken.value.conflict


def test_an_overloaded_server_says_when_to_come_back(api):
    api.fail(429, "get", reason="TooManyRequests", after=7, times=1)
    with pytest.raises(ApiError) as busy:
        api.kube().get(NODE)
    assert (busy.value.status, busy.value.retry_after) == (429, 7.0)


def test_a_server_that_hangs_costs_the_timeout_only(api):
    api.hang("get")
    began = monotonic()
    with pytest.raises(ApiError, match=r"no answer within 0\.1 s") as late:
        api.kube().get(NODE, timeout=0.1)
    assert late.value.status == 0 and monotonic() - began < 2


def test_a_server_that_is_away(api):
    kube = api.kube()
    api.down()
    with pytest.raises(ApiError, match=r"http://127.0.0.1:\d+: Connection refused .fix: check") as away:
        kube.get(NODE)
    assert away.value.status == 0
    api.up()
    api.add(node())
    assert kube.get(NODE)["kind"] == "Node"


def test_only_a_read_is_repeated_when_the_connection_breaks(api):
    api.add(node())
    kube = api.kube()
    api.drop("get")
    assert kube.get(NODE)["kind"] == "Node" and len(api.asked("get")) == 2
    api.drop("patch")
    with pytest.raises(ApiError, match="without response"):
        kube.patch(NODE, {"metadata": {"labels": {"a": "b"}}})
    assert len(api.asked("patch")) == 1


def test_one_connection_serves_many_requests(api):
    kube = api.kube()
    for _ in range(5):
        kube.get("/version")
        with pytest.raises(ApiError):
            kube.get(NODE)
        kube.get("/api/v1/nodes")
    assert api.connections == 1


def test_threads_share_a_client(api):
    for number in range(8):
        api.add({"kind": "Node", "metadata": {"name": f"n{number}"}})
    kube, seen = api.kube(), []

    def ask(number):
        for _ in range(10):
            seen.append(kube.get(f"/api/v1/nodes/n{number}")["metadata"]["name"] == f"n{number}")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert seen == [True] * 80


def test_the_client_of_a_room(api, tmp_path):
    place = tmp_path / "kubeconfig"
    settings = Settings(node_name="n", kubeconfig=str(place))
    with pytest.raises(ApiError, match="no credentials for the API server: cannot read"):
        api_for(settings, "reporter")
    api.kubeconfig(place, {"token": "hush"})
    kube = api_for(settings, "reporter")
    kube.get("/version")
    kube.close()
    headers = api.asked()[-1].headers
    assert headers["User-Agent"].endswith(" (reporter)") and headers["Authorization"] == "Bearer hush"
