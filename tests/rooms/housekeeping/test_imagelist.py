"""The list of images: sent where it changed, and only where there is an API server to report it to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kubelet_mp.config import KubeletConfiguration, Settings
from kubelet_mp.rooms.housekeeping.room import HousekeepingRoom
from kubelet_mp.wire.messages import NodeImages
from tests.fakes.cri import FakeCRI
from tests.fakes.link import RoomRunner
from tests.support import wait_until


@pytest.fixture
def fake() -> Iterator[FakeCRI]:
    with FakeCRI() as fake:
        fake.add_image("docker.io/library/a:1")
        yield fake


def runner(fake: FakeCRI, tmp_path: Path, kubeconfig: str = "some") -> RoomRunner:
    kubelet = KubeletConfiguration(container_runtime_endpoint=fake.endpoint, pod_logs_dir=str(tmp_path),
                                   node_status_update_frequency="20ms")
    settings = Settings(node_name="node", root_dir=str(tmp_path), kubelet=kubelet, kubeconfig=kubeconfig)
    return RoomRunner(HousekeepingRoom, settings, links=str(tmp_path))


def tags(message: NodeImages) -> set[str]:
    return {tag for image in message.images for tag in image.tags}


def test_images_are_sent_where_they_changed(fake: FakeCRI, tmp_path: Path) -> None:
    with runner(fake, tmp_path) as room:
        assert tags(room.wait_for(NodeImages)) == {"docker.io/library/a:1"}
        count = fake.count("ListImages")
        wait_until(lambda: fake.count("ListImages") > count + 2)
        assert len(room.link.of(NodeImages)) == 1
        fake.add_image("docker.io/library/b:1")
        room.wait_for(NodeImages, lambda m: "docker.io/library/b:1" in tags(m))


def test_a_reporter_that_starts_is_told(fake: FakeCRI, tmp_path: Path) -> None:
    with runner(fake, tmp_path) as room:
        room.wait_for(NodeImages)
        room.come_up("reporter")
        wait_until(lambda: room.link.of(NodeImages, to="reporter"))


def test_a_failure_is_no_empty_list(fake: FakeCRI, tmp_path: Path) -> None:
    fake.fail("ListImages", "UNAVAILABLE", "away", times=2)
    with runner(fake, tmp_path) as room:
        assert room.wait_for(NodeImages).images


def test_standalone_nothing_is_listed(fake: FakeCRI, tmp_path: Path) -> None:
    with runner(fake, tmp_path, kubeconfig="") as room:
        room.run_here(lambda: None)
        assert room.room.images is None and not fake.count("ListImages")
