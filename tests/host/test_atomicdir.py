import os
import re
import stat
from pathlib import Path

import pytest

from kubelet_mp.host.atomicdir import Content, check_path, update

WALL = 1_700_000_000.0


def files(**contents: str) -> dict[str, Content]:
    return {name.replace("__", "/"): Content(text.encode()) for name, text in contents.items()}


def test_layout_of_the_first_version(tmp_path: Path):
    assert update(str(tmp_path), files(a="1", sub__b="2"), WALL) is True
    version = os.readlink(tmp_path / "..data")
    assert re.fullmatch(r"\.\.2023_11_14_22_13_20\.\d+", version)
    assert os.readlink(tmp_path / "a") == "..data/a" and os.readlink(tmp_path / "sub") == "..data/sub"
    assert (tmp_path / "sub/b").read_text() == "2"
    assert stat.S_IMODE((tmp_path / version).stat().st_mode) == 0o755


def test_the_same_content_changes_nothing(tmp_path: Path):
    update(str(tmp_path), files(a="1"), WALL)
    version = os.readlink(tmp_path / "..data")
    (tmp_path / "a").unlink()
    assert update(str(tmp_path), {"a": Content(b"1", 0o600)}, WALL + 9) is False
    assert os.readlink(tmp_path / "..data") == version
    assert (tmp_path / "a").read_text() == "1"  # the link was put back


def test_new_content_replaces_the_version_and_its_links(tmp_path: Path):
    update(str(tmp_path), files(a="1", b="1"), WALL)
    old = os.readlink(tmp_path / "..data")
    assert update(str(tmp_path), files(b="2", c="3"), WALL + 1) is True
    assert sorted(os.listdir(tmp_path)) == sorted(["..data", os.readlink(tmp_path / "..data"), "b", "c"])
    assert not (tmp_path / old).exists() and (tmp_path / "b").read_text() == "2"


def test_modes_are_exact_and_the_hook_sees_the_version_before_it_is_shown(tmp_path: Path):
    seen: list[bool] = []
    payload = {"a": Content(b"1", 0o666), "b": Content(b"2", 0o400)}
    update(str(tmp_path), payload, WALL, lambda version: seen.append((tmp_path / "..data").exists()))
    assert seen == [False]
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"] == [0o666, 0o400]


def test_an_empty_payload_is_valid(tmp_path: Path):
    assert update(str(tmp_path), {}, WALL) is True
    assert update(str(tmp_path), {}, WALL) is False


def test_a_death_in_the_middle_is_healed(tmp_path: Path):
    update(str(tmp_path), files(a="1"), WALL)
    (tmp_path / "..data_tmp").symlink_to("..gone")
    assert update(str(tmp_path), files(a="2"), WALL) is True
    (tmp_path / "..data").unlink()
    (tmp_path / "..data").symlink_to("..gone")
    assert update(str(tmp_path), files(a="2"), WALL) is True
    assert (tmp_path / "a").read_text() == "2"


@pytest.mark.parametrize("path", ["", "/a", "a/../b", "..a", "..", "x" * 256, "d/" * 2048 + "x"])
def test_bad_paths_are_refused(path: str):
    with pytest.raises(ValueError, match="path"):
        check_path(path)


def test_good_paths():
    assert [check_path(path) for path in ("a", "a..b/c", ".a")] == ["a", "a..b/c", ".a"]
