from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.model.backoff import Backoff


def test_the_first_follows_at_once_and_then_the_delays_double_up_to_the_cap() -> None:
    backoff, now, seen = Backoff(), 0.0, []
    for _ in range(8):
        ready = backoff.ready_at("k", now)
        seen.append(ready - now)
        backoff.next("k", now, ready)
        now = ready + 1.0
    assert seen == [0, 10, 20, 40, 80, 160, 300, 300]


def test_it_is_forgotten_after_ten_minutes_without_a_failure() -> None:
    backoff = Backoff()
    backoff.next("k", 0.0, 0.0)
    assert backoff.ready_at("k", 600.0) == 610.0
    assert backoff.ready_at("k", 601.0) == 601.0
    assert backoff.next("k", 601.0, 601.0) == 10.0


def test_a_low_maximum_lowers_the_beginning_too() -> None:
    backoff = Backoff(10.0, 4.0)
    assert [backoff.next("k", 0.0, 0.0) for _ in range(3)] == [4.0, 4.0, 4.0]


def test_pulls_are_counted_from_the_last_failed_one() -> None:
    backoff = Backoff()
    assert backoff.ready_since_update("k", 5.0) == 5.0
    backoff.next("k", 5.0, 5.0)
    assert backoff.ready_since_update("k", 6.0) == 15.0
    assert backoff.ready_since_update("k", 20.0) == 20.0


def test_keys_do_not_mix_and_can_be_reset() -> None:
    backoff = Backoff()
    backoff.next("a", 0.0, 0.0)
    assert backoff.delay("b") == 0.0
    backoff.reset("a")
    assert backoff.delay("a") == 0.0


def test_prune_drops_only_what_is_forgotten() -> None:
    backoff = Backoff()
    backoff.next("old", 0.0, 0.0)
    backoff.next("new", 700.0, 700.0)
    backoff.prune(1000.0)
    assert (backoff.delay("old"), backoff.delay("new")) == (0.0, 10.0)


@given(st.lists(st.floats(0, 400), min_size=1, max_size=30))
def test_delays_stay_between_the_beginning_and_the_cap(pauses: list[float]) -> None:
    backoff, now = Backoff(), 0.0
    for pause in pauses:
        now += pause
        assert 10.0 <= backoff.next("k", now, now) <= 300.0
