"""Repeats are counted, similar events combined, floods dropped."""

from kubelet_mp.rooms.reporter.correlate import BURST, COMBINED, SIMILAR, Correlator
from kubelet_mp.wire.messages import Event


def event(message="m", wall=0.0, uid="u", type_="Normal", path=""):
    return Event("Pod", "ns", "p", uid, type_, "Pulled", message, wall, path)


def take(correlator, one):
    """As if it came when it happened."""
    return correlator.take(one, one.wall)


def test_a_repeat_is_counted():
    correlator = Correlator()
    first = take(correlator, event(wall=1.0))
    again = take(correlator, event(wall=5.0))
    assert first is again and (again.count, again.first, again.last) == (2, 1.0, 5.0)


def test_similar_events_become_one():
    correlator = Correlator()
    taken = [take(correlator, event(f"m{n}", wall=float(n))) for n in range(SIMILAR + 3)]
    assert [one.count for one in taken[:SIMILAR - 1]] == [1] * (SIMILAR - 1)
    last = taken[-1]
    assert last is taken[-2] and last.message == f"{COMBINED}m{SIMILAR + 2}" and last.count == 4


def test_a_long_pause_ends_the_similarity():
    correlator = Correlator()
    for n in range(SIMILAR - 1):
        take(correlator, event(f"m{n}"))
    assert take(correlator, event("late", wall=601.0)).message == "late"


def test_a_flood_of_one_object_is_dropped_and_others_go_on():
    correlator = Correlator()
    taken = [take(correlator, event(str(n))) for n in range(int(BURST) + 5)]
    assert sum(one is None for one in taken) == 5
    assert take(correlator, event(uid="other")) is not None
    assert take(correlator, event("later", wall=301.0)) is not None


def test_memory_is_bounded():
    correlator = Correlator(kept=3)
    for n in range(50):
        take(correlator, event(uid=str(n)))
    assert take(correlator, event(uid="0")).count == 1


def test_containers_are_counted_apart_but_combined_together():
    correlator = Correlator()
    apart = [take(correlator, event(path=f"spec.containers{{{name}}}")) for name in "ab"]
    assert apart[0] is not apart[1]
    together = [take(correlator, event(f"m{n}", path=f"spec.containers{{{n}}}")) for n in range(SIMILAR)]
    assert together[-1] is together[-2] and together[-1].count == 2


def test_a_flood_of_one_type_leaves_the_other_alone_and_is_counted():
    correlator = Correlator()
    for _ in range(int(BURST) + 5):
        take(correlator, event())
    assert take(correlator, event()) is None
    assert take(correlator, event(type_="Warning")) is not None
    assert take(correlator, event(wall=301.0)).count == BURST + 7
