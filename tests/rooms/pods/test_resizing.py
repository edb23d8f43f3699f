"""In-place resize through the room: given or not, as the containers run or by their restart, over a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubelet_mp.model.resize import summary
from kubelet_mp.wire import messages as m
from tests.fakes.cri import FakeCRI
from tests.rooms.pods.harness import World, api_pod, container

MI = 1 << 20


@pytest.fixture
def world(fake: FakeCRI, tmp_path: Path) -> Iterator[World]:
    with World(fake, tmp_path, api=True) as made:
        yield made


def sized(cpu: str, memory: str, generation: int = 1, policy: str = "NotRequired", name: str = "web") -> dict[str, Any]:
    """A Burstable pod with limits of twice its requests."""
    resources = {"requests": {"cpu": cpu, "memory": "8Mi"}, "limits": {"cpu": "4", "memory": memory}}
    policies = [{"resourceName": one, "restartPolicy": policy} for one in ("cpu", "memory")]
    pod = api_pod(name, containers=[container(resources=resources, resizePolicy=policies)])
    pod["metadata"]["generation"] = generation
    return pod


def condition(world: World, pod: dict[str, Any], kind: str) -> dict[str, Any]:
    return next((c for c in world.status(pod).get("conditions", ()) if c["type"] == kind), {})


def settled(world: World, pod: dict[str, Any]) -> bool:
    """As whoever asked for the resize sees that it is done."""
    seen = world.status(pod)
    done = not any(c["type"].startswith("PodResize") for c in seen.get("conditions", ()))
    return done and seen.get("observedGeneration") == pod["metadata"]["generation"]


def resources(world: World, pod: dict[str, Any]) -> dict[str, Any]:
    return dict(world.container(pod).get("resources", {}))


def asked_of(pod: dict[str, Any]) -> dict[str, Any]:
    return dict(pod["spec"]["containers"][0]["resources"])


def test_a_running_container_gets_other_limits_between_two_orders_to_the_cgroup(world: World, fake: FakeCRI) -> None:
    world.want(old := sized("1", "100Mi"))
    world.until_running(old)
    world.want(new := sized("2", "200Mi", 2))
    world.until(lambda: settled(world, new), "the resize")
    assert resources(world, new) == asked_of(new) and world.container(new)["restartCount"] == 0
    assert world.container(new)["allocatedResources"] == {"cpu": "2", "memory": "8Mi"}
    wide, final = [order for order in world.runner.link.of(m.PodAdmitted) if order.serial]
    assert asked_of(wide.pod) == {"requests": {"cpu": "1", "memory": "8Mi"},
                                  "limits": {"cpu": "4000m", "memory": str(200 * MI)}}
    assert asked_of(final.pod) == asked_of(new) and final.serial > wide.serial > 0
    (update,) = fake.requests("UpdateContainerResources")
    assert (update.linux.memory_limit_in_bytes, update.linux.cpu_shares) == (200 * MI, 2048)
    assert fake.count("UpdatePodSandboxResources") == 1
    assert [e.message for e in world.events("ResizeStarted")] == [summary("Pod resize started", new)]
    assert [e.message for e in world.events("ResizeCompleted")] == [summary("Pod resize completed", new)]


def test_no_status_tells_of_the_new_generation_before_it_was_judged(world: World) -> None:
    world.want(old := sized("1", "100Mi"))
    world.until_running(old)
    world.want(new := sized("2", "200Mi", 2))
    world.until(lambda: settled(world, new), "the resize")
    statuses = [told.pod["status"] for told in world.runner.link.of(m.PodStatus)]
    first = next(one for one in statuses if one.get("observedGeneration") == 2)
    assert any(c["type"] == "PodResizeInProgress" for c in first["conditions"]), first


def test_a_policy_that_says_so_restarts_the_container(world: World, fake: FakeCRI) -> None:
    world.want(old := sized("1", "100Mi", policy="RestartContainer"))
    world.until_running(old)
    world.want(new := sized("1", "200Mi", 2, policy="RestartContainer"))
    world.until(lambda: settled(world, new), "the resize")
    world.until_running(new, restarts=1)
    assert resources(world, new) == asked_of(new) and not fake.count("UpdateContainerResources")
    assert fake.requests("CreateContainer")[-1].config.linux.resources.memory_limit_in_bytes == 200 * MI
    assert [e.message for e in world.events("Killing")] == ["Container c resize requires restart"]


def test_what_does_not_fit_is_deferred_until_there_is_room(world: World, fake: FakeCRI) -> None:
    world.want(other := sized("2", "100Mi", name="other"), old := sized("1", "100Mi"))
    world.until_running(old)
    world.until_running(other)
    world.want(new := sized("3", "100Mi", 2))
    world.until(lambda: condition(world, new, "PodResizePending"), "the resize to wait")
    waiting = condition(world, new, "PodResizePending")
    assert (waiting["reason"], waiting["observedGeneration"]) == ("Deferred", 2) and "cpu" in waiting["message"]
    assert resources(world, new) == asked_of(old) and len(world.events("ResizeDeferred")) == 1
    world.drop(other)
    world.until(lambda: settled(world, new), "the resize")
    assert resources(world, new) == asked_of(new)
    assert len(world.events("ResizeDeferred")) == 1


def test_a_wish_that_is_taken_back_waits_no_more(world: World, fake: FakeCRI) -> None:
    world.want(old := sized("1", "100Mi"))
    world.until_running(old)
    world.want(new := sized("30", "100Mi", 2))
    world.until(lambda: condition(world, new, "PodResizePending"), "the resize to wait")
    world.want(back := sized("1", "100Mi", 3))
    world.until(lambda: settled(world, back), "the wish to be forgotten")
    assert not fake.count("UpdateContainerResources")


def test_memory_in_use_is_not_taken_away(world: World, fake: FakeCRI) -> None:
    world.want(old := sized("1", "100Mi"))
    world.until_running(old)
    fake.memory_used = 60 * MI
    world.want(new := sized("1", "50Mi", 2))
    world.until(lambda: condition(world, new, "PodResizeInProgress").get("reason") == "Error", "the error")
    text = condition(world, new, "PodResizeInProgress")["message"]
    assert text == ('cannot decrease memory limits: attempting to set container "c" memory limit '
                    f"({50 * MI}) below current usage ({60 * MI})")
    assert resources(world, new) == asked_of(old) and not fake.count("UpdateContainerResources")
    fake.memory_used = 10 * MI
    world.advance(16)
    world.until(lambda: settled(world, new), "the resize after all")
    assert resources(world, new) == asked_of(new) and len(world.events("ResizeError")) == 1


def test_the_agent_goes_on_where_it_was(fake: FakeCRI, tmp_path: Path) -> None:
    new = sized("2", "50Mi", 2)
    with World(fake, tmp_path, api=True) as world:
        world.want(old := sized("1", "100Mi"))
        world.until_running(old)
        fake.memory_used = 60 * MI
        world.want(new)
        world.until(lambda: condition(world, new, "PodResizeInProgress").get("reason") == "Error", "the error")
    fake.memory_used = 10 * MI
    with World(fake, tmp_path, api=True) as world:
        world.want(new)
        world.until(lambda: settled(world, new), "the resize")
        assert resources(world, new) == asked_of(new)
        assert fake.requests("UpdateContainerResources")[-1].linux.memory_limit_in_bytes == 50 * MI


def test_a_runtime_that_does_not_know_pods_sizes_is_no_obstacle(world: World, fake: FakeCRI) -> None:
    fake.fail("UpdatePodSandboxResources", "UNIMPLEMENTED", "unknown method")
    world.want(old := sized("1", "100Mi"))
    world.until_running(old)
    world.want(new := sized("2", "100Mi", 2))
    world.until(lambda: settled(world, new), "the resize")
    assert fake.count("UpdateContainerResources") == 1


class Late(World):
    """A world in which the cgroups room has not told of the node yet."""

    told = False

    def give_facts(self, **allocatable: int) -> None:
        if self.told:
            super().give_facts(**allocatable)
        else:
            self.give_state()


def test_a_resize_waits_for_what_the_node_offers(fake: FakeCRI, tmp_path: Path) -> None:
    with World(fake, tmp_path, api=True) as world:
        world.want(old := sized("1", "100Mi"))
        world.until_running(old)
    new = sized("2", "100Mi", 2)
    with Late(fake, tmp_path, api=True) as world:
        world.want(new)
        worker = world.until(lambda: world.runner.room.workers.get(new["metadata"]["uid"]), "the record to be read")
        world.until(lambda: worker.wish and worker.fresh and worker.confirmed, "all else to be known")
        world.runner.run_here(lambda: world.runner.room.touch(worker))
        world.runner.run_here(lambda: None)  # a turn later it was looked at
        assert not fake.count("UpdateContainerResources")
        world.told = True
        world.give_facts()
        world.until(lambda: settled(world, new), "the resize")
        assert resources(world, new) == asked_of(new)
