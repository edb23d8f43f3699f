"""The file source on real files; time is moved by hand."""

import os
import time

import pytest

from kubelet_mp.host.inotify import Watcher, WatchError
from kubelet_mp.model.document import MAX_BYTES
from kubelet_mp.rooms.sources.file import FileSource
from kubelet_mp.rooms.sources.settle import BROKEN_HOLD, GONE_HOLD
from tests.support import FakeClock

POD = """apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  containers:
  - {name: c, image: "busybox:1", args: ["ARG"]}
"""


def manifest(name, arg="x"):
    return POD.replace("NAME", name).replace("ARG", arg)


@pytest.fixture
def clock():
    return FakeClock(wall=time.time())


@pytest.fixture
def make(clock):
    made = []

    def source(path):
        made.append(FileSource(str(path), "node", 20.0, lambda: None, clock))
        return made[-1]

    yield source
    for one in made:
        one.close()


def names(reading):
    return sorted(pod["metadata"]["name"] for item in reading.items.values() for pod in item.pods)


def problems(reading):
    return {os.path.basename(origin): item.problem for origin, item in reading.items.items() if item.problem}


def settled(source, clock):
    """The reading when every hold is over."""
    source.read()
    clock.advance(BROKEN_HOLD)
    return source.read()


def test_only_plain_visible_files_of_the_directory_itself_are_read(tmp_path, make, clock):
    (tmp_path / "b.yaml").write_text(manifest("b"))
    (tmp_path / "a.yaml.bak").write_text(manifest("a"))
    (tmp_path / ".web.yaml.swp").write_text(manifest("swap"))
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.yaml").write_text(manifest("c"))
    (tmp_path / "link").symlink_to("sub/c.yaml")
    reading = make(tmp_path).read()
    assert (names(reading), problems(reading), reading.ready) == (["a-node", "b-node", "c-node"], {}, True)
    assert list(reading.items) == [str(tmp_path / name) for name in ("a.yaml.bak", "b.yaml", "link", "sub")]
    assert reading.items[str(tmp_path / "sub")].warnings == ("this directory in the manifest directory is not read",)


def test_a_file_is_decoded_again_only_when_its_content_changed(tmp_path, make, clock):
    path = tmp_path / "a"
    path.write_text(manifest("a"))
    source = make(tmp_path)
    first = source.read().items[str(path)]
    assert source.read().items[str(path)] is first
    os.utime(path, (1, 1))
    assert source.read().items[str(path)].pods[0] is first.pods[0]
    path.write_text(manifest("a", "y"))
    second = source.read().items[str(path)]
    assert second.pods[0]["metadata"]["uid"] != first.pods[0]["metadata"]["uid"]


def test_a_change_within_one_tick_of_the_file_times_is_seen(tmp_path, make, clock):
    path = tmp_path / "a"
    path.write_text(manifest("a", "1"))
    source = make(tmp_path)
    source.read()
    before = path.stat()
    with open(path, "r+") as file:
        file.write(manifest("a", "2"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert source.read().items[str(path)].pods[0]["spec"]["containers"][0]["args"] == ["2"]


def test_what_is_wrong_with_a_file_is_told_and_others_stay(tmp_path, make, clock):
    (tmp_path / "good").write_text(manifest("good"))
    (tmp_path / "half").write_text(manifest("half")[:70])
    (tmp_path / "deploy").write_text("apiVersion: apps/v1\nkind: Deployment\n")
    (tmp_path / "empty").touch()
    (tmp_path / "bin").write_bytes(b"\x7fELF\xff")
    with open(tmp_path / "huge", "w") as file:
        file.truncate(MAX_BYTES + 1)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to("nowhere")
    reading = settled(make(tmp_path), clock)
    assert names(reading) == ["good-node"]
    found = problems(reading)
    assert found.keys() == {"half", "deploy", "empty", "bin", "huge", "pipe", "dangling"}
    assert "spec.containers: Required value" in found["half"] and "a apps/v1 Deployment" in found["deploy"]
    assert "larger than 10485760 bytes" in found["huge"] and "not a regular file" in found["pipe"]


def test_a_removed_or_moved_file(tmp_path, make, clock):
    (tmp_path / "a").write_text(manifest("a"))
    source = make(tmp_path)
    source.read()
    (tmp_path / "a").rename(tmp_path / ".a")
    reading = source.read()
    assert names(reading) == ["a-node"] and 0 < reading.recheck < 2 * GONE_HOLD
    (tmp_path / ".a").rename(tmp_path / "a")
    assert names(source.read()) == ["a-node"]
    (tmp_path / "a").unlink()
    assert names(settled(source, clock)) == []


def test_a_half_written_file_keeps_its_pod_for_a_moment(tmp_path, make, clock):
    path = tmp_path / "a"
    path.write_text(manifest("a", "V1"))
    source = make(tmp_path)
    source.read()
    path.write_text(manifest("a", "V2")[:70])
    assert names(source.read()) == ["a-node"]
    reading = settled(source, clock)
    assert names(reading) == [] and problems(reading).keys() == {"a"}
    path.write_text(manifest("a", "V2"))
    reading = source.read()
    assert names(reading) == ["a-node"] and not problems(reading)


def test_a_path_that_is_missing_and_appears(tmp_path, make, clock):
    source = make(tmp_path / "etc" / "manifests")
    reading = source.read()
    assert (names(reading), reading.ready) == ([], True)
    assert "does not exist" in problems(reading)["manifests"]
    (tmp_path / "etc" / "manifests").mkdir(parents=True)
    (tmp_path / "etc" / "manifests" / "a").write_text(manifest("a"))
    reading = source.read()
    assert (names(reading), problems(reading)) == (["a-node"], {})


def test_a_single_file_that_is_replaced_and_removed(tmp_path, make, clock):
    path = tmp_path / ".pod.yaml"  # a single file may have any name
    path.write_text(manifest("a"))
    (tmp_path / "other").write_text(manifest("b"))
    source = make(f"{path}/")
    assert names(source.read()) == ["a-node"]
    path.unlink()
    assert names(source.read()) == ["a-node"]
    reading = settled(source, clock)
    assert names(reading) == [] and "does not exist" in problems(reading)[".pod.yaml"]


def test_a_path_that_cannot_be_read_changes_nothing(tmp_path, make, clock):
    place = tmp_path / "d"
    place.mkdir()
    (place / "a").write_text(manifest("a"))
    source = make(place)
    source.read()
    place.rename(tmp_path / "away")
    os.mkfifo(place)
    reading = source.read()
    assert names(reading) == ["a-node"] and "neither a directory nor a file" in problems(reading)["d"]
    never = make(place).read()
    assert (names(never), never.ready) == ([], False)


def test_times_and_origins_are_in_the_pod(tmp_path, make, clock):
    path = tmp_path / "a"
    path.write_text(manifest("a"))
    source = make(tmp_path)
    pod = source.read().items[str(path)].pods[0]
    assert pod["metadata"]["annotations"]["kubernetes.io/config.seen"].endswith("Z")
    assert pod["metadata"]["annotations"]["kubernetes.io/config.source"] == "file"
    other = tmp_path / "b"
    path.rename(other)
    assert source.read().items[str(other)].pods[0]["metadata"]["uid"] != pod["metadata"]["uid"]


def test_a_name_that_is_not_utf8(tmp_path, make, clock):
    (tmp_path / os.fsdecode(b"\xff.yaml")).write_text(manifest("a"))
    assert names(make(tmp_path).read()) == ["a-node"]


def test_without_inotify_it_polls_says_so_and_tries_again(tmp_path, clock):
    exhausted = [True]

    def scarce(notify):
        if exhausted:
            raise WatchError("cannot watch anything: Too many open files", "raise the sysctl")
        return Watcher(notify)

    source = FileSource(str(tmp_path), "node", 20.0, lambda: None, clock, scarce)
    (tmp_path / "a").write_text(manifest("a"))
    reading = source.read()
    assert names(reading) == ["a-node"]
    assert reading.note == \
        "changes are noticed only every 20 s: cannot watch anything: Too many open files (fix: raise the sysctl)"
    exhausted.clear()
    assert source.read().note == ""
    source.close()
