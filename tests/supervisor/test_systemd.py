import socket

import pytest

from kubelet_mp.supervisor.systemd import Notifier, watchdog_period


@pytest.fixture
def receiver(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.settimeout(5)
        yield sock, str(tmp_path / "notify")


def test_states_reach_the_socket_and_a_status_only_when_it_changed(receiver):
    sock, path = receiver
    notifier = Notifier({"NOTIFY_SOCKET": path})
    notifier.status("a")
    notifier.status("a")
    notifier.ready()
    notifier.alive()
    notifier.stopping()
    assert [sock.recv(100) for _ in range(4)] == [b"STATUS=a", b"READY=1", b"WATCHDOG=1", b"STOPPING=1"]


def test_without_systemd_nothing_happens():
    notifier = Notifier({})
    notifier.ready()
    assert notifier.watchdog == 0


@pytest.mark.parametrize("environ, expected", [
    ({"WATCHDOG_USEC": "30000000"}, 15), ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, 15),
    ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"}, 0), ({"WATCHDOG_USEC": "900000"}, 0), ({}, 0),
    ({"WATCHDOG_USEC": "x"}, 0),
])
def test_the_watchdog_period(environ, expected):
    assert watchdog_period(environ, 7) == expected
