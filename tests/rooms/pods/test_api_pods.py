"""Pods of an API server: deletion, ends, restarts of the agent, what the API knows and what it changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubelet_mp.wire import messages as m
from tests.fakes.cri import FakeCRI
from tests.rooms.pods.harness import IMAGE, World, api_pod, container, deleted, make_pod

OTHER = "docker.io/library/other:1"


@pytest.fixture
def fake() -> Iterator[FakeCRI]:
    with FakeCRI(images=(IMAGE, OTHER)) as server:
        yield server


@pytest.fixture
def world(fake: FakeCRI, tmp_path: Path) -> Iterator[World]:
    with World(fake, tmp_path, api=True) as made:
        yield made


def condition(status: dict[str, Any], name: str) -> dict[str, Any]:
    return next((c for c in status.get("conditions", ()) if c["type"] == name), {})


def test_a_deleted_pod_is_kept_until_it_has_left_the_api(world: World, fake: FakeCRI) -> None:
    pod = api_pod()
    world.want(pod)
    world.until_running(pod)
    status = world.status(pod)
    assert (status["hostIP"], status["hostIPs"]) == ("192.0.2.1", [{"ip": "192.0.2.1"}])
    assert status["podIPs"] == [{"ip": status["podIP"]}] and status["observedGeneration"] == 1
    assert condition(status, "PodScheduled")["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    world.want(deleted(pod, 4))
    world.until(lambda: world.finished(pod), "the end to be told")
    assert [r.timeout for r in fake.requests("StopContainer")] == [4]
    told = world.finished(pod)
    assert told["metadata"]["deletionTimestamp"] and told["status"]["phase"] == "Failed"
    assert told["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143
    assert not world.forgotten(pod)
    world.want({**deleted(pod, 4), "status": told["status"]})  # the echo of our own write
    world.drop(pod)
    world.until(lambda: world.forgotten(pod), "it to be forgotten")
    assert not fake.sandboxes and fake.count("RunPodSandbox") == 1
    assert len(world.runner.link.of(m.PodFinished)) == 1


def test_an_end_is_told_again_when_the_finished_pod_is_deleted(world: World, fake: FakeCRI) -> None:
    fake.exits = {"c": 0}
    pod = api_pod("job", restartPolicy="Never")
    world.want(pod)
    world.until(lambda: world.finished(pod), "the end")
    assert world.finished(pod)["status"]["phase"] == "Succeeded"
    assert condition(world.status(pod), "Ready")["reason"] == "PodCompleted"
    assert not world.forgotten(pod) and len(fake.containers) == 1
    world.want(deleted(pod))
    world.until(lambda: world.finished(pod)["metadata"].get("deletionTimestamp"), "the second telling")
    world.runner.room.post(lambda: world.runner.room.replay("reporter"))
    world.until(lambda: len(world.runner.link.of(m.PodFinished)) == 3, "the replay")
    world.drop(pod)
    world.until(lambda: world.forgotten(pod), "it to be forgotten")


@pytest.mark.parametrize(("policy", "codes", "phase"), [
    ("OnFailure", (3, 0), "Succeeded"), ("Never", (3,), "Failed"),
])
def test_jobs(world: World, fake: FakeCRI, policy: str, codes: tuple[int, ...], phase: str) -> None:
    pod = api_pod("job", restartPolicy=policy)
    world.want(pod)
    for restarts, code in enumerate(codes):
        world.until_running(pod, restarts=restarts)
        fake.exit_container("c", code, "Completed" if code == 0 else "Error")
    world.until(lambda: world.finished(pod), "the end")
    status = world.finished(pod)["status"]
    assert status["phase"] == phase
    assert status["containerStatuses"][0]["restartCount"] == len(codes) - 1
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == codes[-1]


def test_a_pod_past_its_deadline_is_stopped_and_failed(world: World, fake: FakeCRI) -> None:
    pod = api_pod()
    world.want(pod)
    world.until_running(pod)
    limited = {**pod, "spec": {**pod["spec"], "activeDeadlineSeconds": 30}}
    world.want(limited)
    world.until(lambda: len(world.runner.link.of(m.PodAdmitted)) == 2, "the change to be passed on")
    world.advance(31)
    world.until(lambda: world.finished(pod), "the end")
    status = world.finished(pod)["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert status["message"] == "Pod was active on the node longer than the specified deadline"
    assert world.events("DeadlineExceeded")[0].type == "Normal"


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_what_has_ended_in_the_api_is_never_started(world: World, fake: FakeCRI, phase: str) -> None:
    pod = api_pod(status={"phase": phase, "reason": "Evicted", "message": "long ago"})
    world.want(pod)
    world.until(lambda: world.finished(pod), "the end")
    status = world.finished(pod)["status"]
    assert (status["phase"], status["reason"], status["message"]) == (phase, "Evicted", "long ago")
    assert fake.count("RunPodSandbox") == 0
    assert [s.uid for s in world.runner.link.of(m.PodStopped)] == ["uid-web"]


def test_a_pod_that_others_fail_is_stopped(world: World, fake: FakeCRI) -> None:
    pod = api_pod()
    world.want(pod)
    world.until_running(pod)
    target = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    world.want({**pod, "status": {"phase": "Failed", "conditions": [target]}})
    world.until(lambda: world.finished(pod), "the end")
    assert world.finished(pod)["status"]["phase"] == "Failed"
    assert condition(world.finished(pod)["status"], "DisruptionTarget")["reason"] == "DeletionByTaintManager"
    assert fake.count("StopContainer") == 1


def test_a_pod_deleted_before_it_started_never_starts(world: World, fake: FakeCRI) -> None:
    pod = deleted(api_pod())
    world.want(pod)
    world.until(lambda: world.finished(pod), "the end")
    assert world.finished(pod)["status"]["phase"] == "Failed"
    assert fake.count("RunPodSandbox") == 0


def test_a_forced_deletion_uses_the_grace_of_the_spec(world: World, fake: FakeCRI) -> None:
    pod = api_pod(terminationGracePeriodSeconds=7)
    world.want(pod)
    world.until_running(pod)
    world.drop(pod)
    world.until(lambda: world.forgotten(pod), "it to go")
    assert [r.timeout for r in fake.requests("StopContainer")] == [7]


def test_a_new_pod_of_the_name_of_a_forced_one_does_not_wait(world: World, fake: FakeCRI) -> None:
    hang = fake.hang("StopContainer")
    old, new = api_pod("db-0", "u1"), api_pod("db-0", "u2")
    world.want(old)
    world.until_running(old)
    world.drop(old)
    hang.reached()
    world.want(new)
    world.until_running(new)
    hang.release()
    world.until(lambda: world.forgotten(old), "the old one to go")


def test_a_changed_image_restarts_its_container_alone(world: World, fake: FakeCRI) -> None:
    pod = api_pod(containers=[container("a"), container("b")], restartPolicy="Never")
    world.want(pod)
    world.until_running(pod, name="b")
    changed = {**pod, "spec": {**pod["spec"], "containers": [container("a", image=OTHER), container("b")]}}
    changed["metadata"] = {**pod["metadata"], "generation": 2}
    world.want(changed)
    world.until_running(pod, restarts=1, name="a")
    assert world.container(pod, "b")["restartCount"] == 0
    assert world.events("Killing")[0].message == "Container a definition changed, will be restarted"
    assert world.status(pod)["observedGeneration"] == 2


def test_an_echo_of_our_writes_changes_nothing(world: World, fake: FakeCRI) -> None:
    pod = api_pod(readinessGates=None)
    world.want(pod)
    world.until_running(pod)
    count = len(world.runner.link.of(m.PodStatus))
    echo = {**pod, "metadata": {**pod["metadata"], "resourceVersion": "7"}, "status": world.status(pod)}
    world.want(echo)
    world.want({**echo, "metadata": {**echo["metadata"], "labels": {"a": "b"}}})
    world.until(lambda: len(world.runner.link.of(m.PodAdmitted)) == 2, "the label to be passed on")
    world.until(lambda: len(world.runner.link.of(m.PodStatus)) == count + 1, "the label to be shown")


def test_readiness_gates_follow_the_api(world: World) -> None:
    pod = api_pod(readinessGates=[{"conditionType": "example.com/gate"}])
    world.want(pod)
    world.until_running(pod)
    assert condition(world.status(pod), "Ready")["reason"] == "ReadinessGatesNotReady"
    gate = {"type": "example.com/gate", "status": "True"}
    status = world.status(pod)
    world.want({**pod, "status": {**status, "conditions": [*status["conditions"], gate]}})
    world.until(lambda: condition(world.status(pod), "Ready").get("status") == "True", "Ready")
    assert condition(world.status(pod), "example.com/gate")["status"] == "True"


def forget_records(root: Path) -> None:
    for path in root.rglob("kubelet-mp.json"):
        path.unlink()


@pytest.mark.parametrize("lost", [False, True])
def test_a_restart_of_the_agent_shows_nowhere(fake: FakeCRI, tmp_path: Path, lost: bool) -> None:
    probe = {"httpGet": {"port": 80}}
    pod = api_pod(containers=[container(readinessProbe=probe)])
    with World(fake, tmp_path, api=True) as world:
        world.want(pod)
        world.until_running(pod)
        status = world.container(pod)
        world.runner.give(m.ProbeResult("uid-web", "c", status["containerID"].partition("//")[2], "readiness",
                                        "success"))
        world.until(lambda: condition(world.status(pod), "Ready").get("status") == "True", "Ready")
        last = world.status(pod)
        assert world.runner.room.recorder.flush(5)
    if lost:
        forget_records(tmp_path)
    with World(fake, tmp_path, api=True, node=None if not lost else {"metadata": {}, "spec": {"taints": [
            {"key": "k", "effect": "NoExecute"}]}}) as world:
        world.want({**pod, "status": last})
        world.until(lambda: world.runner.link.of(m.PodAdmitted), "it to be admitted")
        world.until(lambda: world.waits_for(pod) == "" and world.status(pod), "it to be looked at")
        world.until(lambda: world.runner.room.around.listed is not None, "a listing")
        shown = [s.pod["status"] for s in world.runner.link.of(m.PodStatus)]
        assert {condition(s, "Ready")["status"] for s in shown} == {"True"}
        assert {s["containerStatuses"][0]["restartCount"] for s in shown} == {0}
        assert {s["startTime"] for s in shown} == {last["startTime"]}
        assert fake.count("RunPodSandbox") == 1


def test_a_restart_while_a_pod_is_being_deleted_finishes_it(fake: FakeCRI, tmp_path: Path) -> None:
    pod = api_pod()
    with World(fake, tmp_path, api=True) as world:
        world.want(pod)
        world.until_running(pod)
        fake.exit_container("c", 0, "Completed")
        world.until_running(pod, restarts=1)
        assert world.runner.room.recorder.flush(5)
    with World(fake, tmp_path, api=True) as world:
        world.want(deleted({**pod, "status": {"phase": "Running"}}, 3))
        world.until(lambda: world.finished(pod), "the end")
        assert world.finished(pod)["status"]["containerStatuses"][0]["restartCount"] == 1
        assert [r.timeout for r in fake.requests("StopContainer")] == [3]
    with World(fake, tmp_path, api=True) as world:  # once more, before the API server deleted it
        world.want(deleted({**pod, "status": {"phase": "Running"}}, 3))
        world.until(lambda: world.finished(pod), "the end, told again")
        assert world.finished(pod)["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 143
        world.drop(pod)
        world.until(lambda: world.forgotten(pod), "it to go")
    assert not fake.sandboxes


def test_static_pods_need_no_api_server(fake: FakeCRI, tmp_path: Path) -> None:
    static, other = make_pod("static"), api_pod("other")
    with World(fake, tmp_path, api=True, node=None) as world:
        world.want(static, other)
        world.until_running(static)
        world.until(lambda: world.waits_for(other) == "the Node object", "the other to wait")
        world.runner.give(m.NodeObject({"metadata": {"labels": {}}}))
        world.until_running(other)


@pytest.mark.parametrize(("policy", "reason"), [("OnFailure", "CrashLoopBackOff"), ("Never", "")])
def test_a_failed_init_container(world: World, fake: FakeCRI, policy: str, reason: str) -> None:
    fake.exits = {"i": 2}
    pod = api_pod(init=[container("i")], restartPolicy=policy)
    world.want(pod)
    if policy == "Never":
        world.until(lambda: world.finished(pod), "the end")
        assert world.finished(pod)["status"]["phase"] == "Failed"
        assert world.finished(pod)["status"]["containerStatuses"][0]["state"] == {
            "waiting": {"reason": "PodInitializing"}}
        return
    world.until(lambda: world.waiting(pod, "i").get("reason") == reason, "the back-off")
    assert world.status(pod)["phase"] == "Pending"
    fake.exits = {"i": 0}
    world.until(lambda: "crash back-off" in world.waits_for(pod), "the wait")
    world.advance(11)
    world.until_running(pod)
    assert world.container(pod, "i")["restartCount"] == 2
    assert condition(world.status(pod), "Initialized")["status"] == "True"


def test_what_the_api_tells_of_a_pod_stands_until_the_runtime_was_listed(fake: FakeCRI, tmp_path: Path) -> None:
    """The list of a watch cache may be older than the last write of the agent before."""
    fake.fail("ListPodSandbox", "UNAVAILABLE", "starting", times=None)
    told = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    pod = {**api_pod(), "status": told}
    with World(fake, tmp_path, api=True) as world:
        world.want(pod)
        shown = world.runner.wait_for(m.PodStatus)
        assert condition(shown.pod["status"], "Ready")["status"] == "True"
        fake.heal()
        world.runner.give(m.RelistDone(world.clock.monotonic(), frozenset()))
        world.until_running(pod)


def test_a_record_that_is_older_than_what_the_api_tells(fake: FakeCRI, tmp_path: Path) -> None:
    """Killed between a status and its record, the agent must not take the status back."""
    pod = api_pod()
    with World(fake, tmp_path, api=True, answer=False) as world:
        world.want(pod)
        world.until(lambda: list((world.root / "kubelet" / "pods").glob("*/kubelet-mp.json")), "a record")
    fake.fail("ListPodSandbox", "UNAVAILABLE", "starting", times=None)
    told = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    with World(fake, tmp_path, api=True) as world:
        world.want({**pod, "status": told})
        world.until(lambda: world.status(pod), "a status")
        shown = [one.pod["status"] for one in world.runner.link.of(m.PodStatus)]
        assert all(condition(status, "Ready")["status"] == "True" for status in shown)
