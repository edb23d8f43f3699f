"""The housekeeping room against a runtime that speaks gRPC, on real files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cri_api.v1 import api_pb2 as pb

from kubelet_mp.config import KubeletConfiguration, Settings
from kubelet_mp.host.cri import Runtime
from kubelet_mp.model.runtime import PodRuntime
from kubelet_mp.rooms.housekeeping.gc import PERIOD
from kubelet_mp.rooms.housekeeping.room import HousekeepingRoom
from kubelet_mp.wire.messages import AdmittedSet, Event, PodForgotten, PodRuntimeChanged, RelistDone, StatusSet
from tests.fakes.cri import FakeCRI
from tests.fakes.link import RoomRunner
from tests.support import wait_until


class Node:
    """A fake runtime, log directories, and the room that keeps them tidy. `tell` is what pleg would send."""

    def __init__(self, root: Path, fake: FakeCRI) -> None:
        self.root, self.fake = root, fake
        self.logs, self.links = root / "pods", root / "containers"
        self.logs.mkdir()
        self.links.mkdir()
        kubelet = KubeletConfiguration(
            container_runtime_endpoint=fake.endpoint, pod_logs_dir=str(self.logs),
            container_log_max_size="1Ki", container_log_max_files=3, container_log_monitor_interval="20ms",
        )
        settings = Settings(node_name="node", root_dir=str(root), kubelet=kubelet)
        self.runner = RoomRunner(HousekeepingRoom, settings, links=str(self.links))
        self.runtime = Runtime(fake.endpoint)
        fake.add_image("i")

    def sandbox(self, uid: str) -> str:
        config = pb.PodSandboxConfig(metadata=pb.PodSandboxMetadata(name=f"p{uid}", namespace="ns", uid=uid),
                                     labels={"io.kubernetes.pod.uid": uid},
                                     log_directory=str(self.logs / f"ns_p{uid}_{uid}"))
        return self.fake.RunPodSandbox(pb.RunPodSandboxRequest(config=config)).pod_sandbox_id

    def container(self, box: str, attempt: int = 0, name: str = "c") -> str:
        uid = self.fake.sandboxes[box].status.metadata.uid
        config = pb.ContainerConfig(metadata=pb.ContainerMetadata(name=name, attempt=attempt),
                                    image=pb.ImageSpec(image="i"), log_path=f"{name}/{attempt}.log",
                                    labels={"io.kubernetes.pod.uid": uid})
        made = self.fake.CreateContainer(pb.CreateContainerRequest(pod_sandbox_id=box, config=config)).container_id
        self.fake.StartContainer(pb.StartContainerRequest(container_id=made))
        (self.links / f"p{uid}_ns_{name}-{made}.log").symlink_to(self.log(made))
        return made

    def log(self, container: str) -> Path:
        return Path(self.fake.container(container).status.log_path)

    def tell(self, *uids: str) -> None:
        """The runtime's present state of these pods, and a full listing."""
        for uid in uids:
            boxes = tuple(self.runtime.sandbox_status(b.id) for b in self.runtime.list_sandboxes(uid))
            containers = tuple(self.runtime.container_status(c.id, c.sandbox_id)
                               for c in self.runtime.list_containers(uid))
            self.runner.give(PodRuntimeChanged(uid, PodRuntime(uid, f"p{uid}", "ns", boxes, containers)))
        present = frozenset(b.uid for b in self.runtime.list_sandboxes())
        self.runner.give(RelistDone(0.0, present))

    def owned(self, admitted: Iterable[str] = (), shown: Iterable[str] = (), ready: bool = True) -> None:
        """What the pods room would say that it owns."""
        self.runner.give(AdmittedSet(frozenset(admitted), ready), StatusSet(frozenset(shown)))

    def full_pass(self) -> None:
        self.runner.run_here(self.runner.room.gc.full_pass)
        wait_until(lambda: not self.runner.room.gc._crew._busy, 5, "the end of the pass")

    def rotated(self, container: str) -> list[str]:
        return sorted(os.listdir(self.log(container).parent))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with FakeCRI(logs=True) as fake:
        node = Node(tmp_path, fake)
        with node.runner:
            yield node
        node.runtime.close()


def fill(node: Node, container: str, times: int = 1) -> None:
    for _ in range(times):
        node.fake.log(container, "x" * 1200)


# ---- rotation ----


def test_a_log_that_is_too_large_is_rotated_and_reopened(node: Node) -> None:
    container = node.container(node.sandbox("u"))
    node.tell("u")
    fill(node, container)
    wait_until(lambda: len(node.rotated(container)) == 2, 5, "a rotation")
    wait_until(lambda: node.log(container).stat().st_size == 0)
    assert node.fake.count("ReopenContainerLog") == 1


def test_nothing_is_asked_while_nothing_is_too_large(node: Node) -> None:
    node.container(node.sandbox("u"))
    node.tell("u")
    before = len(node.fake.calls)
    looks = []
    look = node.runner.room.rotation._inventory.running
    node.runner.run_here(lambda: setattr(node.runner.room.rotation._inventory, "running",
                                         lambda: looks.append(1) or look()))
    wait_until(lambda: len(looks) > 5)
    assert len(node.fake.calls) == before


def test_a_log_that_is_missing_is_opened_anew(node: Node) -> None:
    container = node.container(node.sandbox("u"))
    os.unlink(node.log(container))
    node.tell("u")
    wait_until(node.log(container).exists, 5, "the log")


def test_a_runtime_that_will_not_reopen_keeps_the_log(node: Node) -> None:
    container = node.container(node.sandbox("u"))
    node.fake.fail("ReopenContainerLog", "UNKNOWN", "no", times=2)
    fill(node, container)
    node.tell("u")
    wait_until(lambda: node.fake.count("ReopenContainerLog") >= 2)
    wait_until(lambda: node.rotated(container)[:1] == ["0.log"], 5, "the log in its place again")
    wait_until(lambda: len(node.rotated(container)) == 2, 5, "the rotation at last")


# ---- garbage collection ----


def test_a_finished_pod_keeps_its_containers_and_logs_while_it_has_a_worker(node: Node) -> None:
    box = node.sandbox("u")
    ended = [node.container(box, attempt) for attempt in range(3)]
    for container in ended:
        node.fake.exit_container(container, 1)
    node.fake.StopPodSandbox(pb.StopPodSandboxRequest(pod_sandbox_id=box))
    node.owned(shown={"u"})
    node.tell("u")
    for _ in range(3):
        node.full_pass()
    assert node.fake.count("RemoveContainer") == node.fake.count("RemovePodSandbox") == 0
    assert all(node.log(container).exists() for container in ended)
    node.owned()
    node.runner.give(PodForgotten("u"))
    wait_until(lambda: not node.fake.containers and not node.fake.sandboxes, 5, "all to go with its worker")


def test_a_pod_that_is_gone_loses_everything(node: Node) -> None:
    box = node.sandbox("u")
    container = node.container(box)
    node.owned({"u"})
    node.tell("u")
    node.fake.exit_container(container)
    node.fake.StopPodSandbox(pb.StopPodSandboxRequest(pod_sandbox_id=box))
    node.owned()
    node.runner.give(PodForgotten("u"))
    node.tell("u")
    wait_until(lambda: not node.fake.containers and not node.fake.sandboxes, 5, "the pod to be removed")
    node.tell()

    def clean() -> bool:
        node.full_pass()
        return not os.listdir(node.logs) and not os.listdir(node.links)

    wait_until(clean, 5, "its logs and links to go")


def test_nothing_goes_before_all_sources_are_ready(node: Node) -> None:
    box = node.sandbox("u")
    node.fake.exit_container(node.container(box))
    node.owned(ready=False)
    node.tell("u")
    for _ in range(3):
        node.full_pass()
    assert len(node.fake.containers) == 1 and node.fake.count("RemoveContainer") == 0


def test_a_stranger_goes_after_two_passes_but_not_while_it_runs(node: Node) -> None:
    box = node.sandbox("x")
    ended, running = node.container(box), node.container(box, name="d")
    node.fake.exit_container(ended)
    node.owned({"u"})
    node.tell("x")
    node.full_pass()
    node.full_pass()
    assert ended in node.fake.containers
    node.full_pass()
    assert list(node.fake.containers) == [running]
    assert box in node.fake.sandboxes


def test_directories_of_strangers_go_and_others_stay(node: Node) -> None:
    for name in ("ns_a_gone", "ns_b_wanted", "lost+found", "a_b"):
        (node.logs / name / "c").mkdir(parents=True)
    (node.links / "foreign").symlink_to("/nowhere")
    (node.links / "a_ns_c-122.log").symlink_to("/another/agents/logs/0.log")
    (node.links / "a_ns_c-123.log").symlink_to(node.logs / "ns_a_gone" / "c" / "0.log")
    node.owned({"wanted"})
    node.tell()
    node.full_pass()
    assert (node.logs / "ns_a_gone").exists()
    node.full_pass()
    node.full_pass()
    assert sorted(os.listdir(node.logs)) == ["a_b", "lost+found", "ns_b_wanted"]
    assert sorted(os.listdir(node.links)) == ["a_ns_c-122.log", "foreign"]


def test_what_cannot_be_removed_is_told_as_an_event_and_tried_again(node: Node) -> None:
    box = node.sandbox("u")
    for attempt in range(2):
        node.fake.exit_container(node.container(box, attempt))
    node.fake.fail("RemoveContainer", "UNKNOWN", "busy", times=1)
    node.owned({"u"})
    node.tell("u")
    node.owned()
    node.runner.give(PodForgotten("u"))
    event = node.runner.wait_for(Event)
    assert (event.kind, event.name, event.type, event.reason) == ("Node", "node", "Warning", "ContainerGCFailed")
    assert "ns/pu" in event.message and "busy" in event.message
    assert len(node.fake.containers) == 1
    node.full_pass()
    assert not node.fake.containers


def test_passes_come_every_minute(node: Node) -> None:
    timers: Any = node.runner.run_here(lambda: [t.period for t in node.runner.room.timers._heap])
    assert PERIOD in timers and PERIOD == 60.0


def test_its_work_is_counted(node: Node) -> None:
    text = node.runner.run_here(node.runner.room.metrics_text)
    assert "kubelet_mp_container_log_rotations_total 0" in text.splitlines()
