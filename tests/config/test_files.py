"""Merging and reading of configuration files."""

from pathlib import Path
from typing import Any

import pytest

from kubelet_mp.config import files
from kubelet_mp.errors import ConfigError


@pytest.mark.parametrize(
    ("base", "patch", "merged"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ({"a": "foo"}, {"a": {"b": None}}, {"a": {}}),
    ],
)
def test_merge_patch_as_in_rfc_7386(base: Any, patch: Any, merged: Any) -> None:
    before = repr(base)
    assert files.merge_patch(base, patch) == merged
    assert repr(base) == before


def test_drop_ins_are_walked_in_lexical_order(tmp_path: Path) -> None:
    for name in ("20.conf", "10/b.conf", "10/a.conf", "30.yaml", "05.conf"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    wanted, others = files.drop_ins(tmp_path)
    assert [str(path.relative_to(tmp_path)) for path in wanted] == ["05.conf", "10/a.conf", "10/b.conf", "20.conf"]
    assert [path.name for path in others] == ["30.yaml"]


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe", b"a: !!python/object:os.x {}", b"? [a]\n: b", b"a: !!binary aGk=", b"a: &x [*x]", b"a: 1\n---\nb: 1"],
)
def test_odd_files_are_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "odd.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"odd\.yaml"):
        files.read(path)


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(files.LIMIT + 1)
    with pytest.raises(ConfigError, match="larger than"):
        files.read(path)
