"""Following a log: growth, the end of the container, rotations that happen under the reader."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubelet_mp.host.logfiles import LogOptions, open_log
from kubelet_mp.host.logfollow import Follower
from kubelet_mp.host.logrotate import rotate
from tests.support import wait_until

T0 = 1_704_164_645.0


class Scripted:
    """A waiter that does one thing of the script at each wait for a change, and ends when none is left."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self.steps = list(steps)
        self._pause = threading.Event()

    def changed(self, seconds: float) -> bool:
        if not self.steps:
            return False
        self.steps.pop(0)()
        return True

    def pause(self, seconds: float) -> bool:
        self._pause.wait(seconds / 10)
        return True


class Log:
    def __init__(self, path: Path) -> None:
        self.path, self.n, self.turn = path, 0, 0
        path.touch()

    def add(self, count: int = 1) -> None:
        with self.path.open("a") as file:
            for _ in range(count):
                self.n += 1
                file.write(f"2024-01-02T03:04:05.{self.n:09d}Z stdout F {self.n}\n")

    def rotate(self) -> None:
        self.turn += 1
        rotate(str(self.path), 5, T0 + self.turn, self.path.touch)

    def numbers(self) -> list[int]:
        return list(range(1, self.n + 1))


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "0.log")


def follow(log: Log, waiter: Scripted, running: Callable[[], bool] = lambda: True,
           options: LogOptions | None = None) -> Iterator[bytes]:
    source = open_log(str(log.path))
    return Follower(str(log.path), source, options or LogOptions(follow=True), waiter, running).chunks()


def numbers(chunks: Iterator[bytes]) -> list[int]:
    return [int(line) for line in b"".join(chunks).split()]


def test_the_first_piece_comes_before_any_line(log: Log) -> None:
    chunks = follow(log, Scripted())
    assert next(chunks) == b""
    assert list(chunks) == []


def test_lines_are_given_as_they_come(log: Log) -> None:
    log.add(3)
    assert numbers(follow(log, Scripted(log.add, log.add, lambda: log.add(2)))) == log.numbers()


def test_tail_holds_for_the_start_only(log: Log) -> None:
    log.add(10)
    got = numbers(follow(log, Scripted(log.add), options=LogOptions(follow=True, tail_lines=2)))
    assert got == [9, 10, 11]


def test_limit_bytes_ends_the_stream(log: Log) -> None:
    log.add(9)
    assert b"".join(follow(log, Scripted(), options=LogOptions(follow=True, limit_bytes=5))) == b"1\n2\n3"


def test_rotations_neither_lose_nor_repeat_a_line(log: Log) -> None:
    log.add(5)
    more = [log.rotate, lambda: log.add(3), log.rotate, log.add, log.add]
    steps = [log.add, log.rotate, log.add, log.add, *more]
    assert numbers(follow(log, Scripted(*steps))) == log.numbers()


def test_lines_that_reach_the_old_file_after_its_rotation_are_given(log: Log) -> None:
    log.add(2)

    def late() -> None:
        with log.path.open("a") as old:
            log.rotate()
            log.n += 1
            old.write(f"2024-01-02T03:04:05.{log.n:09d}Z stdout F {log.n}\n")
        log.add()

    assert numbers(follow(log, Scripted(late, log.add))) == log.numbers()


@pytest.mark.parametrize("turns", [2, 3, 4])
def test_a_reader_that_slept_through_rotations_gets_all_that_is_still_there(log: Log, turns: int) -> None:
    log.add(3)
    chunks = follow(log, Scripted(log.add))
    got = [next(chunks), next(chunks)]
    for _ in range(turns):
        log.rotate()  # from the second turn on the reader's own file is compressed
        log.add(4)
    assert numbers(iter([*got, *chunks])) == log.numbers()


def test_the_stream_ends_with_the_container_after_its_last_line(log: Log) -> None:
    log.add(2)
    state = iter([True, False])

    def running() -> bool:
        alive = next(state)
        if not alive:
            with log.path.open("a") as file:
                file.write("2024-01-02T03:04:06Z stdout F 3\n2024-01-02T03:04:07Z stdout F 4")
        return alive

    assert numbers(follow(log, Scripted(log.rotate, log.add), running)) [:2] == [1, 2]


def test_what_was_written_before_the_end_is_delivered(log: Log) -> None:
    def running() -> bool:
        log.add(2)
        with log.path.open("a") as file:
            file.write("2024-01-02T03:04:07Z stdout F 99")
        return False

    assert numbers(follow(log, Scripted(), running)) == [1, 2, 99]


def test_a_truncated_log_is_read_from_its_start(log: Log) -> None:
    log.add(5)

    def truncate() -> None:
        log.path.write_text("2024-01-02T03:04:09Z stdout F 77\n")

    assert numbers(follow(log, Scripted(truncate, log.add)))[5:] == [77, 6]


def test_two_readers_and_a_writer_under_real_rotation(log: Log) -> None:
    """A writer in its own thread, as a runtime would be: it writes to what it has open."""
    stop = threading.Event()
    waiting: set[int] = set()  # readers that have the log open and are at its end

    def write() -> None:
        wait_until(lambda: len(waiting) == 2, 10, "both readers at the end")
        for turn in range(4):
            log.add(300)
            log.rotate()
            log.turn += turn
        stop.set()

    class Patient(Scripted):
        def changed(self, seconds: float) -> bool:
            waiting.add(id(self))
            self._pause.wait(0.001)
            return True

    results: list[list[int]] = []

    def read() -> None:
        results.append(numbers(follow(log, Patient(), lambda: not stop.is_set())))

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    writer = threading.Thread(target=write)
    writer.start()
    writer.join(10)
    wait_until(lambda: len(results) == 2, 10, "both readers")
    assert results == [log.numbers()] * 2
