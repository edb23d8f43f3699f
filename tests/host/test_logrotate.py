"""Rotation of one log: what stays, what is compressed, and how an error is undone."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kubelet_mp.errors import RuntimeCallError
from kubelet_mp.host.files import FileError
from kubelet_mp.host.logrotate import Plan, compress, is_rotated, plan, rotate

T0 = 1_704_164_645.0  # 2024-01-02 03:04:05 UTC


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


class Runtime:
    """Opens the log anew, as ReopenContainerLog does."""

    def __init__(self, log: Path, error: Exception | None = None) -> None:
        self.log, self.error = log, error

    def reopen(self) -> None:
        if self.error:
            raise self.error
        self.log.touch()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("0.log.20240102-030405", True),
        ("0.log.20240102-030405.gz", True),
        ("0.log.20240102-030405.tmp", True),
        ("0.log", False),
        ("1.log.20240102-030405", False),
        ("0.log.old", False),
    ],
)
def test_only_own_rotated_files_are_touched(name: str, expected: bool) -> None:
    assert is_rotated("0.log", name) is expected


def test_plan_keeps_the_newest_and_compresses_what_is_left() -> None:
    there = [f"0.log.2024010{n}-000000" for n in range(1, 6)]
    packed = [f"{name}.gz" for name in there]
    files = ["0.log", packed[0], packed[1], there[2], packed[2], there[3] + ".tmp", there[4], "x"]
    assert plan("0.log", files, 4) == Plan((there[2], there[3] + ".tmp", packed[0], packed[1]), (there[4],))


def test_plan_with_two_files_keeps_no_older_one() -> None:
    assert plan("0.log", ["0.log.20240102-030405"], 2) == Plan(("0.log.20240102-030405",), ())


def test_five_rotations_leave_three_files_with_only_the_newest_uncompressed(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    for turn in range(5):
        log.write_text(f"turn {turn}\n")
        assert rotate(str(log), 3, T0 + turn, Runtime(log).reopen) == []
        assert len(names(tmp_path)) <= 3
    assert names(tmp_path) == ["0.log", "0.log.20240102-030408.gz", "0.log.20240102-030409"]
    assert gzip.decompress((tmp_path / "0.log.20240102-030408.gz").read_bytes()) == b"turn 3\n"


def test_a_failed_reopen_gives_the_name_back(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_text("text\n")
    with pytest.raises(RuntimeCallError):
        rotate(str(log), 3, T0, Runtime(log, RuntimeCallError("down")).reopen)
    assert names(tmp_path) == ["0.log"]
    assert log.read_text() == "text\n"


def test_a_file_that_cannot_be_compressed_does_not_hinder_the_rotation(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_text("text\n")
    (tmp_path / "0.log.20240101-000000").mkdir()  # a directory: reading it fails whoever asks
    problems = rotate(str(log), 3, T0, Runtime(log).reopen)
    assert [p for p in problems if "0.log.20240101-000000" in str(p)]
    assert "0.log.20240102-030405" in names(tmp_path)


def test_a_rotation_overwrites_nothing(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.write_text("text\n")
    (tmp_path / "0.log.20240102-030405").mkdir()
    with pytest.raises(FileError, match="there already"):
        rotate(str(log), 5, T0, Runtime(log).reopen)
    assert log.read_text() == "text\n"


def test_compressing_keeps_the_mode_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "0.log.20240102-030405"
    path.write_text("a" * 100_000)
    path.chmod(0o640)
    compress(str(path))
    assert names(tmp_path) == ["0.log.20240102-030405.gz"]
    assert (tmp_path / "0.log.20240102-030405.gz").stat().st_mode & 0o777 == 0o640
