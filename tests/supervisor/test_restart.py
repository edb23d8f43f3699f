from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.supervisor import restart
from kubelet_mp.supervisor.restart import MAX_DELAY, Record, hung


def delays(lives, jitter=0.0):
    record, out = Record(), []
    for lived in lives:
        record, delay = record.died(lived, lambda: jitter)
        out.append(delay)
    return out


def test_the_first_death_is_followed_at_once_and_then_it_doubles():
    assert delays([1, 1, 1, 1]) == [0.0, 0.25, 0.5, 1.0]


def test_a_good_life_cleans_the_record():
    assert delays([1, 1, restart.GOOD_LIFE, 1]) == [0.0, 0.25, 0.0, 0.25]


@given(st.lists(st.floats(0, 60), max_size=60), st.floats(0, 1))
def test_no_delay_is_beyond_the_cap(lives, jitter):
    assert all(0 <= delay <= MAX_DELAY * 1.2 for delay in delays(lives, jitter))


def test_a_silent_room_hangs_unless_the_supervisor_slept_itself():
    assert not hung(now=100, last_beat=96, supervisor_awake_since=0, deadline=5)
    assert hung(now=100, last_beat=90, supervisor_awake_since=0, deadline=5)
    assert not hung(now=100, last_beat=10, supervisor_awake_since=98, deadline=5)
