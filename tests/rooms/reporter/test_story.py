"""Stories: equal entries are counted, many similar ones combined, and nothing grows without bound."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.rooms.reporter.story import COMBINED, MAX_ENTRIES, SIMILAR, SIMILAR_SPAN, Library, Story
from kubelet_mp.wire.messages import TimelineEntry


def entry(when: float, message: str = "m", reason: str = "R", path: str = "") -> TimelineEntry:
    return TimelineEntry(when, when, 1, "Normal", reason, message, path)


def story(*entries: TimelineEntry) -> Story:
    found = Story("u", "ns", "n")
    for one in entries:
        found.add(one)
    return found


def test_equal_entries_are_counted_and_move_to_the_end() -> None:
    told = story(entry(1), entry(2, "other"), entry(3)).entries
    assert [(e.message, e.first, e.last, e.count) for e in told] == [("other", 2, 2, 1), ("m", 1, 3, 2)]


def test_the_same_moment_told_again_is_not_counted() -> None:
    assert [e.count for e in story(entry(1), entry(1)).entries] == [1]


def test_entries_of_two_containers_stay_apart() -> None:
    assert len(story(entry(1, path="spec.containers{a}"), entry(2, path="spec.containers{b}")).entries) == 2


def test_many_similar_entries_become_one_with_the_newest_message() -> None:
    told = story(*(entry(n, f"m{n}") for n in range(SIMILAR + 3))).entries
    assert [(e.message, e.count, e.first, e.last) for e in told] == [
        (f"{COMBINED}m{SIMILAR + 2}", SIMILAR + 3, 0, SIMILAR + 2)
    ]


def test_similar_entries_far_apart_are_not_combined() -> None:
    told = story(*(entry(n * SIMILAR_SPAN, f"m{n}") for n in range(SIMILAR + 3))).entries
    assert len(told) == SIMILAR + 3


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 80), st.integers(0, 80)), max_size=200))
def test_a_story_is_bounded_ordered_and_ends_with_the_newest(events: list[tuple[int, int, int]]) -> None:
    events.sort()
    told = story(*(entry(when, f"m{m}", f"r{r}") for when, m, r in events)).entries
    assert len(told) <= MAX_ENTRIES
    assert [e.last for e in told] == sorted(e.last for e in told)
    assert not events or told[-1].last == events[-1][0]


def test_pods_that_are_gone_make_room_first() -> None:
    library = Library(max_pods=2)
    assert library.add("a", "ns", "a", entry(1)) == []
    assert library.add("b", "ns", "b", entry(2)) == []
    library.forget("b")
    assert library.add("c", "ns", "c", entry(3)) == ["b"]
    assert library.add("d", "ns", "d", entry(4)) == ["a"]
    assert library.uids() == ["c", "d"]
