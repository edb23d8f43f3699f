"""A forked process is its own from the first instant on."""

import os
import select
import signal

import pytest

from kubelet_mp.supervisor import child as children


@pytest.fixture
def wakeups():
    """The signals that this process is told of, as the supervisor is."""
    read, write = os.pipe()
    for fd in (read, write):
        os.set_blocking(fd, False)
    handler = signal.signal(signal.SIGTERM, lambda signum, frame: None)
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    yield lambda: os.read(read, 64) if select.select([read], [], [], 0)[0] else b""
    signal.set_wakeup_fd(before)
    signal.signal(signal.SIGTERM, handler)
    for fd in (read, write):
        os.close(fd)


def reap(child: children.Child) -> str | None:
    assert select.select([child.pidfd], [], [], 10)[0], "the child does not end"
    return child.reap()


def test_a_signal_at_birth_is_the_childs_and_not_its_parents(wakeups):
    for _ in range(30):
        child = children.fork("kubelet-mp: test", lambda parent: signal.pause() or 0)
        child.signal(signal.SIGTERM)
        assert reap(child) == "SIGTERM"
    assert wakeups() == b""


def test_the_parent_goes_on_taking_signals(wakeups):
    assert reap(children.fork("kubelet-mp: test", lambda parent: 7)) == "exit 7"
    os.kill(os.getpid(), signal.SIGTERM)
    assert wakeups() == bytes([signal.SIGTERM])
