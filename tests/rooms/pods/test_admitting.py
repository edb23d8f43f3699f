"""Admission in the room: taints of the Node object, room made for critical pods, order, classes, network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cri_api.v1 import api_pb2 as pb

from kubelet_mp.wire import messages as m
from tests.fakes.cri import FakeCRI
from tests.rooms.pods.harness import NODE, World, api_pod, container, deleted


@pytest.fixture
def world(fake: FakeCRI, tmp_path: Path) -> Iterator[World]:
    with World(fake, tmp_path, api=True) as made:
        yield made


def sized(name: str, cpu: str, **fields: Any) -> dict[str, Any]:
    return api_pod(name, containers=[container(resources={"requests": {"cpu": cpu}})], **fields)


def test_a_rejected_pod_stays_so_and_leaves_when_deleted(world: World, fake: FakeCRI) -> None:
    one, two = sized("one", "3"), sized("two", "2")
    world.want(one)
    world.until_running(one)
    world.want(two)
    world.until(lambda: world.status(two).get("reason") == "OutOfcpu", "the rejection")
    status = world.status(two)
    assert (status["phase"], status["message"]) == (
        "Failed", "Pod was rejected: Node didn't have enough resource: cpu, requested: 2000, used: 3000, "
        "capacity: 4000")
    assert world.events("OutOfcpu")[0].type == "Warning"
    assert 'kubelet_admission_rejections_total{reason="OutOfcpu"} 1.0' in world.runner.room.metrics_text()
    world.drop(one)
    world.until(lambda: world.forgotten(one), "the other to go")
    assert world.status(two)["phase"] == "Failed"
    world.want(deleted(two))
    world.until(lambda: world.finished(two), "its end")
    world.drop(two)
    world.until(lambda: world.forgotten(two), "it to go")
    assert fake.count("RunPodSandbox") == 1


def test_a_critical_pod_has_others_stopped(world: World, fake: FakeCRI) -> None:
    victim, other, late = sized("victim", "2"), sized("other", "1"), sized("late", "1500m")
    critical = sized("critical", "3", priority=2_000_001_000)
    hang = fake.hang("StopContainer")
    world.want(victim, other)
    world.until_running(victim)
    world.until_running(other)
    world.want(critical)
    hang.reached()
    world.until(lambda: world.waits_for(critical) == "1 pods to stop that make room for it", "the wait")
    world.want(late)
    world.until(lambda: world.status(late).get("reason") == "OutOfcpu", "the room to be reserved")
    hang.release()
    world.until_running(critical)
    world.until(lambda: world.finished(victim), "the victim's end")
    status = world.finished(victim)["status"]
    assert (status["phase"], status["reason"], status["message"]) == (
        "Failed", "Preempting", "Preempted in order to admit critical pod")
    target = next(c for c in status["conditions"] if c["type"] == "DisruptionTarget")
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
    assert world.status(other)["phase"] == "Running"
    assert [e.name for e in world.events("Preempting")] == ["victim"]
    assert 'kubelet_preemptions_total{preemption_signal="cpu"} 1.0' in world.runner.room.metrics_text()


def test_the_oldest_is_admitted_first(fake: FakeCRI, tmp_path: Path) -> None:
    young, old = sized("young", "3"), sized("old", "3")
    young["metadata"]["creationTimestamp"] = "2026-02-02T00:00:00Z"
    with World(fake, tmp_path, api=True, node=None) as world:
        world.want(young, old)
        world.until(lambda: world.waits_for(young) == "the Node object", "the wait")
        world.until(lambda: world.waits_for(old) == "the Node object", "the wait")
        world.runner.give(m.NodeObject(NODE))
        world.until_running(old)
        world.until(lambda: world.status(young).get("reason") == "OutOfcpu", "the rejection of the younger")


def test_labels_and_taints_are_those_of_the_node_object(world: World) -> None:
    picky, plain = api_pod("picky", nodeSelector={"disk": "ssd"}), api_pod("plain")
    tough = api_pod("tough", tolerations=[{"operator": "Exists"}], nodeSelector={"disk": "ssd"})
    world.want(picky)
    world.until(lambda: world.status(picky).get("reason") == "NodeAffinity", "the rejection")
    world.runner.give(m.NodeObject({**NODE, "metadata": {"labels": {"disk": "ssd"}},
                                    "spec": {"taints": [{"key": "out", "effect": "NoExecute"}]}}))
    world.want(plain, tough)
    world.until(lambda: world.status(plain).get("reason") == "TaintToleration", "the rejection")
    world.until_running(tough)


def test_a_label_that_only_the_scheduler_has_seen_is_looked_up(world: World) -> None:
    world.api.objects["/api/v1/nodes/node"] = {**NODE, "metadata": {"labels": {"disk": "ssd"}}}
    pod = api_pod(nodeSelector={"disk": "ssd"})
    world.want(pod)
    world.until_running(pod)
    other = api_pod("other", nodeSelector={"disk": "hdd"})
    world.want(other)
    world.until(lambda: world.status(other).get("reason") == "NodeAffinity", "the rejection")


def test_a_runtime_class_gives_the_handler(world: World, fake: FakeCRI) -> None:
    fake.handlers.append(pb.RuntimeHandler(name="kata"))
    pod = api_pod(runtimeClassName="sandboxed")
    world.want(pod)
    world.until(lambda: world.events("FailedCreatePodSandBox"), "the failure")
    assert world.events("FailedCreatePodSandBox")[0].message == (
        'Failed to create pod sandbox: runtimeclass.node.k8s.io "sandboxed" not found')
    world.api.objects["/apis/node.k8s.io/v1/runtimeclasses/sandboxed"] = {"handler": "kata"}
    world.until(lambda: world.waits_for(pod).startswith("runtimeclass"), "the wait to be told")
    world.advance(20)
    world.until_running(pod)
    assert [r.runtime_handler for r in fake.requests("RunPodSandbox")] == ["kata"]


def test_without_network_only_pods_on_the_hosts_start(world: World, fake: FakeCRI) -> None:
    fake.set_ready(network=False, message="cni plugin not initialized")
    world.give_state()
    pod, host = api_pod("pod"), api_pod("host", hostNetwork=True)
    world.want(pod, host)
    world.until_running(host)
    world.until(lambda: world.events("NetworkNotReady"), "the event")
    assert world.events("NetworkNotReady")[0].message.startswith("network is not ready: ")
    assert fake.count("RunPodSandbox") == 1
    fake.set_ready(network=True)
    world.give_state()
    world.until_running(pod)


def test_no_set_that_follows_an_admission_leaves_the_pod_out(world: World) -> None:
    """Volumes would take it for a pod whose end they missed."""
    pods = [api_pod(f"p{n}") for n in range(4)]
    world.want(*pods)
    for pod in pods:
        world.until_running(pod)
    admitted: set[str] = set()
    for _, message in world.runner.link.sent:
        if isinstance(message, m.PodAdmitted):
            admitted.add(message.uid)
        elif isinstance(message, m.AdmittedSet):
            assert admitted <= message.uids
    assert len(admitted) == len(pods)
