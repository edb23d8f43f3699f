from __future__ import annotations

import threading

import pytest

from kubelet_mp.rooms.pods.pool import Pool
from kubelet_mp.rooms.pods.slots import Cancelled, Slots, Turn
from tests.support import FakeClock, wait_until


def test_of_those_that_wait_the_first_pod_goes_first() -> None:
    slots, order = Slots(1), []
    held = slots.acquire(0)
    pool = Pool("t")

    def work(number: int) -> None:
        ticket = slots.acquire(number)
        order.append(number)
        slots.release(ticket)

    for number in (5, 3, 4):
        pool.run(lambda number=number: work(number))  # type: ignore[misc]
    wait_until(lambda: slots.ahead(99) == 3, what="three to wait")
    assert slots.ahead(4) == 1
    slots.release(held)
    wait_until(lambda: len(order) == 3, what="all to go")
    assert order == [3, 4, 5]


def test_never_more_than_the_limit() -> None:
    slots, pool, lock = Slots(2), Pool("t"), threading.Lock()
    now, most, done = [0], [0], []

    def work(number: int) -> None:
        turn = Turn(slots, number)
        turn.take()
        turn.take()
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        with lock:
            now[0] -= 1
        turn.give_back()
        done.append(number)

    for number in range(20):
        pool.run(lambda number=number: work(number))  # type: ignore[misc]
    wait_until(lambda: len(done) == 20, what="all")
    assert 1 <= most[0] <= 2


def test_whoever_is_not_wanted_any_more_stops_waiting() -> None:
    slots, cancel, seen = Slots(1), threading.Event(), []
    slots.acquire(0)

    def work() -> None:
        with pytest.raises(Cancelled):
            slots.acquire(1, cancel)
        seen.append(1)

    Pool("t").run(work)
    wait_until(lambda: slots.ahead(9) == 1, what="it to wait")
    cancel.set()
    slots.wake()
    wait_until(lambda: seen, what="it to stop")
    assert slots.ahead(9) == 0


def test_a_holder_that_hangs_counts_no_more() -> None:
    clock = FakeClock()
    slots = Slots(1, stale=0.05, now=clock.monotonic)
    slots.acquire(0)
    clock.advance(1.0)
    slots.release(slots.acquire(1))


def test_calls_run_side_by_side_and_their_errors_come_back() -> None:
    pool, meet = Pool("t", idle=0.01), threading.Barrier(3, timeout=5)
    pool.all([lambda: meet.wait() and None] * 3)

    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        pool.all([lambda: None, fail])


def test_idle_threads_go_away() -> None:
    pool, ran = Pool("short-lived", idle=0.01), threading.Event()
    pool.run(ran.set)
    assert ran.wait(5)
    wait_until(lambda: not any(t.name == "short-lived" for t in threading.enumerate()), what="the thread to end")


def test_draining_waits_for_holders_and_grants_nothing_more() -> None:
    slots = Slots(2)
    ticket = slots.acquire(0)
    assert not slots.drain(0.01)
    threading.Timer(0.05, lambda: slots.release(ticket)).start()
    assert slots.drain(5)
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        slots.acquire(1, cancel)
