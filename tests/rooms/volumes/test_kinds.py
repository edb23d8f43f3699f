import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubelet_mp.errors import HostError
from kubelet_mp.host import mounts
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.rooms.volumes.dirs import Dirs
from kubelet_mp.rooms.volumes.kinds import Job, VolumeError, kind_of
from kubelet_mp.rooms.volumes.kinds.downward import item_files
from kubelet_mp.rooms.volumes.kinds.emptydir import memory_size, page_size
from kubelet_mp.rooms.volumes.takedown import free, known_pods, remove_pod

MI = 1 << 20
NODE = NodeView(node_name="n", allocatable={"memory": 512 * MI, "cpu": 2000})
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts and groups need root")


def container(name: str, **limits: str) -> dict[str, Any]:
    return {"name": name, "resources": {"limits": limits}}


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    meta = {"uid": "u", "name": "p", "namespace": "d", "labels": {"b": 'x"y', "a": "1"}}
    return {"metadata": meta, "spec": {"containers": list(containers) or [container("c")], **spec}}


@pytest.fixture
def dirs(tmp_path: Path) -> Iterator[Dirs]:
    root = tmp_path.resolve()
    yield Dirs(str(root))
    for mount in mounts.under(mounts.mount_table(), str(root)):
        mounts.umount(mount.path)


def job(dirs: Dirs, volume: dict[str, Any], of: dict[str, Any] | None = None, node: NodeView = NODE) -> Job:
    return Job(of or pod(), {"name": "v", **volume}, dirs, node)


def set_up(work: Job) -> str:
    return kind_of(work.volume).set_up(work)


def mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


# ---- emptyDir ----


def test_an_empty_dir_on_disk(dirs: Dirs):
    old = os.umask(0o077)
    try:
        path = set_up(job(dirs, {"emptyDir": {}}))
    finally:
        os.umask(old)
    assert path == f"{dirs.root}/pods/u/volumes/kubernetes.io~empty-dir/v"
    assert mode(path) == 0o777
    assert {mode(d) for d in (dirs.pod("u"), dirs.volumes("u"), os.path.dirname(path), dirs.plugins("u"))} == {0o750}
    assert os.path.exists(f"{dirs.root}/pods/u/plugins/kubernetes.io~empty-dir/v/ready")


def test_a_second_set_up_leaves_the_content_and_modes(dirs: Dirs):
    path = set_up(job(dirs, {"emptyDir": {}}))
    Path(path, "f").write_text("x")
    os.chmod(path, 0o700)
    assert set_up(job(dirs, {"emptyDir": {}})) == path
    assert os.listdir(path) == ["f"] and mode(path) == 0o700


@needs_root
def test_fs_group_owns_an_empty_dir(dirs: Dirs):
    path = set_up(job(dirs, {"emptyDir": {}}, pod(securityContext={"fsGroup": 4321})))
    assert os.stat(path).st_gid == 4321 and mode(path) == 0o2777


SIZES = pod(container("a", cpu="250m", memory="32Mi"), container("b", memory="32Mi"))


@pytest.mark.parametrize(("limit", "of", "size"), [
    ("100Mi", SIZES, 64 * MI),
    ("10Mi", SIZES, 10 * MI),
    (None, SIZES, 64 * MI),
    (None, pod(container("a", memory="32Mi"), container("b")), 512 * MI),
    ("1Gi", pod(), 512 * MI),
])  # fmt: skip
def test_the_least_of_node_pod_and_size_limit(dirs: Dirs, limit: str | None, of: dict[str, Any], size: int):
    source = {"medium": "Memory"} | ({"sizeLimit": limit} if limit else {})
    assert memory_size(job(dirs, {"emptyDir": source}, of)) == size


@needs_root
def test_an_empty_dir_in_memory_is_mounted_once(dirs: Dirs):
    work = job(dirs, {"emptyDir": {"medium": "Memory", "sizeLimit": "10Mi"}}, SIZES)
    path = set_up(work)
    Path(path, "f").write_text("x")
    assert set_up(work) == path
    found = [m for m in mounts.mount_table() if m.path == path]
    assert len(found) == 1 and found[0].fs_type == "tmpfs" and "size=10240k" in found[0].super_options
    assert os.listdir(path) == ["f"]


@needs_root
def test_a_lost_memory_mount_is_made_again(dirs: Dirs):
    work = job(dirs, {"emptyDir": {"medium": "Memory"}}, SIZES)
    path = set_up(work)
    mounts.umount(path)
    set_up(work)
    assert os.path.ismount(path)


@needs_root
@pytest.mark.skipif(not os.path.isdir("/sys/kernel/mm/hugepages/hugepages-2048kB"), reason="no 2 MiB pages")
def test_an_empty_dir_in_huge_pages(dirs: Dirs):
    path = set_up(job(dirs, {"emptyDir": {"medium": "HugePages-2Mi"}}))
    found = mounts.at(mounts.mount_table(), path)
    assert found is not None and found.fs_type == "hugetlbfs" and "pagesize=2M" in found.super_options


def test_the_page_size_comes_from_the_only_request(dirs: Dirs):
    two = pod(container("c", **{"hugepages-2Mi": "4Mi"}))
    assert page_size(job(dirs, {"emptyDir": {}}, two), "HugePages") == "2Mi"
    assert page_size(job(dirs, {"emptyDir": {}}), "HugePages-1Gi") == "1Gi"
    both = pod(container("c", **{"hugepages-2Mi": "4Mi", "hugepages-1Gi": "1Gi"}))
    for of, says in ((both, "several sizes"), (pod(), "no huge pages")):
        with pytest.raises(VolumeError, match=says):
            page_size(job(dirs, {"emptyDir": {}}, of), "HugePages")


def test_an_unknown_medium_is_refused(dirs: Dirs):
    with pytest.raises(VolumeError, match="unknown storage medium 'Tape'"):
        set_up(job(dirs, {"emptyDir": {"medium": "Tape"}}))


# ---- hostPath ----


def host_path(dirs: Dirs, path: object, type_: str | None) -> str:
    return set_up(job(dirs, {"hostPath": {"path": str(path), "type": type_}}))


def test_a_host_path_without_type_is_not_looked_at(dirs: Dirs):
    assert host_path(dirs, "/no/such/path", None) == "/no/such/path"
    assert not os.path.exists("/no/such/path")


def test_or_create_makes_what_is_missing(dirs: Dirs, tmp_path: Path):
    old = os.umask(0o022)
    try:
        host_path(dirs, tmp_path / "a/b", "DirectoryOrCreate")
        host_path(dirs, tmp_path / "a/f", "FileOrCreate")
    finally:
        os.umask(old)
    assert mode(str(tmp_path / "a/b")) == 0o755 and mode(str(tmp_path / "a/f")) == 0o644
    host_path(dirs, tmp_path / "a/b", "Directory")
    host_path(dirs, tmp_path / "a/f", "File")
    with pytest.raises(VolumeError, match="doesn't exist"):
        host_path(dirs, tmp_path / "no/f", "FileOrCreate")


def test_special_files(dirs: Dirs, tmp_path: Path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        assert host_path(dirs, tmp_path / "s", "Socket")
    assert host_path(dirs, "/dev/null", "CharDevice") == "/dev/null"


@pytest.mark.parametrize(("path", "type_", "text"), [
    ("/dev/null", "Directory", "hostPath type check failed: /dev/null is not a directory, it's a CharDevice"),
    ("/dev", "FileOrCreate", "hostPath type check failed: /dev is not a file, it's a Directory"),
    ("/etc/passwd", "DirectoryOrCreate", "hostPath type check failed: /etc/passwd is not a directory, it's a File"),
    ("/etc/passwd", "Socket", "hostPath type check failed: /etc/passwd is not a socket file, it's a File"),
    ("/dev/null", "BlockDevice", "hostPath type check failed: /dev/null is not a block device, it's a CharDevice"),
    ("/etc/passwd", "CharDevice", "hostPath type check failed: /etc/passwd is not a character device, it's a File"),
    ("/no/such", "Directory", "hostPath /no/such doesn't exist"),
    ("/etc", "Tape", "Tape is an invalid volume type"),
    ("/etc/../x", None, "invalid HostPath `/etc/../x`: must not contain '..'"),
])  # fmt: skip
def test_mismatches_in_the_words_that_operators_know(dirs: Dirs, path: str, type_: str | None, text: str):
    with pytest.raises(VolumeError) as caught:
        host_path(dirs, path, type_)
    assert caught.value.message == text


# ---- image, downwardAPI, nfs ----


def test_an_image_volume_has_no_path(dirs: Dirs):
    assert set_up(job(dirs, {"image": {"reference": "x"}})) == ""
    assert not os.path.exists(dirs.pod("u"))


ITEMS = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
         {"path": "d/cpu", "mode": 0o400, "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu"}}]


def test_files_of_the_downward_api(dirs: Dirs):
    found = item_files(job(dirs, {"downwardAPI": {}}, pod(container("c", cpu="250m"))), ITEMS, 0o600)
    assert found["labels"].data == b'a="1"\nb="x\\"y"' and found["labels"].mode == 0o600
    assert (found["d/cpu"].data, found["d/cpu"].mode) == (b"1", 0o400)


@needs_root
@pytest.mark.parametrize(("source", "plugin"), [
    ({"downwardAPI": {"items": ITEMS}}, "downward-api"),
    ({"projected": {"sources": [{"downwardAPI": {"items": ITEMS}}]}}, "projected"),
])  # fmt: skip
def test_a_downward_volume_follows_its_pod(dirs: Dirs, source: dict[str, Any], plugin: str):
    of = pod(container("c", cpu="2"))
    path = set_up(job(dirs, source, of))
    assert path.endswith(f"/kubernetes.io~{plugin}/v") and os.path.ismount(path)
    of["metadata"]["labels"] = {"new": "1"}
    assert set_up(job(dirs, source, of)) == path
    assert Path(path, "labels").read_text() == 'new="1"'
    free(dirs, "u")
    assert not os.path.exists(path) and not os.path.exists(dirs.marker("u", "wrapped_v"))


@pytest.mark.parametrize("item", [
    {"path": "../x", "fieldRef": {"fieldPath": "metadata.name"}},
    {"path": "x", "fieldRef": {"fieldPath": "spec.nope"}},
    {"path": "x", "resourceFieldRef": {"containerName": "other", "resource": "limits.cpu"}},
])  # fmt: skip
def test_bad_items_are_named(dirs: Dirs, item: dict[str, Any]):
    with pytest.raises(VolumeError):
        item_files(job(dirs, {"downwardAPI": {}}), [item], 0o644)


def test_nfs_says_what_is_missing_or_why_it_failed(dirs: Dirs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(VolumeError, match=r"mount\.nfs is not on this node"):
        set_up(job(dirs, {"nfs": {"server": "192.0.2.1", "path": "/x"}}))


# ---- taking down ----


@needs_root
def test_everything_of_a_pod_goes_and_its_other_files_stay(dirs: Dirs):
    memory = set_up(job(dirs, {"name": "m", "emptyDir": {"medium": "Memory"}}))
    disk = set_up(job(dirs, {"name": "d", "emptyDir": {}}))
    Path(disk, "deep").mkdir()
    Path(disk, "link").symlink_to("/etc")
    Path(memory, "f").write_text("x")
    other = Path(dirs.pod("u"), "etc-hosts")
    other.write_text("x")
    sub = f"{dirs.subpaths('u')}/d/c/0"
    os.makedirs(sub)
    mounts.bind(disk, sub)
    free(dirs, "u")
    assert not os.path.exists(memory) and not os.path.exists(disk) and not os.path.exists(dirs.subpaths("u"))
    assert not os.path.exists(dirs.marker("u", "d"))
    assert other.exists() and os.path.exists("/etc/passwd")
    free(dirs, "u")
    assert known_pods(dirs) == ["u"]
    remove_pod(dirs, "u")
    assert known_pods(dirs) == []


@needs_root
def test_a_volume_in_use_is_told_and_taken_down_later(dirs: Dirs):
    path = set_up(job(dirs, {"emptyDir": {"medium": "Memory"}}))
    held = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(HostError, match="cannot unmount"):
            remove_pod(dirs, "u")
    finally:
        os.close(held)
    remove_pod(dirs, "u")
    assert not os.path.exists(dirs.pod("u"))


def test_a_directory_of_a_foreign_plugin_must_be_empty(dirs: Dirs):
    foreign = Path(dirs.volume("u", "example.com/disk", "v"))
    foreign.mkdir(parents=True)
    (foreign / "data").write_text("x")
    with pytest.raises(HostError, match="cannot remove directory"):
        remove_pod(dirs, "u")
    assert (foreign / "data").exists()


def test_a_pod_without_directory_is_free(dirs: Dirs):
    free(dirs, "ghost")
    remove_pod(dirs, "ghost")
    assert known_pods(dirs) == []
