from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.model.runtime import PodRuntime
from kubelet_mp.wire.envelope import Envelope, seal
from kubelet_mp.wire.mailbox import Mailbox
from kubelet_mp.wire.messages import Event, PodRuntimeChanged, RelistPod


def sealed(message, seq=1, room="pleg") -> Envelope:
    return seal(message, room=room, incarnation=1, seq=seq, sent=0.0)


def event(serial: int) -> Event:
    return Event("Pod", "default", "web", "u1", "Normal", "Pulled", "", 1.0, serial=serial)


def test_only_the_newest_of_a_kind_and_key_is_kept():
    box = Mailbox()
    for error in ("first", "second", "third"):
        box.put(sealed(PodRuntimeChanged("u1", PodRuntime("u1", error=error))))
    box.put(sealed(PodRuntimeChanged("u2", PodRuntime("u2"))))
    got = [envelope.open() for envelope in box.take()]
    assert [(m.uid, m.runtime.error) for m in got] == [("u1", "third"), ("u2", "")]
    assert len(box) == 0


def test_a_newer_message_arrives_after_what_came_between():
    box = Mailbox()
    box.put(sealed(RelistPod("u1")))
    box.put(sealed(PodRuntimeChanged("u1", PodRuntime("u1"))))
    box.put(sealed(RelistPod("u1")))
    assert [envelope.kind for envelope in box.take()] == ["PodRuntimeChanged", "RelistPod"]


def test_events_are_never_merged_but_the_oldest_are_dropped_when_full():
    box = Mailbox(max_lossy=3)
    box.put(sealed(RelistPod("u1")))
    for serial in range(5):
        box.put(sealed(event(serial)))
    kept = [envelope.open() for envelope in box.take()]
    assert [getattr(m, "serial", None) for m in kept] == [None, 2, 3, 4]
    assert box.dropped == 2


def test_a_batch_is_bounded_but_holds_at_least_one():
    box = Mailbox()
    for i in range(4):
        box.put(sealed(PodRuntimeChanged(f"u{i}", PodRuntime(f"u{i}", error="x" * 1000))))
    assert len(box.take(max_bytes=10)) == 1
    assert len(box.take(max_bytes=2500)) == 2
    assert len(box.take(max_count=1)) == 1
    assert box.take() == []


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9))), st.integers(1, 5))
def test_every_key_ends_with_its_last_value(puts, count):
    box = Mailbox()
    for seq, (uid, value) in enumerate(puts):
        box.put(sealed(PodRuntimeChanged(uid, PodRuntime(uid, error=str(value))), seq))
    got = {}
    while batch := box.take(max_count=count):
        got.update({e.key: e.open().runtime.error for e in batch})
    assert got == {uid: str(value) for uid, value in puts}
