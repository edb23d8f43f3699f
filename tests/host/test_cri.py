"""The CRI client against a real gRPC server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kubelet_mp.errors import (
    RuntimeCallError,
    RuntimeNotFound,
    RuntimeTimeout,
    RuntimeUnavailable,
    RuntimeUnimplemented,
    StartError,
)
from kubelet_mp.host.cri import NotCRI, Runtime
from kubelet_mp.model.runtime import POD_UID, ContainerEvent, State
from tests.fakes.cri import FakeCRI, PlainHTTP
from tests.fakes.cri import NotCRI as NoCRIServer
from tests.support import wait_until

IMAGE = "docker.io/library/busybox:latest"


@pytest.fixture
def fake() -> Iterator[FakeCRI]:
    with FakeCRI(images=(IMAGE,)) as server:
        yield server


@pytest.fixture
def runtime(fake: FakeCRI) -> Iterator[Runtime]:
    client = Runtime(fake.endpoint, timeout=5.0)
    yield client
    client.close()


def sandbox_config(uid: str = "u1", network: str = "POD") -> dict[str, Any]:
    return {
        "metadata": {"name": f"pod-{uid}", "namespace": "default", "uid": uid, "attempt": 2},
        "labels": {POD_UID: uid}, "annotations": {"a": "b"}, "hostname": "h",
        "dns_config": {"servers": ["10.0.0.10"], "options": ["ndots:5"]},
        "port_mappings": [{"protocol": "TCP", "container_port": 80, "host_port": 0, "host_ip": ""}],
        "linux": {"security_context": {"namespace_options": {"network": network, "pid": "CONTAINER"}}},
    }


def container_config(name: str = "web", uid: str = "u1") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "attempt": 1}, "image": {"image": IMAGE}, "labels": {POD_UID: uid},
        "command": ["sh"], "envs": [{"key": "A", "value": "1"}],
        "mounts": [{"host_path": "/h", "container_path": "/c", "propagation": "PROPAGATION_HOST_TO_CONTAINER"}],
        "linux": {"resources": {"cpu_shares": 102, "unified": {"memory.high": "max"}},
                  "security_context": {"run_as_user": {"value": 5}}},
    }


def run_one(runtime: Runtime, uid: str = "u1") -> tuple[str, str]:
    box = runtime.run_sandbox(sandbox_config(uid), "")
    one = runtime.create_container(box, container_config(uid=uid), sandbox_config(uid))
    runtime.start_container(one)
    return box, one


def test_a_pod_from_start_to_removal(fake: FakeCRI, runtime: Runtime) -> None:
    box, one = run_one(runtime)
    sandbox, container = runtime.sandbox_status(box), runtime.container_status(one, box)
    assert (sandbox.uid, sandbox.attempt, sandbox.ready, len(sandbox.ips)) == ("u1", 2, True, 1)
    assert (container.state, container.pod_uid, container.sandbox_id) == (State.RUNNING, "u1", box)
    assert container.resources == {"cpu_shares": 102}
    assert container.mounts[0].propagation == "rslave"
    assert fake.requests("CreateContainer")[0].config.linux.security_context.run_as_user.value == 5
    runtime.stop_container(one, 3)
    assert runtime.container_status(one).exit_code == 143
    runtime.stop_sandbox(box)
    assert not runtime.sandbox_status(box).ready
    runtime.remove_container(one)
    runtime.remove_sandbox(box)
    assert runtime.list_sandboxes() == [] and runtime.list_containers() == []


def test_lists_of_one_pod_and_of_all(runtime: Runtime) -> None:
    box, one = run_one(runtime, "u1")
    run_one(runtime, "u2")
    assert [b.id for b in runtime.list_sandboxes("u1")] == [box]
    assert [(c.id, c.uid, c.sandbox_id, c.state) for c in runtime.list_containers("u1")] == [
        (one, "u1", box, State.RUNNING)]
    assert {b.uid for b in runtime.list_sandboxes()} == {"u1", "u2"}


def test_the_network_of_the_host_has_no_ip(runtime: Runtime) -> None:
    box = runtime.sandbox_status(runtime.run_sandbox(sandbox_config(network="NODE")))
    assert box.host_network and box.ips == ()


def test_what_is_gone_is_stopped_and_removed_already(runtime: Runtime) -> None:
    runtime.stop_container("nope", 1)
    runtime.remove_container("nope")
    runtime.stop_sandbox("nope")
    runtime.remove_sandbox("nope")
    with pytest.raises(RuntimeNotFound):
        runtime.container_status("nope")


def test_identity_and_state(fake: FakeCRI, runtime: Runtime) -> None:
    assert runtime.version().name == "containerd"
    state = runtime.status()
    assert state.ready and state.network_ready and state.version == "v2.1.4"
    fake.set_ready(network=False, reason="NetworkPluginNotReady", message="cni plugin not initialized")
    state = runtime.status()
    assert state.ready and not state.network_ready
    assert state.network_message == (
        "NetworkReady=false reason:NetworkPluginNotReady message:cni plugin not initialized")


def test_cgroup_driver(runtime: Runtime) -> None:
    assert runtime.runtime_config() == "cgroupfs"
    with FakeCRI(events=False) as old, FakeCRI.crio() as crio:
        assert Runtime(old.endpoint).runtime_config() is None
        assert Runtime(crio.endpoint).runtime_config() == "systemd"


def test_bare_paths_are_endpoints(fake: FakeCRI) -> None:
    assert Runtime(fake.path).version().version == "v2.1.4"


@pytest.mark.parametrize("server", [NoCRIServer, PlainHTTP])
def test_an_endpoint_that_is_no_cri(server: Any) -> None:
    with server() as other, pytest.raises(NotCRI, match="validate CRI v1 runtime API for endpoint") as caught:
        Runtime(other.endpoint, timeout=5.0).version()
    assert isinstance(caught.value, StartError) and other.endpoint in str(caught.value)


def test_an_endpoint_that_is_a_file(tmp_path: Any) -> None:
    (tmp_path / "x").write_text("no socket")
    with pytest.raises(NotCRI, match="not a socket"):
        Runtime(str(tmp_path / "x")).version()


def test_no_runtime_there(tmp_path: Any) -> None:
    with pytest.raises(RuntimeUnavailable, match="start the container runtime") as caught:
        Runtime(f"unix://{tmp_path}/none.sock").version()
    assert (caught.value.method, caught.value.code) == ("Version", "UNAVAILABLE")


def test_a_wrong_or_incomplete_version_answer(fake: FakeCRI, runtime: Runtime) -> None:
    fake.name = ""
    with pytest.raises(RuntimeCallError, match="lacks runtime_name"):
        runtime.version()


def test_errors_have_gos_form_and_the_bare_words(fake: FakeCRI, runtime: Runtime) -> None:
    fake.fail("RunPodSandbox", "FAILED_PRECONDITION", "no network")
    with pytest.raises(RuntimeCallError) as caught:
        runtime.run_sandbox(sandbox_config())
    assert caught.value.message == "rpc error: code = FailedPrecondition desc = no network"
    assert caught.value.detail == "no network"


def test_a_config_with_an_unknown_field_is_refused_before_the_call(fake: FakeCRI, runtime: Runtime) -> None:
    with pytest.raises(RuntimeCallError, match=r"PodSandboxConfig cannot be made.*nonsense"):
        runtime.run_sandbox({"nonsense": 1})
    assert fake.count("RunPodSandbox") == 0


def test_deadlines(fake: FakeCRI) -> None:
    runtime = Runtime(fake.endpoint, timeout=0.1)
    hang = fake.hang("ListContainers")
    with pytest.raises(RuntimeTimeout):
        runtime.list_containers()
    hang.release()
    fake.delay("RunPodSandbox", 0.15, times=1)  # within 2·T
    runtime.run_sandbox(sandbox_config())


def test_exec_sync(fake: FakeCRI, runtime: Runtime) -> None:
    _, one = run_one(runtime)
    fake.on_exec = lambda name, cmd: ("out", "err", 3)
    assert runtime.exec_sync(one, ["sh", "-c", "x"], 1) == (b"out", b"err", 3)


def test_exec_sync_past_its_time(fake: FakeCRI, runtime: Runtime) -> None:
    _, one = run_one(runtime)

    def late(name: str, cmd: list[str]) -> tuple[str, str, int]:
        raise TimeoutError

    fake.on_exec = late
    with pytest.raises(RuntimeTimeout) as caught:
        runtime.exec_sync(one, ["sleep", "9"], 90)
    assert caught.value.message == 'command timed out: "sleep 9" timed out after 1m30s'


def test_streaming_urls(runtime: Runtime) -> None:
    box, one = run_one(runtime)
    assert "/exec/" in runtime.exec(one, ["sh"], tty=True, stdin=True, stdout=True, stderr=False)
    assert "/attach/" in runtime.attach(one, tty=False, stdin=False, stdout=True, stderr=True)
    assert "/portforward/" in runtime.port_forward(box, [80])


def test_images(fake: FakeCRI, runtime: Runtime) -> None:
    found = runtime.image_status("busybox")
    assert found is not None and found.tags == (IMAGE,) and found.uid == 0
    assert runtime.image_status("nope") is None
    fake.add_to_registry("web:1", uid=None, username="www")
    ref = runtime.pull_image("web:1", auth={"username": "u", "password": "p"}, annotations={"k": "v"})
    pulled = runtime.image_status(ref)
    assert pulled is not None and (pulled.uid, pulled.username) == (None, "www")
    assert fake.requests("PullImage")[0].auth.username == "u"
    assert len(runtime.list_images()) == 2
    runtime.remove_image(ref)
    assert len(runtime.list_images()) == 1
    assert runtime.image_fs_info()[0][0].used_bytes == fake.image_bytes


def test_image_ids_of_crio_are_bare() -> None:
    with FakeCRI.crio(images=(IMAGE,)) as crio:
        assert ":" not in Runtime(crio.endpoint).list_images()[0].id


def test_pull_errors(fake: FakeCRI, runtime: Runtime) -> None:
    with pytest.raises(RuntimeNotFound, match=r"rpc error: code = NotFound desc = failed to pull and unpack"):
        runtime.pull_image("nope")
    fake.fail("PullImage", "UNKNOWN", "RegistryUnavailable: try later")
    with pytest.raises(RuntimeCallError, match=r"^RegistryUnavailable: try later$"):
        runtime.pull_image("nope")


def test_a_pull_is_cancelled(fake: FakeCRI, runtime: Runtime) -> None:
    hang, cancel, caught = fake.hang("PullImage"), threading.Event(), []

    def pull() -> None:
        try:
            runtime.pull_image(IMAGE, cancel=cancel)
        except RuntimeCallError as error:
            caught.append(error)

    thread = threading.Thread(target=pull)
    thread.start()
    hang.reached()
    cancel.set()
    thread.join(5)
    assert caught[0].code == "CANCELLED"


def test_the_image_service_may_live_elsewhere(fake: FakeCRI) -> None:
    with FakeCRI() as images:
        runtime = Runtime(fake.endpoint, image_endpoint=images.endpoint)
        assert runtime.list_images() == []
        assert runtime.version() and images.count("Version") == 0


def test_events(fake: FakeCRI, runtime: Runtime) -> None:
    stream, seen = runtime.container_events(), []
    wait_until(lambda: fake.streams)
    box, one = run_one(runtime)
    fake.exit_container("web", 1)
    for _ in range(5):
        seen.append(next(stream))
    assert seen == [ContainerEvent(box, "created", "u1"), ContainerEvent(box, "started", "u1"),
                    ContainerEvent(one, "created", "u1"), ContainerEvent(one, "started", "u1"),
                    ContainerEvent(one, "stopped", "u1")]
    fake.break_streams()
    with pytest.raises(RuntimeUnavailable):
        next(stream)


def test_events_may_be_missing() -> None:
    with FakeCRI(events=False) as old, pytest.raises(RuntimeUnimplemented):
        next(Runtime(old.endpoint).container_events())


def test_a_waiting_event_stream_can_be_cancelled(fake: FakeCRI, runtime: Runtime) -> None:
    stream, caught = runtime.container_events(), []

    def read() -> None:
        try:
            next(stream)
        except RuntimeCallError as error:
            caught.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    wait_until(lambda: fake.streams)
    stream.cancel()
    thread.join(5)
    assert caught[0].code == "CANCELLED"


def test_the_runtime_restarts(fake: FakeCRI, runtime: Runtime) -> None:
    run_one(runtime)
    fake.stop()
    with pytest.raises(RuntimeUnavailable):
        runtime.status()
    fake.version = "v2.2.0"
    fake.start()

    def back() -> bool:
        try:
            return runtime.status().version == "v2.2.0"
        except RuntimeUnavailable:
            return False

    wait_until(back, 8)
    assert len(runtime.list_containers()) == 1


def test_every_call_is_observed(fake: FakeCRI) -> None:
    seen: list[tuple[str, bool]] = []
    runtime = Runtime(fake.endpoint, observe=lambda name, seconds, ok: seen.append((name, ok)))
    runtime.list_sandboxes()
    fake.fail("ListContainers", "INTERNAL")
    with pytest.raises(RuntimeCallError):
        runtime.list_containers()
    assert seen == [("list_podsandbox", True), ("list_containers", False)]


def test_stats(runtime: Runtime) -> None:
    _, one = run_one(runtime)
    use = runtime.list_container_stats()[0]
    assert (use.id, use.uid, use.cpu, use.working_set, use.rss) == (one, "u1", 1_000_000, 1 << 20, None)


def test_other_orders_reach_the_runtime(fake: FakeCRI, runtime: Runtime) -> None:
    box, one = run_one(runtime)
    runtime.update_container(one, {"cpu_quota": 5000})
    runtime.update_sandbox(box, {}, {"cpu_shares": 2})
    runtime.update_runtime_config("10.1.0.0/24")
    runtime.reopen_log(one)
    assert runtime.container_status(one).resources["cpu_quota"] == 5000
    assert fake.requests("UpdatePodSandboxResources")[0].resources.cpu_shares == 2
    assert fake.pod_cidr == "10.1.0.0/24"
    assert fake.count("ReopenContainerLog") == 1
