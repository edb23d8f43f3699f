"""Repeats are counted, similar events combined, floods dropped."""

from kubelet_mp.rooms.reporter.correlate import BURST, COMBINED, SIMILAR, Correlator
from kubelet_mp.wire.messages import Event


def event(message="m", wall=0.0, uid="u"):
    return Event("Pod", "ns", "p", uid, "Normal", "Pulled", message, wall)


def test_a_repeat_is_counted():
    correlator = Correlator()
    first = correlator.take(event(wall=1.0))
    again = correlator.take(event(wall=5.0))
    assert first is again and (again.count, again.first, again.last) == (2, 1.0, 5.0)


def test_similar_events_become_one():
    correlator = Correlator()
    taken = [correlator.take(event(f"m{n}", wall=float(n))) for n in range(SIMILAR + 3)]
    assert [one.count for one in taken[:SIMILAR - 1]] == [1] * (SIMILAR - 1)
    last = taken[-1]
    assert last is taken[-2] and last.message == f"{COMBINED}m{SIMILAR + 2}" and last.count == 4


def test_a_long_pause_ends_the_similarity():
    correlator = Correlator()
    for n in range(SIMILAR - 1):
        correlator.take(event(f"m{n}"))
    assert correlator.take(event("late", wall=601.0)).message == "late"


def test_a_flood_of_one_object_is_dropped_and_others_go_on():
    correlator = Correlator()
    taken = [correlator.take(event(str(n))) for n in range(int(BURST) + 5)]
    assert sum(one is None for one in taken) == 5
    assert correlator.take(event(uid="other")) is not None
    assert correlator.take(event("later", wall=301.0)) is not None


def test_memory_is_bounded():
    correlator = Correlator(kept=3)
    for n in range(50):
        correlator.take(event(uid=str(n)))
    assert correlator.take(event(uid="0")).count == 1
