"""The pleg room on a fake runtime behind a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from kubelet_mp.errors import StartError
from kubelet_mp.host.cri import Runtime
from kubelet_mp.model.runtime import CONTAINER_NAME, POD_UID, PodRuntime, State
from kubelet_mp.rooms.pleg.health import Pace
from kubelet_mp.rooms.pleg.room import PlegRoom
from kubelet_mp.wire.messages import PodRuntimeChanged, RelistDone, RelistPod, RuntimeStateChanged
from tests.fakes.cri import FakeCRI, NotCRI
from tests.fakes.link import RoomRunner
from tests.support import FakeClock, wait_until

IMAGE = "docker.io/library/busybox:latest"
QUICK = Pace(relist=0.03, relist_events=0.03, status=0.05, retry=0.02, settle=0.05, patience=0.1, health=0.05,
             stream_retry=0.02, stream_retry_max=0.05)
RARE = Pace(relist=600.0, relist_events=600.0, status=0.05, settle=0.01)  # nothing comes of listings


@pytest.fixture
def fake() -> Iterator[FakeCRI]:
    with FakeCRI(images=(IMAGE,)) as server:
        yield server


@contextmanager
def pleg(fake: Any, pace: Pace = QUICK, timeout: float = 5.0, **extra: Any) -> Iterator[RoomRunner]:
    with RoomRunner(PlegRoom, runtime=Runtime(fake.endpoint, timeout=timeout), pace=pace, **extra) as room:
        yield room


class Driver:
    """A pod made straight over CRI."""

    def __init__(self, fake: FakeCRI, uid: str = "u1", names: tuple[str, ...] = ("web",)) -> None:
        runtime = Runtime(fake.endpoint)
        config = {"metadata": {"name": f"pod-{uid}", "namespace": "ns", "uid": uid}, "labels": {POD_UID: uid},
                  "linux": {"security_context": {"namespace_options": {"network": "POD"}}}}
        self.runtime, self.uid, self.containers = runtime, uid, []
        self.sandbox = runtime.run_sandbox(config)
        for name in names:
            own = {"metadata": {"name": name}, "image": {"image": IMAGE},
                   "labels": {POD_UID: uid, CONTAINER_NAME: name}}
            self.containers.append(runtime.create_container(self.sandbox, own, config))
            runtime.start_container(self.containers[-1])

    def remove(self) -> None:
        self.runtime.stop_sandbox(self.sandbox)
        self.runtime.remove_sandbox(self.sandbox)
        self.runtime.close()


def states(runtime: PodRuntime) -> dict[str, State]:
    return {one.name: one.state for one in runtime.containers}


def wait_states(room: RoomRunner, uid: str = "u1", **wanted: State) -> PodRuntime:
    def match(message: PodRuntimeChanged) -> bool:
        return message.uid == uid and not message.runtime.error and states(message.runtime) == wanted

    return room.wait_for(PodRuntimeChanged, match).runtime


def wait_events(room: RoomRunner) -> None:
    """Until the event stream is healthy and the listing that this causes is done."""
    room.wait_for(RuntimeStateChanged, lambda m: m.state.events)
    wait_until(lambda: not room.run_here(lambda: room.room._listing), what="the listing to end")


def test_what_runs_at_the_start_is_told(fake: FakeCRI) -> None:
    Driver(fake, "u1")
    Driver(fake, "u2", ("a", "b"))
    with pleg(fake) as room:
        runtime = wait_states(room, web=State.RUNNING)
        wait_states(room, "u2", a=State.RUNNING, b=State.RUNNING)
        done = room.wait_for(RelistDone)
        kinds = [type(message) for message in room.link.messages if not isinstance(message, RuntimeStateChanged)]
    assert (runtime.name, runtime.namespace, len(runtime.ips)) == ("pod-u1", "ns", 1)
    assert done.uids == {"u1", "u2"} and done.healthy and done.began >= runtime.observed
    assert kinds[:3] == [PodRuntimeChanged, PodRuntimeChanged, RelistDone]


def test_events_are_told_without_any_listing(fake: FakeCRI) -> None:
    with pleg(fake, RARE) as room:
        wait_events(room)
        pod = Driver(fake)
        wait_states(room, web=State.RUNNING)
        fake.exit_container("web", 3)
        died = wait_states(room, web=State.EXITED)
        pod.remove()
        gone = room.wait_for(PodRuntimeChanged, lambda m: m.runtime.empty)
    assert (died.containers[0].exit_code, died.containers[0].reason) == (3, "Error")
    assert gone.uid == "u1" and died.ips and gone.runtime.observed > died.observed


def test_listings_tell_where_there_are_no_events() -> None:
    with FakeCRI(events=False, images=(IMAGE,)) as fake, pleg(fake) as room:
        room.wait_for(RelistDone)
        pod = Driver(fake)
        wait_states(room, web=State.RUNNING)
        fake.exit_container("web")
        died = wait_states(room, web=State.EXITED)
        pod.remove()
        room.wait_for(PodRuntimeChanged, lambda m: m.runtime.empty)
        assert not room.wait_for(RuntimeStateChanged, lambda m: m.state.ready).state.events
        assert room.wait_for(RelistDone, lambda m: not m.uids)
    assert died.ips
    assert fake.count("GetContainerEvents") == 1  # Unimplemented is final


def test_missed_events_are_healed_by_listings(fake: FakeCRI) -> None:
    with pleg(fake) as room:
        wait_events(room)
        fake.drop_events = True
        Driver(fake)
        wait_states(room, web=State.RUNNING)
        fake.vanish("web")
        wait_states(room)


def test_an_order_is_answered_even_if_nothing_changed(fake: FakeCRI) -> None:
    Driver(fake)
    with pleg(fake, RARE) as room:
        first = wait_states(room, web=State.RUNNING)
        wait_events(room)
        room.link.clear()
        room.give(RelistPod("u1"), RelistPod("nobody"))
        again = wait_states(room, web=State.RUNNING)
        nobody = room.wait_for(PodRuntimeChanged, lambda m: m.uid == "nobody").runtime
    assert again.observed > first.observed and again.containers == first.containers
    assert nobody.empty and not nobody.error


def test_a_pod_that_hangs_stops_only_itself(fake: FakeCRI) -> None:
    stuck = Driver(fake, "u1").containers[0]
    Driver(fake, "u2")
    hang = fake.hang("ContainerStatus", when=lambda request: request.container_id == stuck)
    with pleg(fake) as room:
        hang.reached()
        wait_states(room, "u2", web=State.RUNNING)
        late = room.wait_for(PodRuntimeChanged, lambda m: m.uid == "u1" and bool(m.runtime.error)).runtime
        assert room.wait_for(RelistDone).uids == {"u1", "u2"}
        room.link.clear()
        room.give(RelistPod("u2"))
        wait_states(room, "u2", web=State.RUNNING)
        fake.heal("ContainerStatus")
        hang.release()
        wait_states(room, "u1", web=State.RUNNING)
    assert late.error == "the runtime has not told the pod's state within 100ms"


def test_a_failing_status_is_told_and_tried_again(fake: FakeCRI) -> None:
    Driver(fake)
    fake.fail("ContainerStatus", "INTERNAL", "boom", times=2)
    with pleg(fake) as room:
        wait_states(room, web=State.RUNNING)
        errors = [m.runtime.error for m in room.link.of(PodRuntimeChanged) if m.runtime.error]
    assert errors == ["ContainerStatus: rpc error: code = Internal desc = boom"]


def test_a_look_that_failed_is_repeated_soon_although_events_make_listings_rare(fake: FakeCRI) -> None:
    with pleg(fake, replace(RARE, relist=0.03)) as room:
        wait_events(room)
        Driver(fake)
        wait_states(room, web=State.RUNNING)
        fake.fail("ContainerStatus", "INTERNAL", "boom", times=1)
        fake.exit_container("web")  # the one event: no other follows
        room.wait_for(PodRuntimeChanged, lambda m: "boom" in m.runtime.error)
        wait_states(room, web=State.EXITED)


def test_the_runtime_restarts(fake: FakeCRI) -> None:
    Driver(fake)
    with pleg(fake) as room:
        wait_states(room, web=State.RUNNING)
        wait_events(room)
        fake.stop()
        room.wait_for(RuntimeStateChanged, lambda m: not m.state.events)
        assert room.link.of(RuntimeStateChanged)[-1].state.ready  # a restart is no outage yet
        fake.exit_container("web", 1)
        fake.start()
        wait_states(room, web=State.EXITED)
        room.wait_for(RuntimeStateChanged, lambda m: m.state.events, 8.0)


def test_the_runtime_comes_up_late(fake: FakeCRI) -> None:
    Driver(fake)
    fake.stop()
    with pleg(fake) as room:
        down = room.wait_for(RuntimeStateChanged)
        assert not down.state.ready and "connect" in down.state.message
        assert not room.link.of(RelistDone)
        fake.start()
        wait_states(room, web=State.RUNNING)
        assert room.wait_for(RuntimeStateChanged, lambda m: m.state.ready).state.name == "containerd"


def test_an_endpoint_that_is_no_cri_ends_the_room() -> None:
    with NotCRI() as other, pytest.raises(StartError, match="validate CRI v1 runtime API"), pleg(other) as room:
        wait_until(room.ended)


def test_state_changes_are_told_once(fake: FakeCRI) -> None:
    with pleg(fake, RARE) as room:
        wait_events(room)
        room.link.clear()
        fake.set_ready(network=False, reason="NetworkPluginNotReady", message="no cni")
        state = room.wait_for(RuntimeStateChanged).state
        asked = fake.count("Status")
        wait_until(lambda: fake.count("Status") > asked + 2)
        assert len(room.link.of(RuntimeStateChanged)) == 1
    assert state.ready and not state.network_ready and "no cni" in state.network_message


def test_pleg_is_unhealthy_after_three_minutes_without_a_listing(fake: FakeCRI) -> None:
    clock = FakeClock()
    with pleg(fake, time=clock) as room:
        room.wait_for(RelistDone, lambda m: m.healthy)
        fake.fail("ListContainers", "UNAVAILABLE", "busy", times=None)
        wait_until(lambda: fake.count("ListContainers") > 3)
        clock.advance(185)
        done = room.wait_for(RelistDone, lambda m: not m.healthy)
        assert done.problem == "PLEG is not healthy: pleg was last seen active 3m5s ago; threshold is 3m0s"
        fake.heal("ListContainers")
        room.wait_for(RelistDone, lambda m: m.healthy and m.began > done.began)


def test_a_status_that_hangs_is_an_outage_after_half_a_minute(fake: FakeCRI) -> None:
    class Frozen(FakeClock):
        """Not later than the status that was stamped with the real clock, until it is moved."""

    clock = Frozen(monotonic=0.0)
    with pleg(fake, time=clock) as room:
        good = room.wait_for(RuntimeStateChanged, lambda m: m.state.ready).state
        fake.hang("Status").reached()
        clock.advance(good.observed + 60)
        down = room.wait_for(RuntimeStateChanged, lambda m: not m.state.ready).state
    assert down.message == "container runtime is down: Status has not been answered"


def test_a_room_that_starts_gets_everything_again(fake: FakeCRI) -> None:
    Driver(fake)
    with pleg(fake, RARE) as room:
        wait_states(room, web=State.RUNNING)
        wait_events(room)
        room.come_up("pods")
        wait_until(lambda: room.link.of(RuntimeStateChanged, to="pods"))
        assert [m.uid for m in room.link.of(PodRuntimeChanged, to="pods")] == ["u1"]
        assert room.link.of(RelistDone, to="pods")[0].uids == {"u1"}


def test_crio_without_and_with_events() -> None:
    for events in (False, True):
        with FakeCRI.crio(events=events, images=(IMAGE,)) as fake, pleg(fake) as room:
            if events:
                wait_events(room)
            Driver(fake)
            runtime = wait_states(room, web=State.RUNNING)
            assert ":" not in runtime.containers[0].image_id
            assert room.wait_for(RuntimeStateChanged, lambda m: m.state.ready).state.name == "cri-o"


def test_idle_costs_two_lists_and_no_status(fake: FakeCRI) -> None:
    for number in range(5):
        Driver(fake, f"u{number}")
    with pleg(fake) as room:
        wait_events(room)
        fake.clear_calls()
        wait_until(lambda: fake.count("ListContainers") > 3)
        assert fake.count("ContainerStatus") == fake.count("PodSandboxStatus") == 0


def test_an_answered_order_makes_its_event_no_news(fake: FakeCRI) -> None:
    """Start, order, event: one look with one status call."""
    Driver(fake)
    with pleg(fake, RARE) as room:
        wait_events(room)
        fake.clear_calls()
        fake.exit_container("web")
        room.give(RelistPod("u1"))
        wait_states(room, web=State.EXITED)
        wait_until(lambda: not room.run_here(lambda: room.room._looks._running))
        assert fake.count("ContainerStatus") == 1


def test_metrics(fake: FakeCRI) -> None:
    with RoomRunner(PlegRoom, runtime=None, pace=QUICK, settings=settings(fake)) as room:
        room.wait_for(RelistDone)
        room.wait_for(RuntimeStateChanged, lambda m: m.state.ready)
        text = room.run_here(room.room.metrics_text)
    assert 'kubelet_runtime_operations_total{operation_type="list_podsandbox"}' in text
    assert "kubelet_pleg_relist_duration_seconds_count" in text
    assert "kubelet_pleg_last_seen_seconds" in text


def settings(fake: FakeCRI) -> Any:
    from kubelet_mp.config import KubeletConfiguration, Settings

    return Settings(node_name="n", kubelet=KubeletConfiguration(container_runtime_endpoint=fake.endpoint))


@pytest.mark.parametrize("driver", ["CGROUPFS", "SYSTEMD", None])
def test_the_runtime_is_asked_once_for_its_cgroup_driver_and_may_not_know(driver: str | None) -> None:
    with FakeCRI(cgroup_driver=driver) as cri, pleg(cri) as room:
        state = room.wait_for(RuntimeStateChanged, lambda m: m.state.ready).state
        assert state.driver == (driver or "").lower()
        assert cri.count("RuntimeConfig") == 1
