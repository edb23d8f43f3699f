"""The room with a real HTTP server as the container and a fake link."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kubelet_mp.config import Settings
from kubelet_mp.model import clock
from kubelet_mp.model.runtime import Container, PodRuntime, Sandbox, State
from kubelet_mp.rooms.probes.room import ProbesRoom
from kubelet_mp.wire.messages import (
    Event,
    NodeFacts,
    PodAdmitted,
    PodRuntimeChanged,
    PodStopped,
    PodStopping,
    ProbeResult,
)
from tests.fakes.link import RoomRunner
from tests.support import wait_until


class Health(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked[self.path] = self.server.asked.get(self.path, 0) + 1
        if self.path == "/hang":
            self.server.release.wait(20)
        self.send_response(self.server.codes.get(self.path, 200))
        self.end_headers()

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Health)
    server.asked, server.codes, server.release = {}, {}, threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.release.set()
    server.shutdown()
    server.server_close()


def probe(server, path, **more):
    return {"httpGet": {"path": path, "port": server.server_port}, "periodSeconds": 1, **more}


def pod(**probes):
    return {"metadata": {"name": "web", "namespace": "default", "uid": "u1"},
            "spec": {"containers": [{"name": "c", "image": "i", **probes}]}}


def running(container_id="id1"):
    now = clock.wall_time_ns()
    container = Container(container_id, "c", 0, State.RUNNING, "s", "u1", now, started_at=now)
    return PodRuntimeChanged("u1", PodRuntime("u1", "web", "default",
                                              (Sandbox("s", "web", "default", "u1", 0, True, now, ("127.0.0.1",)),),
                                              (container,), ("127.0.0.1",)))


@pytest.fixture
def room(tmp_path):
    with RoomRunner(ProbesRoom, Settings(node_name="n", root_dir=str(tmp_path))) as runner:
        runner.give(NodeFacts(("127.0.0.1",), "n", 2, "cgroupfs", {}, {}))
        yield runner


def result(kind, verdict, container_id="id1"):
    return lambda m: (m.kind, m.result, m.container_id) == (kind, verdict, container_id)


def test_readiness_turns_true_and_false(server, room):
    room.give(PodAdmitted("u1", pod(readinessProbe=probe(server, "/r", failureThreshold=1))), running())
    room.wait_for(ProbeResult, result("readiness", "success"))
    server.codes["/r"] = 503
    failed = room.wait_for(ProbeResult, result("readiness", "failure"))
    assert failed.message == "HTTP probe failed with statuscode: 503"
    event = room.wait_for(Event, lambda m: m.reason == "Unhealthy")
    assert event.message == "Readiness probe failed: HTTP probe failed with statuscode: 503"
    assert event.field_path == "spec.containers{c}"


def test_liveness_waits_for_startup_and_a_hanging_probe_delays_no_other(server, room):
    server.codes["/s"] = 500
    room.give(PodAdmitted("u1", pod(startupProbe=probe(server, "/s", failureThreshold=9),
                                    livenessProbe=probe(server, "/hang", timeoutSeconds=30),
                                    readinessProbe=probe(server, "/r"))), running())
    room.wait_for(Event, lambda m: m.message.startswith("Startup probe failed"))
    assert not {"/hang", "/r"} & set(server.asked)
    server.codes["/s"] = 200
    room.wait_for(ProbeResult, result("startup", "success"))
    room.wait_for(ProbeResult, result("readiness", "success"))
    assert server.asked["/hang"] == 1


def test_of_a_pod_that_stops_only_readiness_is_probed(server, room):
    room.give(PodAdmitted("u1", pod(livenessProbe=probe(server, "/l"), readinessProbe=probe(server, "/r"))), running())
    room.wait_for(ProbeResult, result("liveness", "success"))
    room.give(PodStopping("u1"))
    wait_until(lambda: {key[2] for key in room.run_here(lambda: list(room.room._workers))} == {"readiness"}, 5,
               "liveness to end")


def test_a_new_instance_is_probed_afresh_and_a_stopped_pod_is_not(server, room):
    room.give(PodAdmitted("u1", pod(livenessProbe=probe(server, "/l"))), running())
    room.wait_for(ProbeResult, result("liveness", "success"))
    room.give(running("id2"))
    room.wait_for(ProbeResult, result("liveness", "success", "id2"))
    room.give(PodStopped("u1", None))
    wait_until(lambda: not room.run_here(lambda: dict(room.room._workers)), 5, "no workers")
