"""Keys brought up to date by threads."""

import threading

from kubelet_mp.errors import ApiError
from kubelet_mp.rooms.reporter.keyed import Keyed
from tests.support import wait_until


class Work:
    def __init__(self, threads=4):
        self.done, self.errors, self.gates = [], [], {}
        self.refuse = 0
        self.keyed = Keyed("test", threads, self.sync, failed=lambda key, error, again: self.errors.append(key),
                           crashed=self.errors.append)

    def sync(self, key):
        if key in self.gates:
            self.gates[key].wait(10)
        if self.refuse:
            self.refuse -= 1
            raise ApiError("away")
        self.done.append(key)


def test_one_key_that_hangs_holds_up_no_other():
    work = Work(threads=2)
    work.gates["slow"] = threading.Event()
    for key in ("slow", "a", "b", "c"):
        work.keyed.ask(key)
    wait_until(lambda: sorted(work.done) == ["a", "b", "c"])
    work.gates["slow"].set()
    wait_until(lambda: "slow" in work.done)
    work.keyed.close()


def test_a_burst_after_a_pause_gets_all_threads():
    work = Work(threads=3)
    work.keyed.ask("first")
    wait_until(lambda: work.done == ["first"])
    for key in "abc":
        work.gates[key] = threading.Event()
        work.keyed.ask(key)
    wait_until(lambda: work.keyed.waiting == 0)
    for gate in work.gates.values():
        gate.set()
    wait_until(lambda: len(work.done) == 4)
    work.keyed.close()


def test_what_is_asked_while_it_is_done_is_done_once_more():
    work = Work()
    work.gates["a"] = gate = threading.Event()
    work.keyed.ask("a")
    wait_until(lambda: work.keyed.waiting == 0)
    for _ in range(5):
        work.keyed.ask("a")
    gate.set()
    wait_until(lambda: work.done == ["a", "a"])
    wait_until(lambda: work.keyed.waiting == 0)
    assert work.done == ["a", "a"]
    work.keyed.close()


def test_a_failure_is_tried_again():
    work = Work()
    work.refuse = 2
    work.keyed.ask("a")
    wait_until(lambda: work.done == ["a"])
    assert work.errors == ["a", "a"]
    work.keyed.close()


def test_a_mistake_is_told():
    errors = []
    keyed = Keyed("test", 1, lambda key: 1 // 0, failed=lambda *_: None, crashed=errors.append)
    keyed.ask("a")
    wait_until(lambda: errors)
    assert isinstance(errors[0], ZeroDivisionError)
