"""The fake API server itself, where other tests rely on what a real one does."""

import pytest

from kubelet_mp.errors import ApiError
from tests.fakes.api import FakeApi
from tests.fakes.api.patch import merge

POD = "/api/v1/namespaces/default/pods/a"


@pytest.fixture
def api():
    with FakeApi() as api:
        yield api


def pod(**more):
    return {"kind": "Pod", "metadata": {"name": "a"}, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}, **more}


def test_a_pod_is_deleted_in_two_steps(api):
    kube, made = api.kube(), api.add(pod())
    marked = kube.delete(POD, {"gracePeriodSeconds": 7})["metadata"]
    assert marked["deletionGracePeriodSeconds"] == 7 and marked["deletionTimestamp"]
    with pytest.raises(ApiError) as other:
        kube.delete(POD, {"gracePeriodSeconds": 0, "preconditions": {"uid": "other"}})
    assert other.value.conflict
    kube.delete(POD, {"gracePeriodSeconds": 0, "preconditions": {"uid": made["metadata"]["uid"]}})
    assert api.get(POD) is None


def test_a_pod_that_has_ended_goes_at_once(api):
    api.add(pod(status={"phase": "Failed"}))
    api.kube().delete(POD)
    assert api.get(POD) is None


def test_the_status_is_apart_and_what_changes_nothing_makes_no_version(api):
    kube, made = api.kube(), api.add(pod())
    assert kube.patch(POD, {"status": {"phase": "Failed"}}) == made
    assert kube.patch(f"{POD}/status", {"spec": {"nodeName": "m"}, "status": {"phase": "Running"}}) == made
    with pytest.raises(ApiError) as other:
        kube.patch(f"{POD}/status", {"metadata": {"uid": "other"}, "status": {"phase": "Failed"}})
    assert other.value.conflict
    changed = kube.patch(f"{POD}/status", {"metadata": {"uid": made["metadata"]["uid"]}, "status": {"phase": "Failed"}})
    assert changed["status"] == {"phase": "Failed"} and changed["spec"] == {"nodeName": "n"}
    assert changed["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]


def test_a_token(api):
    body = {"spec": {"audiences": ["a"], "expirationSeconds": 600}}
    status = api.kube().create("/api/v1/namespaces/default/serviceaccounts/default/token", body)["status"]
    assert status["token"] == "token-default-default-1" and status["expirationTimestamp"].endswith("Z")


def test_names_are_made_up_and_collections_are_apart(api):
    kube = api.kube()
    made = kube.create("/api/v1/namespaces/x/events", {"metadata": {"generateName": "e-"}})["metadata"]
    assert made["name"].startswith("e-") and made["namespace"] == "x"
    assert len(kube.get("/api/v1/events")["items"]) == 1 and kube.get("/api/v1/namespaces/y/events")["items"] == []
    with pytest.raises(ApiError) as unknown:
        kube.get("/apis/example.org/v1/things")
    assert unknown.value.not_found


@pytest.mark.parametrize(("old", "new", "result"), [
    ({"conditions": [{"type": "A", "status": "x", "reason": "r"}, {"type": "B"}]},
     {"conditions": [{"type": "A", "status": "y"}, {"type": "C"}]},
     {"conditions": [{"type": "A", "status": "y", "reason": "r"}, {"type": "B"}, {"type": "C"}]}),
    ({"conditions": [{"type": "A"}, {"type": "B"}]}, {"conditions": [{"type": "A", "$patch": "delete"}]},
     {"conditions": [{"type": "B"}]}),
    ({"containerStatuses": [{"name": "a", "x": 1}, {"name": "b"}]}, {"containerStatuses": [{"name": "a"}]},
     {"containerStatuses": [{"name": "a"}]}),
    ({"addresses": [{"type": "A", "address": "1"}]}, {"addresses": [{"type": "B"}, {"$patch": "replace"}]},
     {"addresses": [{"type": "B"}]}),
    ({"a": {"b": 1, "c": 2}}, {"a": {"b": None, "$patch": "merge"}, "$setElementOrder/x": []}, {"a": {"c": 2}}),
    ({"a": {"b": 1}}, {"a": {"c": 1, "$patch": "replace"}}, {"a": {"c": 1}}),
    ({"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]}, {"finalizers": ["b"]}),
])
def test_strategic_merge(old, new, result):
    assert merge(old, new, strategic=True) == result
