"""Pods start, live and stop against a fake runtime on a real socket."""

from __future__ import annotations

from kubelet_mp.wire import messages as m
from tests.fakes.cri import FakeCRI
from tests.rooms.pods.harness import World, container, make_pod


def test_a_pod_starts_and_its_removal_leaves_nothing(world: World, fake: FakeCRI) -> None:
    pod = make_pod()
    world.want(pod)
    world.until_running(pod)
    assert world.status(pod)["phase"] == "Running"
    assert [e.reason for e in world.events()] == ["Pulled", "Created", "Started"]
    world.drop(pod)
    world.until(lambda: world.forgotten(pod), "the pod to be forgotten")
    assert not fake.sandboxes and not fake.containers
    assert not (world.root / "kubelet/pods/uid-web").exists()
    assert [s.uid for s in world.runner.link.of(m.PodStopped)] == ["uid-web"]
    assert world.events("Killing")[0].message == "Stopping container c"


def test_containers_start_in_order_after_the_init_containers(world: World, fake: FakeCRI) -> None:
    fake.exits = {"i1": 0, "i2": 0}
    pod = make_pod(init=[container("i1"), container("i2")], containers=[container("a"), container("b")])
    world.want(pod)
    world.until_running(pod, name="b")
    names = [r.config.metadata.name for r in fake.requests("CreateContainer")]
    assert names == ["i1", "i2", "a", "b"]
    assert world.container(pod, "i1")["state"]["terminated"]["exitCode"] == 0


def test_the_crash_loop_timetable(world: World, fake: FakeCRI) -> None:
    pod = make_pod("crash")
    world.want(pod)
    world.until_running(pod)
    fake.exit_container("c", 3, "Error")
    world.until_running(pod, restarts=1)  # the first restart is immediate
    for restarts, delay in ((2, 10), (3, 20), (4, 40)):
        fake.exit_container("c", 3, "Error")
        text = f"back-off {delay}s restarting failed container=c pod=crash_default(uid-crash)"
        world.until(lambda text=text: world.waiting(pod) == {"reason": "CrashLoopBackOff", "message": text}, text)
        status = world.container(pod)
        assert status["restartCount"] == restarts - 1
        assert status["lastState"]["terminated"]["exitCode"] == 3
        assert not status["ready"]
        assert world.status(pod)["phase"] == "Running"
        assert "crash back-off of container c" in world.waits_for(pod)
        world.advance(delay - 2.0)
        assert world.container(pod)["restartCount"] == restarts - 1
        world.advance(3.0)
        world.until_running(pod, restarts=restarts)
        world.until(lambda: sum(1 for c in fake.containers.values() if c.name == "c") <= 2, "one dead instance")
    assert "in pod crash_default(uid-crash)" in world.events("BackOff")[0].message


def test_four_images_four_outcomes(world: World, fake: FakeCRI) -> None:
    absent = "registry.k8s.io/absent:0.0.0"
    pod = make_pod("img", restartPolicy="Never", containers=[
        container("ok"), container("never", image=absent, imagePullPolicy="Never"),
        container("upper", image="docker.io/library/BusyBox:latest"), container("gone", image=absent)])
    world.want(pod)
    world.until(lambda: world.waiting(pod, "gone").get("reason") == "ErrImagePull", "ErrImagePull")
    assert world.waiting(pod, "never") == {
        "reason": "ErrImageNeverPull",
        "message": f'Container image "{absent}" is not present with pull policy of Never'}
    upper = world.waiting(pod, "upper")
    assert upper["reason"] == "InvalidImageName"
    assert upper["message"].startswith('Failed to apply default image tag "docker.io/library/BusyBox:latest":')
    world.advance(2.0)
    world.until(lambda: world.waiting(pod, "gone").get("reason") == "ImagePullBackOff", "ImagePullBackOff")
    message = world.waiting(pod, "gone")["message"]
    assert message.startswith(f'Back-off pulling image "{absent}": ErrImagePull: ') and len(message) > 90
    assert world.status(pod)["phase"] == "Pending"
    assert fake.count("PullImage") == 1
    world.advance(9.0)
    world.until(lambda: fake.count("PullImage") == 2, "the second pull")
    assert world.container(pod, "ok")["restartCount"] == 0


def test_a_dead_sandbox_is_replaced_and_init_runs_again(world: World, fake: FakeCRI) -> None:
    fake.exits = {"init": 0}
    pod = make_pod("prime", init=[container("init")], containers=[container("app")])
    world.want(pod)
    world.until_running(pod, name="app")
    fake.vanish("init")
    world.until(lambda: world.container(pod, "init")["state"].get("terminated", {}).get("reason") == "Completed",
                "the lost init container to count as completed")
    assert fake.count("CreateContainer") == 2
    sandbox = next(iter(fake.sandboxes))
    world._cri.stop_sandbox(sandbox)
    world.until(lambda: fake.count("RunPodSandbox") == 2, "a new sandbox")
    world.advance(20.0)
    world.until(lambda: "running" in world.container(pod, "app")["state"], "the app to run again")
    requests = fake.requests("RunPodSandbox")
    assert [r.config.metadata.attempt for r in requests] == [0, 1]
    assert world.container(pod, "init")["restartCount"] == 1
    assert world.container(pod, "app")["restartCount"] in (1, 2)
    order = [r.config.metadata.name for r in fake.requests("CreateContainer")]
    assert order[:2] == ["init", "app"] and order.index("init", 1) < len(order) - 1


def test_a_pod_that_never_restarts_finishes_and_keeps_its_status(world: World, fake: FakeCRI) -> None:
    fake.exits = {"c": 0}
    pod = make_pod("once", restartPolicy="Never")
    world.want(pod)
    world.until(lambda: world.status(pod).get("phase") == "Succeeded", "Succeeded")
    world.until(lambda: world.runner.link.of(m.PodStopped), "PodStopped")
    assert fake.count("CreateContainer") == 1
    assert not world.forgotten(pod)
    assert world.container(pod)["state"]["terminated"]["reason"] == "Completed"


def test_names_that_the_runtime_keeps_for_a_moment(world: World, fake: FakeCRI) -> None:
    """Killed amid a call, the room finds the name taken by its own call of before: a matter of a second."""
    reserved = 'failed to reserve {0} name "x": name "x" is reserved for "0123"'
    fake.fail("RunPodSandbox", "UNKNOWN", reserved.format("sandbox"))
    fake.fail("CreateContainer", "UNKNOWN", reserved.format("container"))
    pod = make_pod()
    world.want(pod)
    world.until(lambda: "is reserved" in world.waits_for(pod), "the first refusal")
    world.advance(2)
    world.until(lambda: world.waiting(pod).get("reason") == "CreateContainerError", "the second refusal")
    world.advance(2)
    world.until_running(pod)


def test_a_call_that_takes_long_is_named(world: World, fake: FakeCRI) -> None:
    hang = fake.hang("RunPodSandbox")
    pod = make_pod()
    world.want(pod)
    hang.reached()
    world.advance(6)
    world.until(lambda: world.waits_for(pod) == "the runtime to set up its sandbox (RunPodSandbox)", "the call")
    hang.release()
    world.until_running(pod)
