"""The supervisor with real processes: death, hang, silence, replay, orderly and failed starts."""

import os
import signal
import threading
from dataclasses import dataclass

import psutil
import pytest

from kubelet_mp.config import KubeletConfiguration, Settings
from kubelet_mp.errors import ConfigError, StartError
from kubelet_mp.model import clock
from kubelet_mp.rooms.base import Room
from kubelet_mp.supervisor.loop import Supervisor
from kubelet_mp.wire.messages import DesiredSet, Health, Message
from tests.support import wait_until


@dataclass(frozen=True)
class Bench:
    """A running supervisor in a child of the test; rooms write what they get to files in `folder`."""

    folder: str
    pid: int

    def lines(self, name: str) -> list[str]:
        try:
            with open(os.path.join(self.folder, name)) as file:
                return file.read().splitlines()
        except OSError:
            return []

    def room(self, name: str) -> int:
        pids = [p.pid for p in psutil.Process(self.pid).children() if f"kubelet-mp: {name}" in " ".join(p.cmdline())]
        return pids[0] if pids else 0


def note(folder: str, name: str, text: str) -> None:
    with open(os.path.join(folder, name), "a") as file:
        file.write(text + "\n")


class Producer(Room):
    name = "sources"

    def start(self) -> None:
        note(self.settings.root_dir, "producer", f"start {self.context.incarnation}")

    def replay(self, room: str) -> None:
        self.send(DesiredSet(frozenset({"u1"}), True), to=room)


class Consumer(Room):
    name = "pods"

    def handle(self, message: Message) -> None:
        if isinstance(message, DesiredSet):
            note(self.settings.root_dir, "consumer", f"{self.context.incarnation} {sorted(message.uids)}")


class Witness(Room):
    name = "http"

    def handle(self, message: Message) -> None:
        if isinstance(message, Health):
            note(self.settings.root_dir, "health", " ".join(f"{r.room}:{r.restarts}" for r in message.rooms))


class Picky(Room):
    """Tells how many pods it may have; cannot do with none."""

    name = "pods"

    def start(self) -> None:
        pods = self.settings.kubelet.max_pods
        note(self.settings.root_dir, "picky", f"{self.context.incarnation} {pods}")
        if pods == 13:
            raise StartError("13 is too much for me")


class Hopeless(Room):
    name = "pods"

    def start(self) -> None:
        raise StartError("no", "nothing helps")


@pytest.fixture
def bench(tmp_path):
    started = []

    def run(*rooms, deadline=1.0, read_again=None) -> Bench:
        def body() -> int:
            settings = Settings(node_name="n", root_dir=str(tmp_path))
            return Supervisor(settings, {room.name: room for room in rooms}, hang_deadline=deadline,
                              read_again=read_again).run()

        pid = os.fork()
        if pid == 0:
            code = 99
            try:
                code = body()
            finally:
                os._exit(code)
        started.append(pid)
        return Bench(str(tmp_path), pid)

    yield run
    for pid in started:
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            continue


def exit_code(bench: Bench, seconds: float = 15) -> int:
    done: list[int] = []
    waiter = threading.Thread(target=lambda: done.append(os.waitstatus_to_exitcode(os.waitpid(bench.pid, 0)[1])))
    waiter.start()
    waiter.join(seconds)
    assert done, "the supervisor did not end"
    return done[0]


def test_a_killed_consumer_comes_back_and_is_told_everything_again(bench):
    b = bench(Producer, Consumer)
    wait_until(lambda: "1 ['u1']" in b.lines("consumer"), 10, "first delivery")
    began = clock.monotonic()
    os.kill(b.room("pods"), signal.SIGKILL)
    wait_until(lambda: "2 ['u1']" in b.lines("consumer"), 10, "delivery to the second incarnation")
    assert clock.monotonic() - began < 2


def test_a_killed_producer_is_forked_anew(bench):
    b = bench(Producer, Consumer, Witness)
    wait_until(lambda: b.room("sources"), 10, "the producer")
    wait_until(lambda: b.lines("health"), 10, "health")
    os.kill(b.room("sources"), signal.SIGKILL)
    wait_until(lambda: "start 2" in b.lines("producer"), 10, "second incarnation")
    wait_until(lambda: any("sources:1" in line for line in b.lines("health")), 10, "health that counts the restart")


def test_a_stopped_room_is_replaced_after_its_deadline_and_stops_nobody(bench):
    b = bench(Producer, Consumer, Witness)
    wait_until(lambda: b.lines("consumer"), 10, "first delivery")
    pid = b.room("pods")
    os.kill(pid, signal.SIGSTOP)
    seen = len(b.lines("health"))
    wait_until(lambda: len(b.lines("health")) > seen, 5, "news while a room is stopped")
    wait_until(lambda: "2 ['u1']" in b.lines("consumer"), 10, "its replacement")
    assert not psutil.pid_exists(pid)


def test_a_supervisor_that_slept_does_not_kill_its_rooms_for_it(bench):
    b = bench(Producer, Consumer, Witness, deadline=3.0)
    wait_until(lambda: b.lines("health"), 10, "health")
    rooms = [b.room(name) for name in ("sources", "pods", "http")]
    os.kill(b.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, b.pid, os.WSTOPPED)
    os.kill(b.pid, signal.SIGCONT)
    seen = len(b.lines("health"))
    wait_until(lambda: len(b.lines("health")) > seen + 1, 10, "health after the sleep")
    assert [b.room(name) for name in ("sources", "pods", "http")] == rooms


def test_rooms_die_with_their_supervisor(bench):
    b = bench(Producer, Consumer)
    wait_until(lambda: b.lines("consumer"), 10, "first delivery")
    rooms = [b.room("sources"), b.room("pods")]
    os.kill(b.pid, signal.SIGKILL)
    wait_until(lambda: not any(alive(pid) for pid in rooms), 5, "the end of the rooms")


def test_sigterm_is_a_clean_stop(bench):
    b = bench(Producer, Consumer)
    wait_until(lambda: b.lines("consumer"), 10, "first delivery")
    rooms = [b.room("sources"), b.room("pods")]
    os.kill(b.pid, signal.SIGTERM)
    assert exit_code(b) == 0
    assert not any(alive(pid) for pid in rooms)


def test_a_room_that_cannot_start_ends_the_supervisor_with_1(bench):
    assert exit_code(bench(Producer, Hopeless)) == 1


def again(tmp_path, **fields):
    return lambda: Settings(node_name="n", root_dir=str(tmp_path), kubelet=KubeletConfiguration(**fields))


def test_a_reload_forks_the_rooms_with_the_new_settings(bench, tmp_path):
    b = bench(Producer, Picky, read_again=again(tmp_path, max_pods=5))
    wait_until(lambda: "1 110" in b.lines("picky"), 10, "the first settings")
    os.kill(b.pid, signal.SIGHUP)
    wait_until(lambda: "2 5" in b.lines("picky"), 10, "the new settings")
    wait_until(lambda: "start 2" in b.lines("producer"), 10, "the other room too")


def test_a_room_that_cannot_start_with_new_settings_brings_the_old_ones_back(bench, tmp_path):
    b = bench(Producer, Picky, read_again=again(tmp_path, max_pods=13))
    wait_until(lambda: b.lines("picky"), 10, "the first settings")
    os.kill(b.pid, signal.SIGHUP)
    wait_until(lambda: "2 13" in b.lines("picky") and b.lines("picky")[-1] == "3 110", 10, "the old settings")
    assert alive(b.pid)


def test_a_configuration_that_cannot_be_read_changes_nothing(bench, tmp_path):
    def unreadable() -> Settings:
        note(str(tmp_path), "asked", "yes")
        raise ConfigError("no")

    b = bench(Producer, Picky, Witness, read_again=unreadable)
    wait_until(lambda: b.lines("health"), 10, "health")
    rooms = [b.room("sources"), b.room("pods")]
    os.kill(b.pid, signal.SIGHUP)
    wait_until(lambda: b.lines("asked"), 10, "the reload")
    seen = len(b.lines("health"))
    wait_until(lambda: len(b.lines("health")) > seen + 1, 10, "health afterwards")
    assert [b.room("sources"), b.room("pods")] == rooms


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
