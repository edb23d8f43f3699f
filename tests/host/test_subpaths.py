import os
import stat
from pathlib import Path

import pytest

from kubelet_mp.errors import HostError
from kubelet_mp.host import mounts
from kubelet_mp.host.files import FileError, FileTooLarge, MissingFile
from kubelet_mp.host.removal import remove_tree
from kubelet_mp.host.subpaths import SubPathError, prepare, read_text, target_path

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="bind mounts need root")


@pytest.fixture
def place(tmp_path: Path):
    volume = tmp_path / "volume"
    volume.mkdir()
    volume.chmod(0o1777)
    yield volume, target_path(str(tmp_path), "u", "v", "c", 0)
    for mount in mounts.under(mounts.mount_table(), str(tmp_path.resolve())):
        mounts.umount(mount.path)
    remove_tree(str(tmp_path / "pods"))


def test_a_directory_behind_a_link_inside_the_volume(place):
    volume, target = place
    (volume / "real").mkdir()
    (volume / "real/f").write_text("inside")
    (volume / "good").symlink_to("real")
    assert prepare(str(volume), "good", target) == target
    assert target.endswith("/pods/u/volume-subpaths/v/c/0")
    assert (Path(target) / "f").read_text() == "inside"


def test_a_file(place):
    volume, target = place
    (volume / "f").write_text("x")
    prepare(str(volume), "f", target)
    assert Path(target).read_text() == "x"


@pytest.mark.parametrize("link", ["/", "../../../../../../..", "/etc"])
@pytest.mark.parametrize("rest", ["", "/new/dir"])
def test_links_out_of_the_volume_are_refused(place, link: str, rest: str):
    volume, target = place
    (volume / "esc").symlink_to(link)
    with pytest.raises(SubPathError, match="leads out"):
        prepare(str(volume), f"esc{rest}", target)
    assert not os.path.exists(target) and not os.path.exists("/new/dir") and not os.path.exists("/etc/new")


def test_a_link_to_nowhere_is_refused(place):
    volume, target = place
    (volume / "dangling").symlink_to("nothing")
    with pytest.raises(HostError):
        prepare(str(volume), "dangling", target)


def test_what_is_missing_is_made_with_the_mode_of_the_volume(place):
    volume, target = place
    prepare(str(volume), "new/dir", target)
    assert [stat.S_IMODE(p.stat().st_mode) for p in (volume / "new", volume / "new/dir")] == [0o1777, 0o1777]
    assert stat.S_IMODE(os.stat(target).st_mode) == 0o1777


def test_a_bind_that_shows_the_same_is_kept_and_another_replaced(place):
    volume, target = place
    (volume / "d").mkdir()
    prepare(str(volume), "d", target)
    prepare(str(volume), "d", target)
    assert len([m for m in mounts.mount_table() if m.path == os.path.realpath(target)]) == 1
    (volume / "d").rename(volume / "old")
    (volume / "d").mkdir()
    (volume / "d/new").write_text("x")
    prepare(str(volume), "d", target)
    assert os.listdir(target) == ["new"]
    assert len([m for m in mounts.mount_table() if m.path == os.path.realpath(target)]) == 1


def test_no_descriptor_is_left_open(place):
    volume, target = place
    (volume / "esc").symlink_to("/")
    before = len(os.listdir("/proc/self/fd"))
    prepare(str(volume), "a/b/c", target)
    with pytest.raises(SubPathError):
        prepare(str(volume), "esc", target + "x")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_is_read_only_where_it_lies_inside_the_volume(place):
    volume, _ = place
    (volume / "d").mkdir()
    (volume / "d/f").write_text("text")
    (volume / "link").symlink_to("d/f")
    (volume / "out").symlink_to("/etc/hostname")
    os.mkfifo(volume / "pipe")
    assert read_text(str(volume), "d/f", 4) == read_text(str(volume), "link", 4) == "text"
    with pytest.raises(SubPathError, match="leads out"):
        read_text(str(volume), "out", 100)
    with pytest.raises(FileTooLarge):
        read_text(str(volume), "d/f", 3)
    with pytest.raises(MissingFile):
        read_text(str(volume), "none", 100)
    for name in ("pipe", "d"):
        with pytest.raises(FileError):
            read_text(str(volume), name, 100)
