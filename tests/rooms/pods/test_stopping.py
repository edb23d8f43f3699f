"""Stopping, rejection, restarts of the room: against a fake runtime on a real socket."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kubelet_mp.model.runtime import PodRuntime
from kubelet_mp.rooms.pods.lifecycle import UNSEEN_PERIOD
from kubelet_mp.wire import messages as m
from tests.fakes.cri import FakeCRI
from tests.rooms.pods.harness import World, container, make_pod


def test_the_grace_of_the_spec_and_the_hook_are_used(world: World, fake: FakeCRI) -> None:
    hooked: list[list[str]] = []
    fake.on_exec = lambda name, cmd: (hooked.append(list(cmd)), ("", "", 0))[1]
    pod = make_pod(containers=[container(lifecycle={"preStop": {"exec": {"command": ["bye"]}}})],
                   terminationGracePeriodSeconds=7)
    world.want(pod)
    world.until_running(pod)
    world.drop(pod)
    world.until(lambda: world.forgotten(pod), "the pod to go")
    assert hooked == [["bye"]]
    assert [r.timeout for r in fake.requests("StopContainer")] == [7]


def test_sidecars_stop_after_the_containers_in_reverse(world: World, fake: FakeCRI) -> None:
    side = [container(n, restartPolicy="Always") for n in ("s1", "s2")]
    pod = make_pod(init=side, containers=[container("app")])
    world.want(pod)
    world.until_running(pod, name="app")
    ids = {i: c.name for i, c in fake.containers.items()}
    world.drop(pod)
    world.until(lambda: world.forgotten(pod), "the pod to go")
    assert [ids[r.container_id] for r in fake.requests("StopContainer")] == ["app", "s2", "s1"]


def test_a_deletion_with_less_grace_hastens_the_first(world: World, fake: FakeCRI) -> None:
    hang = fake.hang("StopContainer", when=lambda r: r.timeout == 30)
    pod = make_pod(terminationGracePeriodSeconds=30)
    world.want(pod)
    world.until_running(pod)
    gone = {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z",
                                "deletionGracePeriodSeconds": 30}}
    world.want(gone)
    hang.reached()
    sooner = {**gone, "metadata": {**gone["metadata"], "deletionGracePeriodSeconds": 3}}
    world.want(sooner)
    world.until(lambda: [r.timeout for r in fake.requests("StopContainer")] == [30, 3], "the second call")
    hang.release()
    world.until(lambda: any(s.terminal for s in world.runner.link.of(m.PodStatus)), "the end")


def test_a_pull_is_given_up_with_its_pod(world: World, fake: FakeCRI) -> None:
    hang = fake.hang("PullImage")
    pod = make_pod(containers=[container(image="docker.io/library/slow:1")])
    world.want(pod)
    hang.reached()
    world.until(lambda: "the pull of image" in world.waits_for(pod) or world.advance(5.0), "the wait to be told")
    world.drop(pod)
    world.until(lambda: world.forgotten(pod), "the pod to go")
    assert fake.count("CreateContainer") == 0


def test_the_new_pod_of_a_name_waits_for_the_old(world: World, fake: FakeCRI) -> None:
    hang = fake.hang("StopContainer")
    old, new = make_pod(uid="u1"), make_pod(uid="u2")
    world.want(old)
    world.until_running(old)
    world.want(new)
    world.drop(old)
    hang.reached()
    world.until(lambda: world.waits_for(new) == "an old pod of the same name to terminate", "the new to wait")
    assert fake.count("RunPodSandbox") == 1
    hang.release()
    world.until_running(new)


def test_a_pod_that_comes_back_while_it_stops_starts_again(world: World, fake: FakeCRI) -> None:
    hang = fake.hang("StopContainer", times=1)
    pod = make_pod()
    world.want(pod)
    world.until_running(pod)
    world.drop(pod)
    hang.reached()
    world.want(pod)
    hang.release()
    world.until(lambda: world.forgotten(pod), "the old one to go")
    world.until(lambda: fake.count("StartContainer") == 2, "the new one")
    world.until(lambda: world.container(pod).get("state", {}).get("running"), "it to run")


def test_a_rejected_static_pod_is_tried_again_when_there_is_room(world: World, fake: FakeCRI) -> None:
    big = {"requests": {"cpu": "3"}}
    one, two = (make_pod(n, containers=[container(resources=big)]) for n in ("one", "two"))
    world.want(one)
    world.until_running(one)
    world.want(two)
    world.until(lambda: world.status(two).get("reason") == "UnexpectedAdmissionError", "the rejection")
    status = world.status(two)
    assert status["phase"] == "Failed"
    assert status["message"].endswith("no set of running pods found to reclaim resources: [(res: cpu, q: 2000), ]")
    world.drop(one)
    world.until_running(two)
    assert world.status(two)["phase"] == "Running" and "reason" not in world.status(two)


def test_a_room_that_starts_anew_takes_its_pods_up_without_a_restart(fake: FakeCRI, tmp_path: Path) -> None:
    pod, gone = make_pod("stay"), make_pod("gone", terminationGracePeriodSeconds=9)
    with World(fake, tmp_path) as world:
        world.want(pod)
        world.until_running(pod)
        world.want(gone)
        world.until_running(gone)
        fake.exit_container("c", 3, "Error")  # that of the pod "gone": the newest
        world.until_running(gone, restarts=1)
        assert world.runner.room.recorder.flush(5)
    starts = fake.count("StartContainer")
    with World(fake, tmp_path) as world:
        world.want(pod)
        world.until(lambda: world.forgotten(gone), "the pod whose manifest is gone to go")
        world.until_running(pod)
        told = [s.pod["status"]["containerStatuses"][0] for s in world.runner.link.of(m.PodStatus)
                if s.uid == pod["metadata"]["uid"]]
    assert {(one["ready"], one["restartCount"]) for one in told} == {(True, 0)}  # Ready does not flap
    assert fake.count("StartContainer") == starts
    assert {r.timeout for r in fake.requests("StopContainer")} == {9}
    assert len(fake.sandboxes) == 1


def test_what_only_the_runtime_knows_is_stopped_when_all_sources_spoke(fake: FakeCRI, tmp_path: Path) -> None:
    pod = make_pod("lost")
    with World(fake, tmp_path / "a") as world:
        world.want(pod)
        world.until_running(pod)
    with World(fake, tmp_path / "b") as world:
        world.runner.give(m.DesiredSet(frozenset(), False))
        world.until(lambda: world.runner.link.of(m.AdmittedSet), "a set")
        assert fake.count("StopContainer") == 0
        world.tell_set()
        world.until(lambda: world.forgotten(pod), "the orphan to go")
        sent = [message for _, message in world.runner.link.sent]
    owned = ["uid-lost" in one.uids if isinstance(one, m.StatusSet) else "forgotten" for one in sent
             if isinstance(one, (m.StatusSet, m.PodForgotten))]
    assert owned[owned.index("forgotten") - 1] is True  # until then nobody else may remove anything of it
    assert not fake.sandboxes
    assert [r.timeout for r in fake.requests("StopContainer")] == [2]


def test_network_and_runtime_that_are_not_ready_are_waited_for(world: World, fake: FakeCRI) -> None:
    fake.set_ready(network=False, message="cni plugin not initialized")
    world.give_state()
    pod, host = make_pod("pod"), make_pod("host", hostNetwork=True)
    world.want(pod, host)
    world.until_running(host)
    world.until(lambda: world.waits_for(pod).startswith("network: "), "the wait to be told")
    assert world.events("NetworkNotReady")[0].message.startswith("network is not ready: ")
    fake.set_ready(network=True)
    world.give_state()
    world.until_running(pod)


def test_a_state_that_cannot_be_told_is_shown_and_nothing_is_done_meanwhile(world: World, fake: FakeCRI) -> None:
    pod = make_pod(containers=[container(livenessProbe={"exec": {"command": ["x"]}})])
    world.want(pod)
    world.until_running(pod)
    id_ = world.container(pod)["containerID"].partition("://")[2]

    def blind(why: str) -> str:
        runtime = PodRuntime("uid-web", observed=world.clock.monotonic() + 0.01, error=why)
        world.runner.give(m.PodRuntimeChanged("uid-web", runtime))
        return f"the runtime to tell the pod's state: {why}"

    fake.fail("ContainerStatus", "UNKNOWN", "boom", times=None)  # the neighbour pleg sees nothing either
    text = blind("ContainerStatus: boom")
    world.runner.give(m.ProbeResult("uid-web", "c", id_, "liveness", "failure", "dead"))
    world.until(lambda: world.waits_for(pod) == text or world.advance(0.3), "the wait to be told")
    text = blind("ContainerStatus: bang")
    world.until(lambda: world.waits_for(pod) == text or world.advance(0.3), "the other wait to be told")
    world.advance(UNSEEN_PERIOD)
    blind("ContainerStatus: again")
    world.until(lambda: len(world.events("FailedSync")) == 2, "the event to be repeated")
    assert [(e.type, e.message) for e in world.events("FailedSync")] == [
        ("Warning", "error determining status: ContainerStatus: boom"),
        ("Warning", "error determining status: ContainerStatus: again")]
    assert "running" in world.container(pod)["state"] and not world.events("Killing")
    fake.heal()
    seen = replace(world._seen["uid-web"], observed=world.clock.monotonic() + 0.02)
    world.runner.give(m.PodRuntimeChanged("uid-web", seen))
    world.until_running(pod, restarts=1)


def test_a_sandbox_that_fails_is_tried_again_after_a_pause(world: World, fake: FakeCRI) -> None:
    fake.fail("RunPodSandbox", "UNKNOWN", "no address left", times=1)
    pod = make_pod()
    world.want(pod)
    world.until(lambda: world.events("FailedCreatePodSandBox"), "the event")
    assert "no address left" in world.events("FailedCreatePodSandBox")[0].message
    world.until(lambda: "no address left" in world.waits_for(pod), "the reason to be shown")
    assert fake.count("RunPodSandbox") == 1
    world.advance(15.0)
    world.until_running(pod)


def test_failed_create_and_start_become_waiting_reasons(world: World, fake: FakeCRI) -> None:
    fake.fail("CreateContainer", "UNKNOWN", "bad mount", times=1)
    pod = make_pod()
    world.want(pod)
    world.until(lambda: world.waiting(pod) == {"reason": "CreateContainerError", "message": "bad mount"}, "reason")
    assert world.events("Failed")[0].message == "Error: bad mount"
    fake.fail("StartContainer", "UNKNOWN", "no such file", times=1)
    world.advance(15.0)
    world.until(lambda: world.waiting(pod).get("reason") == "RunContainerError", "the next reason")
    world.advance(15.0)
    world.until(lambda: "running" in world.container(pod)["state"], "it to run")


def test_a_failed_post_start_hook_kills_the_container(world: World, fake: FakeCRI) -> None:
    fake.on_exec = lambda name, cmd: ("", "no", 1)
    pod = make_pod(containers=[container(lifecycle={"postStart": {"exec": {"command": ["hi"]}}})])
    world.want(pod)
    world.until(lambda: world.waiting(pod).get("reason") == "PostStartHookError", "the reason")
    assert world.events("FailedPostStartHook")[0].message == "PostStartHook failed"
    assert world.events("Killing")[0].message == "Container c failed PostStartHook"


def test_a_liveness_failure_restarts_the_container(world: World, fake: FakeCRI) -> None:
    pod = make_pod(containers=[container(livenessProbe={"exec": {"command": ["x"]}})])
    world.want(pod)
    world.until_running(pod)
    id_ = world.container(pod)["containerID"].partition("://")[2]
    world.runner.give(m.ProbeResult("uid-web", "c", id_, "liveness", "failure", "dead"))
    world.until_running(pod, restarts=1)
    assert world.events("Killing")[0].message == "Container c failed liveness probe, will be restarted"


def test_pulls_go_one_after_the_other_by_default(world: World, fake: FakeCRI) -> None:
    fake.add_to_registry("docker.io/library/a:1")
    fake.add_to_registry("docker.io/library/b:1")
    hang = fake.hang("PullImage", when=lambda r: r.image.image.endswith("a:1"))
    one = make_pod("one", containers=[container(image="docker.io/library/a:1")])
    two = make_pod("two", containers=[container(image="docker.io/library/b:1")])
    world.want(one)
    hang.reached()
    world.want(two)
    world.until(lambda: fake.count("RunPodSandbox") == 2, "both sandboxes")
    assert fake.count("PullImage") == 1
    hang.release()
    world.until_running(one)
    world.until_running(two)
    messages = [e.message for e in world.events("Pulled")]
    assert messages[0].startswith('Successfully pulled image "docker.io/library/a:1" in ')
    assert "including waiting). Image size: " in messages[0]


def test_a_room_that_starts_is_told_everything(world: World) -> None:
    pod = make_pod()
    world.want(pod)
    world.until_running(pod)
    for room in ("cgroups", "http"):
        world.runner.link.clear()
        world._read = 0
        world.runner.come_up(room, 2)
        kind = m.AdmittedSet if room == "cgroups" else m.StatusSet
        world.until(lambda kind=kind, room=room: world.runner.link.of(kind, to=room), "the set")
        told = m.PodAdmitted if room == "cgroups" else m.PodStatus
        assert [t.uid for t in world.runner.link.of(told, to=room)] == ["uid-web"]


def test_an_unready_cgroup_and_volume_are_named(fake: FakeCRI, tmp_path: Path) -> None:
    with World(fake, tmp_path, answer=False) as world:
        pod = make_pod()
        world.want(pod)
        world.until(lambda: world.waits_for(pod) == "cgroup", "the cgroup to be waited for")
        world.runner.give(m.PodCgroupReady("uid-web", "", "no space left"))
        world.until(lambda: world.waits_for(pod) == "cgroup (no space left)", "the problem")
        assert world.events("FailedCreatePodContainer")[0].message == (
            "unable to ensure pod container exists: no space left")
        world.runner.give(m.PodCgroupReady("uid-web", "/kubepods/poduid-web"),
                          m.PodVolumesReady("uid-web", {}, "MountVolume.SetUp failed", ("v",)))
        world.until(lambda: world.waits_for(pod) == "volumes: v (MountVolume.SetUp failed)", "the volume")
        assert fake.count("RunPodSandbox") == 0
        world.runner.give(m.PodVolumesReady("uid-web", {"v": "/x"}))
        world.until_running(pod)
        assert fake.requests("RunPodSandbox")[0].config.linux.cgroup_parent == "/kubepods/poduid-web"


def test_a_deadline_ends_the_pod(world: World, fake: FakeCRI) -> None:
    pod = make_pod(activeDeadlineSeconds=30)
    world.want(pod)
    world.until_running(pod)
    world.advance(31.0)
    world.until(lambda: world.status(pod).get("reason") == "DeadlineExceeded", "the deadline")
    world.until(lambda: world.runner.link.of(m.PodStopped), "the stop")
    assert world.status(pod)["phase"] == "Failed"
    assert not world.forgotten(pod)
