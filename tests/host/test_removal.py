import os
from pathlib import Path

import pytest

from kubelet_mp.host import mounts
from kubelet_mp.host.removal import DEEPEST, ForeignMount, remove_tree

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")


def test_a_tree_goes_and_what_its_links_point_to_stays(tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    tree = tmp_path / "tree"
    (tree / "a/b").mkdir(parents=True)
    (tree / "a/file").write_text("x")
    (tree / "link").symlink_to(outside)
    (tree / "a/up").symlink_to("..")
    os.mkfifo(tree / "a/pipe")
    assert remove_tree(str(tree)) is True
    assert not tree.exists() and (outside / "kept").exists()
    assert remove_tree(str(tree)) is False
    assert remove_tree(str(tmp_path / "no/such")) is False


def test_a_link_in_place_of_the_tree_is_removed_itself(tmp_path: Path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "tree").symlink_to(tmp_path / "kept")
    assert remove_tree(str(tmp_path / "tree"))
    assert (tmp_path / "kept").is_dir() and not (tmp_path / "tree").is_symlink()


def test_a_tree_deeper_than_paths_can_be_long(tmp_path: Path):
    tree = tmp_path / "tree"
    tree.mkdir()
    fd = os.open(tree, os.O_RDONLY)
    for _ in range(40 * DEEPEST):
        os.mkdir("ddd", dir_fd=fd)
        below = os.open("ddd", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    assert remove_tree(str(tree)) and not tree.exists()


def test_more_entries_than_are_held_at_a_time(tmp_path: Path):
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(5000):
        os.symlink("x", tree / str(number))
    assert remove_tree(str(tree)) and not tree.exists()


@needs_root
@pytest.mark.parametrize("where", ["tree", "tree/a/mounted"])
def test_other_mounts_are_not_entered_not_even_binds(tmp_path: Path, where: str):
    source, target = tmp_path / "source", tmp_path / where
    source.mkdir()
    (source / "precious").write_text("x")
    target.mkdir(parents=True)
    mounts.bind(str(source), str(target))
    try:
        with pytest.raises(ForeignMount, match=str(target)):
            remove_tree(str(tmp_path / "tree"))
        assert (source / "precious").exists()
    finally:
        mounts.umount(str(target))
    assert remove_tree(str(tmp_path / "tree"))
