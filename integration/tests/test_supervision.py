"""The agent as init systems and operators see it: names of processes, sd_notify, signals, exit codes."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.rig.console import poll
from integration.rig.manifests import container, pod

ROOMS = {"sources", "pods", "pleg", "probes", "cgroups", "volumes", "reporter", "housekeeping", "http"}
WATCHDOG = 4.0  # s


class Systemd:
    """The other end of NOTIFY_SOCKET."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self._socket.setblocking(False)
        self.path, self.said = path, list[str]()

    def listen(self) -> list[str]:
        """Everything that was said so far."""
        while True:
            try:
                self.said += self._socket.recv(4096).decode().splitlines()
            except BlockingIOError:
                return self.said

    def heard(self, word: str, seconds: float = 10) -> bool:
        return bool(poll(lambda: word in self.listen(), seconds))

    def forget(self) -> None:
        self.listen()
        self.said.clear()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def systemd(tmp_path, monkeypatch) -> Iterator[Systemd]:
    found = Systemd(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", str(found.path))
    monkeypatch.setenv("WATCHDOG_USEC", str(int(WATCHDOG * 1e6)))
    yield found
    found.close()


def test_what_systemd_is_told(agent, systemd):
    """READY when every room is up; the watchdog is fed only while every room beats; STOPPING at the end."""
    a = agent().start()
    assert systemd.heard("READY=1") and systemd.heard("STATUS=all rooms are up")
    before = systemd.said.index("READY=1")
    assert "WATCHDOG=1" not in systemd.said[:before]
    systemd.forget()
    assert systemd.heard("WATCHDOG=1", WATCHDOG) and systemd.said.count("READY=1") == 0

    stopped = a.rooms()["reporter"]
    os.kill(stopped, signal.SIGSTOP)
    assert systemd.heard("STATUS=waiting for rooms: reporter", 15)
    systemd.forget()
    assert systemd.heard("STATUS=all rooms are up") and systemd.heard("WATCHDOG=1", WATCHDOG)
    assert a.rooms()["reporter"] != stopped

    systemd.forget()
    assert a.stop() == 0
    assert systemd.heard("STOPPING=1") and "READY=1" not in systemd.said


def test_the_watchdog_starves_while_a_room_is_silent(agent, systemd):
    """From the end of the room's deadline until it is replaced nothing is sent to the watchdog."""
    a = agent().start()
    assert systemd.heard("WATCHDOG=1", WATCHDOG)
    systemd.forget()
    os.kill(a.rooms()["volumes"], signal.SIGSTOP)
    assert systemd.heard("STATUS=all rooms are up", 15)
    silent = systemd.said.index("STATUS=waiting for rooms: volumes")
    assert systemd.said[silent + 1] == "STATUS=all rooms are up"
    assert a.log.read_text().count('hangs="volumes"') == 1, "killed once"


def test_an_orderly_stop_leaves_the_pods_running(agent):
    a = agent().start()
    a.put("stays", pod("stays", container()))
    running = a.wait_running("stays")
    processes = a.rooms()
    assert processes.keys() == {"supervisor", *ROOMS}
    assert Path(f"/proc/{processes['pods']}/comm").read_text().startswith("kubelet-mp: pod"), "what `ps` shows"
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(a.rooms()["supervisor"], number)
        assert a.wait_exit(10) == 0
        assert a.family() == {}
        assert a.wait_running("stays") == running
        assert "a room did not stop in time" not in a.log.read_text()
        a.start()
    a.wait(lambda: a.status("stays").get("phase") == "Running", 10, "it is shown again")
    assert a.container_status("stays")["restartCount"] == 0
    assert [c.id for c in a.cri.containers(a.full_name("stays"))] == running


def test_a_stop_before_all_is_up(agent):
    """SIGTERM at any moment of the start ends it in order and leaves no process."""
    a = agent()
    for milestone in ('up="pleg"', 'up="sources"', 'up="http"'):
        a.log.unlink(missing_ok=True)
        a.start(wait=False)
        a.wait(lambda mark=milestone: not a.alive() or re.search(mark, a.log.read_text()), 20, milestone)
        assert a.stop(12) == 0
        assert a.family() == {}
        assert "did not stop in time" not in a.log.read_text()


def test_a_hung_room_leaves_its_stacks_in_the_log(agent):
    """SIGABRT comes before SIGKILL. A stopped process cannot print, so this one is stopped and goes on."""
    a = agent().start()
    room = a.rooms()["probes"]
    os.kill(room, signal.SIGABRT)
    a.wait(lambda: a.rooms().get("probes") not in (None, room), 5, "another probes room")
    said = a.log.read_text()
    assert "Fatal Python error: Aborted" in said and 'how="SIGABRT"' in said
    assert re.search(r'File ".*rooms/base\.py", line \d+ in _turn', said)


def test_a_room_that_dies_again_and_again_is_given_more_time(agent):
    a = agent().start()
    for _ in range(3):
        room = a.wait(lambda: a.rooms().get("housekeeping"), 10, "the room")
        os.kill(room, signal.SIGKILL)
        a.wait(lambda gone=room: a.rooms().get("housekeeping") not in (None, gone), 10, "its replacement")
    delays = [float(found) for found in re.findall(r'died="housekeeping".*delay_s=([\d.]+)', a.log.read_text())]
    assert delays[0] == 0 and 0.25 <= delays[1] <= 0.3 and 0.5 <= delays[2] <= 0.6
