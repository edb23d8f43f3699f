"""When the PLEG and the runtime are said to be unhealthy."""

from __future__ import annotations

import pytest

from kubelet_mp.model.runtime import RuntimeState
from kubelet_mp.rooms.pleg.health import Pace, after_failure, pause, pleg_problem


@pytest.mark.parametrize(("last", "text"), [
    (None, "PLEG is not healthy: pleg has yet to be successful"),
    (820.0, ""),
    (815.0, "PLEG is not healthy: pleg was last seen active 3m5s ago; threshold is 3m0s"),
])
def test_pleg(last: float | None, text: str) -> None:
    assert pleg_problem(last, 1000.0) == text


def test_a_good_state_stands_for_half_a_minute() -> None:
    good = RuntimeState(ready=True, name="containerd", observed=100.0)
    assert after_failure(good, "gone", 129.0) == good
    bad = after_failure(good, "gone", 130.0)
    assert (bad.ready, bad.message) == (False, "container runtime is down: gone")


def test_before_the_first_state() -> None:
    assert after_failure(RuntimeState(), "no socket", 1.0).message == (
        "container runtime status check may not have completed yet: no socket")


def test_pauses_grow_to_the_period() -> None:
    pace = Pace(status=5.0, retry=0.25)
    assert [pause(n, pace) for n in (0, 1, 2, 3, 9, 500)] == [5.0, 0.25, 0.5, 1.0, 5.0, 5.0]
