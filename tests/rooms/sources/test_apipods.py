"""What is kept of the API server's pods: whatever happened, the newest state of each, told once."""

from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.rooms.sources.apifeed import ApiFeed
from kubelet_mp.rooms.sources.apipods import API, ORIGIN, ApiPods, selector
from kubelet_mp.wire.messages import MirrorPod, MirrorSet
from tests.fakes.api import FakeApi
from tests.support import FakeClock

SEEN = "kubernetes.io/config.seen"


def pod(name, uid="", mirror=False, **more):
    annotations = {"kubernetes.io/config.mirror": "h"} if mirror else {}
    meta = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}", "annotations": annotations}
    return {"metadata": meta, **more}


def desired(pods):
    item = pods.reading().items[ORIGIN]
    return {one["metadata"]["uid"]: one for one in item.pods}


def test_not_ready_before_the_first_list():
    pods = ApiPods(FakeClock())
    pods.problem = "away"
    reading = pods.reading()
    assert (reading.source, reading.ready, reading.items[ORIGIN].problem) == (API, False, "away")
    assert pods.news() == [] and pods.everything() == []
    pods.take_list([])
    assert pods.reading().ready and pods.news() == [MirrorSet(frozenset())] == pods.everything() and pods.news() == []


def test_the_time_of_the_first_sight_stays_and_a_new_uid_is_a_new_pod():
    clock = FakeClock()
    pods = ApiPods(clock)
    pods.take_list([pod("a", "1")])
    first = desired(pods)["1"]["metadata"]["annotations"][SEEN]
    clock.advance(5)
    pods.take_event("MODIFIED", pod("a", "1", status={"phase": "Running"}))
    assert desired(pods)["1"]["metadata"]["annotations"][SEEN] == first and desired(pods)["1"]["status"]
    pods.take_event("DELETED", pod("a", "1"))
    pods.take_event("ADDED", pod("a", "2"))
    assert set(desired(pods)) == {"2"} and desired(pods)["2"]["metadata"]["annotations"][SEEN] > first


def test_a_mirror_that_is_replaced_is_told_as_it_is_now():
    pods = ApiPods(FakeClock())
    pods.take_list([pod("m", "1", mirror=True)])
    assert [message.uid for message in pods.news()[:1]] == ["1"]
    pods.take_event("DELETED", pod("m", "1", mirror=True))
    pods.take_event("ADDED", pod("m", "2", mirror=True))
    assert pods.news() == [MirrorPod("2", "ns/m", pod("m", "2", mirror=True))]
    pods.take_event("MODIFIED", pod("m", "2", mirror=True))
    pods.take_event("DELETED", pod("m", "1", mirror=True))  # an old one, late
    assert pods.news() == [] and desired(pods) == {}
    pods.take_list([])
    assert pods.news() == [MirrorPod("2", "ns/m", None), MirrorSet(frozenset())]


def test_the_selector():
    assert selector("n") == {"fieldSelector": "spec.nodeName=n"}


HAPPENINGS = st.lists(st.tuples(
    st.sampled_from(["ADDED", "MODIFIED", "DELETED", "LIST"]), st.sampled_from("abc"), st.integers(0, 3)), max_size=20)


@given(HAPPENINGS, st.sets(st.integers(0, 20)))
def test_what_is_taken_in_late_and_in_one_go_comes_to_the_same(happenings, turns):
    """`turns`: after which happenings the main thread had time."""
    posted, pods, truth = [], ApiPods(FakeClock()), {}
    feed = ApiFeed(FakeApi().kube(), "n", pods, posted.append, lambda: None, posted.append)
    for at, (kind, name, number) in enumerate(happenings):
        if kind == "LIST":
            truth = {f"uid-{name}": number}
            feed._on_list([pod(name, spec=number)])
        elif kind == "DELETED":
            truth.pop(f"uid-{name}", None)
            feed._on_event(kind, pod(name))
        else:
            truth[f"uid-{name}"] = number
            feed._on_event(kind, pod(name, spec=number))
        assert len(posted) <= 1
        if at in turns and posted:
            posted.pop()()
    for call in posted:
        call()
    assert {uid: one["spec"] for uid, one in desired(pods).items()} == truth
