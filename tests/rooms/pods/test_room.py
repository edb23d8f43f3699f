"""Pods start, live and stop against a fake runtime on a real socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kubelet_mp.wire import messages as m
from tests.fakes.cri import FakeCRI
from tests.rooms.pods.harness import IMAGE, World, container, make_pod


@pytest.fixture
def fake() -> Iterator[FakeCRI]:
    with FakeCRI(images=(IMAGE,)) as server:
        yield server


@pytest.fixture
def world(fake: FakeCRI, tmp_path: Path) -> Iterator[World]:
    with World(fake, tmp_path) as made:
        yield made


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
