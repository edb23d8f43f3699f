"""The whole room with real files, real inotify and a real HTTP server."""

import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kubelet_mp import log
from kubelet_mp.config import Settings
from kubelet_mp.config.model import KubeletConfiguration
from kubelet_mp.rooms.sources.room import SourcesRoom, configured
from kubelet_mp.rooms.sources.source import Source
from kubelet_mp.wire.messages import DesiredPod, DesiredSet, Event, SourceProblem
from tests.fakes.link import RoomRunner
from tests.rooms.sources.test_file import manifest
from tests.support import wait_until


def settings(**kubelet):
    return Settings(node_name="node", kubelet=KubeletConfiguration(**kubelet))


class Watched:
    """A running room over a manifest directory, and what it says is desired."""

    def __init__(self, place, seconds=20.0, **more):
        self.place = place
        self.runner = RoomRunner(
            SourcesRoom, settings(static_pod_path=str(place), file_check_frequency=f"{seconds}s", **more))

    def names(self):
        """Folded from the messages, as another room does it."""
        pods = {}
        for message in self.runner.link.of(DesiredPod, to=""):
            pods[message.uid] = message.pod
        return sorted(pod["metadata"]["name"] for pod in pods.values() if pod)

    def args(self, name):
        found = None
        for message in self.runner.link.of(DesiredPod, to=""):
            if message.pod and message.pod["metadata"]["name"] == f"{name}-node":
                found = message.pod["spec"]["containers"][0].get("args")
        return found

    def wait(self, *names, seconds=3.0):
        wait_until(lambda: self.names() == [f"{name}-node" for name in names], seconds, f"exactly the pods {names}")

    def write(self, name, text):
        (self.place / name).write_text(text)


@pytest.fixture
def watched(tmp_path):
    watched = Watched(tmp_path)
    with watched.runner:
        watched.runner.wait_for(DesiredSet, lambda m: m.ready)
        yield watched


def test_a_change_is_seen_at_once(watched):
    began = time.monotonic()
    watched.write("a", manifest("a"))
    watched.wait("a")
    watched.write("a", manifest("a", "edited"))
    wait_until(lambda: watched.args("a") == ["edited"])
    (watched.place / "a").unlink()
    watched.wait()
    assert time.monotonic() - began < 5  # far below the 20 s between listings


def test_a_burst_of_files_is_read_in_few_goes(watched):
    for number in range(110):
        watched.write(f"p{number:03}", manifest(f"p{number:03}"))
    watched.wait(*(f"p{number:03}" for number in range(110)), seconds=10)
    assert len(watched.runner.link.of(DesiredSet)) < 30


def test_an_edit_removes_the_old_uid_before_the_new_one_comes(watched):
    watched.write("a", manifest("a", "1"))
    watched.wait("a")
    watched.runner.link.clear()
    watched.write("a", manifest("a", "2"))
    told = watched.runner.wait_for(DesiredSet)
    gone, new = watched.runner.link.of(DesiredPod)
    assert gone.pod is None and new.pod is not None
    assert told == DesiredSet(frozenset([new.uid]), True)


def test_moving_a_file_away_and_back_is_not_seen_as_a_removal(watched):
    watched.write("a", manifest("a"))
    watched.wait("a")
    watched.runner.link.clear()
    (watched.place / "a").rename(watched.place / ".a")
    (watched.place / ".a").rename(watched.place / "a")
    watched.write("b", manifest("b"))  # something to wait for
    watched.wait("b")
    assert [message.pod is None for message in watched.runner.link.of(DesiredPod)] == [False]


def test_a_backup_copy_beside_the_manifest(watched, capsys):
    """The report behind it: kubernetes/kubernetes#136962."""
    log.setup()
    watched.write("twin.yaml", manifest("twin", "CURRENT"))
    watched.wait("twin")
    watched.write(".twin.yaml.swp", manifest("twin", "SWAP"))
    (watched.place / "archive").mkdir()
    watched.write("archive/twin.yaml", manifest("twin", "ARCH"))
    watched.write("twin.yaml.bak", manifest("twin", "OLD"))
    problem = watched.runner.wait_for(SourceProblem)
    origin, other = str(watched.place / "twin.yaml.bak"), str(watched.place / "twin.yaml")
    assert (problem.origin, problem.other, problem.pod) == (origin, other, "default/twin-node")
    event = watched.runner.wait_for(Event)
    assert (event.reason, event.name, event.uid) == (
        "FailedValidation", "twin-node", watched.runner.link.of(DesiredPod)[0].uid)
    (watched.place / "twin.yaml.bak").unlink()
    watched.runner.wait_for(SourceProblem, lambda m: m.origin == origin and not m.problem)
    assert len(watched.runner.link.of(DesiredPod)) == 1 and watched.args("twin") == ["CURRENT"]
    lines = [line for line in capsys.readouterr().err.splitlines() if "cannot process manifest" in line]
    assert len(lines) == 1 and origin in lines[0] and other in lines[0]


def test_a_half_written_manifest(watched, capsys):
    """The reports behind it: kontena/pharos-cluster#252, kubernetes/kubernetes#40331."""
    log.setup()
    watched.write("calm.yaml", manifest("calm"))
    watched.write("half.yaml", manifest("half", "V1"))
    watched.wait("calm", "half")
    text = manifest("half", "V2")
    watched.write("half.yaml", text[:70])
    problem = watched.runner.wait_for(SourceProblem)
    assert problem.origin.endswith("/half.yaml")
    watched.wait("calm")
    with open(watched.place / "half.yaml", "a") as file:
        file.write(text[70:])
    watched.wait("calm", "half")
    assert watched.args("half") == ["V2"]
    watched.runner.wait_for(SourceProblem, lambda m: not m.problem)
    calm = [m for m in watched.runner.link.of(DesiredPod) if m.pod and m.pod["metadata"]["name"] == "calm-node"]
    assert len(calm) == 1
    lines = [line for line in capsys.readouterr().err.splitlines() if "cannot process manifest" in line]
    assert len(lines) == 1 and "half.yaml" in lines[0]


def test_a_room_that_starts_is_told_everything(watched):
    watched.write("a", manifest("a"))
    watched.write("bad", "x")
    watched.wait("a")
    watched.runner.wait_for(SourceProblem)
    watched.runner.link.clear()
    watched.runner.come_up("pods")
    wait_until(lambda: len(watched.runner.link.sent) == 3)
    assert {to for to, _ in watched.runner.link.sent} == {"pods"}
    pod, whole, problem = watched.runner.link.messages
    assert pod.pod["metadata"]["name"] == "a-node" and whole == DesiredSet(frozenset([pod.uid]), True)
    assert problem.origin.endswith("/bad")


def test_the_directory_goes_and_comes_back(tmp_path):
    place = tmp_path / "manifests"
    watched = Watched(place)
    with watched.runner as runner:
        assert "does not exist" in runner.wait_for(SourceProblem).problem
        assert runner.wait_for(DesiredSet).ready
        os.mkdir(place)
        watched.write("a", manifest("a"))
        watched.wait("a")
        place.rename(tmp_path / "away")
        watched.wait()
        (tmp_path / "away").rename(place)
        watched.wait("a")


def test_a_single_file_that_an_editor_replaces(tmp_path):
    path = tmp_path / "pod.yaml"
    path.write_text(manifest("a", "1"))
    watched = Watched(path)
    with watched.runner:
        watched.wait("a")
        (tmp_path / "new").write_text(manifest("a", "2"))
        os.replace(tmp_path / "new", path)
        wait_until(lambda: watched.args("a") == ["2"])


def test_listing_finds_what_no_event_told(tmp_path):
    target = tmp_path / "real"
    target.mkdir()
    (target / "a").write_text(manifest("a", "1"))
    place = tmp_path / "manifests"
    place.mkdir()
    (place / "a").symlink_to(target / "a")  # a change behind a link is no event in the directory
    watched = Watched(place, seconds=0.2)
    with watched.runner:
        watched.wait("a")
        (target / "a").write_text(manifest("a", "2"))
        wait_until(lambda: watched.args("a") == ["2"])


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(self.server.value).encode())

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.value = {"apiVersion": "v1", "kind": "PodList", "items": []}
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_file_and_url_together(tmp_path, server):
    item = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    watched = Watched(tmp_path, static_pod_url=url, http_check_frequency="100ms")
    with watched.runner as runner:
        runner.wait_for(DesiredSet, lambda m: m.ready)
        server.value["items"] = [item]
        watched.wait("web")
        watched.write("web", manifest("web"))
        assert runner.wait_for(SourceProblem, lambda m: m.problem).other == url
        server.value["items"] = []
        wait_until(lambda: watched.args("web") == ["x"])


def test_what_must_have_spoken_before_anything_is_cleaned_up():
    assert configured(settings()) == ()
    assert configured(settings(static_pod_path="/x", static_pod_url="http://x")) == ("file", "http")
    assert configured(Settings(node_name="n", kubeconfig="/k")) == ("api",)
    with RoomRunner(SourcesRoom, settings()) as room:
        assert room.wait_for(DesiredSet) == DesiredSet(frozenset(), True)


class FailingRoom(SourcesRoom):
    def _sources(self):
        class Failing(Source):
            name, period = "file", 20.0

            def read(self):
                raise RuntimeError("a bug")

            def close(self):
                """Nothing is held."""

        return [Failing()]


def test_a_fault_on_the_reading_thread_ends_the_room():
    runner = RoomRunner(FailingRoom, settings(static_pod_path="/x"))
    with pytest.raises((RuntimeError, AssertionError), match="a bug"), runner:
        wait_until(lambda: runner.failure() is not None)
