"""The link between real processes: frames, death in the middle of one, a reader that does not read."""

import os
import select
import signal
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.model.runtime import PodRuntime
from kubelet_mp.wire.envelope import seal
from kubelet_mp.wire.link import Frames, Link, LinkBroken, frame
from kubelet_mp.wire.messages import PodRuntimeChanged, RelistPod


def sealed(uid="u1", size=0):
    message = PodRuntimeChanged(uid, PodRuntime(uid, error="x" * size)) if size else RelistPod(uid)
    return seal(message, room="pods", incarnation=1, seq=1, sent=0.0)


def fork(body):
    pid = os.fork()
    if pid == 0:
        try:
            body()
        finally:
            os._exit(0)
    return pid


def receive_all(end, count, seconds=10):
    got = []
    while len(got) < count:
        assert select.select([end.read_fd], [], [], seconds)[0], f"only {len(got)} of {count} came"
        got += end.receive()
    return got


def test_what_a_room_puts_arrives_in_order():
    link = Link()

    def room():
        end = link.child_side()
        for i in range(500):
            end.put(sealed(f"u{i}"))
        end.put(sealed("big", size=300_000))
        end.close()

    pid = fork(room)
    parent = link.parent_side()
    got = receive_all(parent, 501)
    os.waitpid(pid, 0)
    assert [e.key for e in got] == [f"u{i}" for i in range(500)] + ["big"]
    with pytest.raises(LinkBroken):
        parent.receive()


def test_a_batch_larger_than_the_pipe_is_written_as_the_room_reads():
    link = Link()

    def room():
        end = link.child_side()
        for envelope in end.get():
            end.put(envelope)
        end.close()

    pid = fork(room)
    parent = link.parent_side()
    parent.send([sealed(f"u{i}", size=100_000) for i in range(20)])
    assert parent.writing  # a pipe holds 64 KiB: nobody waited
    while parent.writing:
        assert select.select([], [parent.write_fd], [], 10)[1]
        parent.flush()
    assert [e.key for e in receive_all(parent, 20)] == [f"u{i}" for i in range(20)]
    os.waitpid(pid, 0)


def test_a_room_stopped_in_the_middle_of_a_frame_blocks_nobody():
    link = Link()

    def room():
        end = link.child_side()
        whole = frame(sealed("u1", size=1000))
        os.write(end._up._writer.fileno(), whole[:100])
        os.kill(os.getpid(), signal.SIGSTOP)

    pid = fork(room)
    parent = link.parent_side()
    os.waitid(os.P_PID, pid, os.WSTOPPED)
    assert parent.receive() == []
    assert parent.receive() == []
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    with pytest.raises(LinkBroken):
        parent.receive()


def test_a_dead_reader_is_told_apart_from_a_busy_one():
    link = Link()
    pid = fork(lambda: link.child_side())
    parent = link.parent_side()
    os.waitpid(pid, 0)
    with pytest.raises(LinkBroken):
        parent.send([sealed()])


def test_an_absurd_length_breaks_the_link_and_not_the_memory():
    with pytest.raises(LinkBroken):
        list(Frames().feed(struct.pack("!i", 2**31 - 1)))


@given(st.lists(st.binary(max_size=300), max_size=8), st.integers(1, 50))
def test_frames_come_out_whole_however_the_stream_is_cut(bodies, step):
    stream = b"".join(struct.pack("!i", len(body)) + body for body in bodies)
    frames, got = Frames(), []
    for start in range(0, len(stream), step):
        got += frames.feed(stream[start : start + step])
    assert got == bodies


def test_a_message_that_cannot_be_pickled_is_an_error_for_its_sender():
    with pytest.raises((TypeError, AttributeError, Exception)) as caught:
        seal(RelistPod(lambda: None), room="pods", incarnation=1, seq=1, sent=0.0)
    assert "pickle" in str(caught.value)
