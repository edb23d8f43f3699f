"""/healthz: the checks and their texts."""

from __future__ import annotations

from kubelet_mp.rooms.http.health import all_checks, checks, one_check
from kubelet_mp.rooms.http.state import State
from kubelet_mp.wire.messages import Health, RoomHealth
from tests.support import FakeClock

GOOD = {"ping": lambda: "", "syncloop": lambda: ""}
BAD = {"ping": lambda: "", "syncloop": lambda: "too slow"}


def test_texts() -> None:
    assert all_checks(GOOD, verbose=False) == (200, "ok")
    assert all_checks(GOOD, verbose=True) == (200, "[+]ping ok\n[+]syncloop ok\nhealthz check passed\n")
    text = "[+]ping ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n"
    assert all_checks(BAD, verbose=False) == (500, text)
    assert all_checks(BAD, verbose=False, exclude=["syncloop"]) == (200, "ok")
    assert one_check(BAD["syncloop"]) == (500, "internal server error: too slow\n")
    assert one_check(BAD["ping"]) == (200, "ok")


def test_the_sync_loop_counts_as_dead_after_five_minutes_of_silence() -> None:
    clock = FakeClock()
    state = State(clock.monotonic)
    check = checks(state, 60.0)["syncloop"]
    state.apply(Health((RoomHealth("pods", 1, 1, 0, beat_age=10.0, up=1.0, waiting=0),)))
    clock.advance(289)
    assert check() == ""
    clock.advance(2)
    assert "sync Loop took longer" in check()
    state.apply(Health((RoomHealth("pods", 1, 1, 0, beat_age=0.1, up=1.0, waiting=0),)))
    assert check() == ""


def test_a_long_sync_frequency_lengthens_the_silence() -> None:
    clock = FakeClock()
    check = checks(State(clock.monotonic), 600.0)["syncloop"]
    clock.advance(1199)
    assert check() == ""
    clock.advance(2)
    assert check() != ""
