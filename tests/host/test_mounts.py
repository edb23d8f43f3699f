import errno
import os
from pathlib import Path

import pytest

from kubelet_mp.host import mounts

TABLE = r"""
20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
21 20 0:20 / /var/lib/kubelet/pods/u/volumes/x\040y rw - tmpfs tmpfs rw,size=10240k
22 20 0:21 /sub /var/lib/kubelet/pods/u/volumes rw,nosuid - ext4 /dev/sdb rw
23 22 0:22 / /var/lib/kubelet/pods/u2 rw - tmpfs tmpfs rw
"""
PODS = "/var/lib/kubelet/pods"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")


def test_lines_are_parsed_and_unescaped():
    table = mounts.parse_mountinfo(TABLE)
    assert [m.path for m in table][1] == f"{PODS}/u/volumes/x y"
    assert table[0].shared and not table[1].shared
    assert table[1].super_options == {"rw", "size=10240k"}
    assert (table[2].root, table[2].fs_type, table[2].source) == ("/sub", "ext4", "/dev/sdb")


def test_mounts_below_a_directory_come_newest_first_and_by_whole_components():
    found = mounts.under(mounts.parse_mountinfo(TABLE), f"{PODS}/u")
    assert [m.id for m in found] == [22, 21]


def test_the_mount_that_holds_a_path():
    table = mounts.parse_mountinfo(TABLE)
    assert mounts.containing(table, f"{PODS}/u2/x").id == 23  # type: ignore[union-attr]
    assert mounts.containing(table, f"{PODS}/u22").id == 20  # type: ignore[union-attr]
    assert mounts.at(table, f"{PODS}/u22") is None


@needs_root
def test_a_tmpfs_comes_and_goes(tmp_path: Path):
    target = str(tmp_path.resolve())
    mounts.mount("tmpfs", target, "tmpfs", data="size=65536")
    try:
        found = mounts.at(mounts.mount_table(), target)
        assert found is not None and found.fs_type == "tmpfs" and "size=64k" in found.super_options
    finally:
        assert mounts.umount(target)
    assert mounts.at(mounts.mount_table(), target) is None
    assert mounts.umount(target) is False


@needs_root
def test_a_busy_mount_says_so(tmp_path: Path):
    target = str(tmp_path.resolve())
    mounts.mount("tmpfs", target, "tmpfs")
    held = os.open(target, os.O_RDONLY)
    try:
        with pytest.raises(mounts.MountCallError, match="cannot unmount") as caught:
            mounts.umount(target)
        assert caught.value.errno == errno.EBUSY
    finally:
        os.close(held)
        mounts.umount(target)


@needs_root
def test_unmount_does_not_follow_a_symlink(tmp_path: Path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    mounts.mount("tmpfs", str(real), "tmpfs")
    try:
        assert mounts.umount(str(link)) is False
        assert mounts.at(mounts.mount_table(), str(real.resolve())) is not None
    finally:
        mounts.umount(str(real))


@needs_root
def test_a_refused_mount_names_the_target(tmp_path: Path):
    with pytest.raises(mounts.MountCallError, match=f'cannot mount nosuchfs on "{tmp_path}".*kernel module'):
        mounts.mount("none", str(tmp_path), "nosuchfs")


@needs_root
def test_a_directory_is_made_shared_once(tmp_path: Path):
    target = str(tmp_path.resolve())
    table = [m for m in mounts.mount_table() if not m.shared]
    mounts.make_shared(target, table)
    try:
        made = mounts.at(mounts.mount_table(), target)
        assert made is not None and made.shared
        mounts.make_shared(target)
        assert len([m for m in mounts.mount_table() if m.path == target]) == 1
    finally:
        mounts.umount(target)


def test_the_table_of_this_process_has_a_root():
    assert mounts.at(mounts.mount_table(), "/") is not None
