"""/containerLogs over TLS, with a runtime that answers gRPC: slices, errors, following, and its bound."""

from __future__ import annotations

import http.client
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from cri_api.v1 import api_pb2 as pb

from kubelet_mp.host.logrotate import rotate
from kubelet_mp.rooms.http.podlogs import MAX_STREAMS
from kubelet_mp.wire.messages import StatusSet
from tests.fakes.cri import FakeCRI
from tests.rooms.http.conftest import Server, status
from tests.support import wait_until

PATH = "/containerLogs/default/web/c"


class Container:
    """A running container c of pod default/web in the fake runtime, known to the room."""

    def __init__(self, server: Server, fake: FakeCRI, directory: Path) -> None:
        self.server, self.fake = server, fake
        fake.add_image("i")
        config = pb.PodSandboxConfig(metadata=pb.PodSandboxMetadata(name="web", namespace="default", uid="u1"),
                                     log_directory=str(directory))
        box = fake.RunPodSandbox(pb.RunPodSandboxRequest(config=config)).pod_sandbox_id
        container = pb.ContainerConfig(metadata=pb.ContainerMetadata(name="c"), image=pb.ImageSpec(image="i"),
                                       log_path="c/0.log")
        made = fake.CreateContainer(pb.CreateContainerRequest(pod_sandbox_id=box, config=container))
        self.id = made.container_id
        fake.StartContainer(pb.StartContainerRequest(container_id=self.id))
        self.log = directory / "c" / "0.log"
        server.give(status(id=f"containerd://{self.id}"), StatusSet(frozenset({"u1"})))

    def write(self, *lines: str) -> None:
        for line in lines:
            self.fake.log(self.id, line)

    def rotate(self, turn: int) -> None:
        def reopen() -> None:
            self.fake.ReopenContainerLog(pb.ReopenContainerLogRequest(container_id=self.id))

        rotate(str(self.log), 5, 1_704_164_645.0 + turn, reopen)

    def end(self) -> None:
        self.fake.exit_container(self.id)
        ended = {"terminated": {"exitCode": 0, "containerID": f"containerd://{self.id}"}}
        self.server.give(status(id=f"containerd://{self.id}", state=ended))


@pytest.fixture
def container(server: Server, fake_cri: FakeCRI, tmp_path: Path) -> Container:
    return Container(server, fake_cri, tmp_path / "logs")


def follow(server: Server, query: str = "follow=true") -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
    connection = server.connect()
    connection.request("GET", f"{PATH}?{query}")
    return connection, connection.getresponse()


@pytest.mark.parametrize(
    ("query", "code", "body"),
    [
        ("", 200, "a\nb\nc\n"),
        ("limitBytes=3", 200, "a\nb"),
        ("tailLines=1", 200, "c\n"),
        ("tailLines=0", 200, ""),
        ("sinceTime=2999-01-01T00:00:00Z", 200, ""),
        ("sinceSeconds=3600", 200, "a\nb\nc\n"),
        ("tailLines=-1", 422, '{"message": "Invalid request."}'),
        ("limitBytes=0", 422, '{"message": "Invalid request."}'),
        ("sinceSeconds=5&sinceTime=2999-01-01T00:00:00Z", 422, '{"message": "Invalid request."}'),
        ("tailLines=many", 400, '{"message": "Unable to decode query."}'),
        ("previous=true", 400, 'previous terminated container "c" in pod "web" not found'),
    ],
)
def test_slices_and_refusals(container: Container, query: str, code: int, body: str) -> None:
    container.write("a", "b", "c")
    answer = container.server.ask(f"{PATH}?{query}")
    assert (answer.status, answer.text) == (code, body)


def test_what_does_not_exist(container: Container) -> None:
    ask = container.server.ask
    assert ask("/containerLogs/default/nope/c").text == 'pod "nope" does not exist'
    assert ask("/containerLogs/default/web/nope").text == 'container "nope" not found in pod "web"'
    assert {ask(f"/containerLogs/default/{rest}").status for rest in ("nope/c", "web/nope")} == {404}
    assert ask("/containerLogs/default//c").text == '{"message": "Missing podID."}'


def test_a_log_that_is_gone_is_a_400_that_names_it(container: Container) -> None:
    os.unlink(container.log)
    answer = container.server.ask(PATH)
    assert answer.status == 400
    assert str(container.log) in answer.text


def test_the_previous_instance(container: Container) -> None:
    container.write("before")
    last = {"terminated": {"exitCode": 1, "containerID": f"containerd://{container.id}"}}
    container.server.give(status(id="containerd://other", last=last))
    assert container.server.ask(f"{PATH}?previous=true").text == "before\n"


def test_following_gives_lines_as_they_come_until_the_container_ends(container: Container) -> None:
    container.write("one")
    connection, response = follow(container.server)
    assert response.readline() == b"one\n"
    container.write("two", "three")
    assert [response.readline(), response.readline()] == [b"two\n", b"three\n"]
    container.write("last")
    container.end()
    assert response.read() == b"last\n"
    connection.close()


def test_the_headers_come_before_the_first_line(container: Container) -> None:
    connection, response = follow(container.server)
    assert response.status == 200
    container.write("now")
    assert response.readline() == b"now\n"
    connection.close()


def test_following_goes_on_across_rotations(container: Container) -> None:
    connection, response = follow(container.server)
    for turn in range(3):
        container.write(f"old {turn}")
        container.rotate(turn)
        container.write(f"new {turn}")
        assert [response.readline(), response.readline()] == [f"old {turn}\n".encode(), f"new {turn}\n".encode()]
    connection.close()


def test_a_container_is_taken_for_running_while_the_runtime_is_down(container: Container) -> None:
    connection, response = follow(container.server)
    container.write("before")
    assert response.readline() == b"before\n"
    container.server.give(status(id="containerd://other"))  # the status no longer vouches for it: ask the runtime
    container.fake.stop()
    container.write("meanwhile")
    assert response.readline() == b"meanwhile\n"
    container.fake.start()
    container.fake.exit_container(container.id)
    assert response.read() == b""
    connection.close()


def _connections(server: Server) -> Callable[[], int]:
    """How many connections the worker has in hand."""
    worker = server.runner.room._worker
    return lambda: worker.nr_conns


def test_a_client_that_leaves_frees_its_thread(container: Container) -> None:
    open_streams = _connections(container.server)
    connections = [follow(container.server) for _ in range(3)]
    assert open_streams() == 3
    for connection, response in connections:
        response.close()
        connection.close()
    wait_until(lambda: open_streams() == 0, 5, "the threads to be free")


def test_too_many_streams_are_refused_and_the_rest_still_works(container: Container) -> None:
    streams = [follow(container.server) for _ in range(MAX_STREAMS)]
    try:
        refused = container.server.ask(f"{PATH}?follow=true")
        assert (refused.status, refused.headers["Retry-After"]) == (429, "10")
        assert f"{MAX_STREAMS} log streams" in refused.text
        assert container.server.ask("/healthz", on="healthzPort").text == "ok"
        assert container.server.ask("/pods").status == 200
    finally:
        for connection, response in streams:
            response.close()
            connection.close()
    wait_until(lambda: container.server.ask(PATH).status == 200, 5, "a free place")


def test_the_end_of_the_room_ends_its_streams(container: Container) -> None:
    container.write("one")
    connection, response = follow(container.server)
    assert response.readline() == b"one\n"
    ended = threading.Event()

    def read() -> None:
        try:
            response.read()
        except (OSError, http.client.HTTPException):
            pass  # cut off, or ended in order
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    container.server.runner.room.stopping.set()
    container.server.runner.room.close()
    assert ended.wait(5)
    connection.close()


def test_pods_that_really_run(container: Container) -> None:
    import json

    def running() -> list[dict[str, object]]:
        return json.loads(container.server.ask("/runningpods/").body)["items"]

    assert [(p["metadata"]["name"], [c["name"] for c in p["spec"]["containers"]]) for p in running()] == [  # type: ignore[index]
        ("web", ["c"])
    ]
    container.end()
    assert running() == []
    container.fake.stop()
    assert container.server.ask("/runningpods/").status == 500
