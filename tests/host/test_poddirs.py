from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from kubelet_mp.host import termination
from kubelet_mp.host.poddirs import PodDirs
from kubelet_mp.model import runtime as names
from kubelet_mp.model.runtime import Container, Mount, State


@pytest.fixture
def dirs(tmp_path: Path) -> PodDirs:
    return PodDirs(str(tmp_path / "root"), str(tmp_path / "logs"), str(tmp_path / "links"))


def mode(path: str) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def test_directories_have_the_modes_of_the_kubelet(dirs: PodDirs) -> None:
    dirs.make("default", "p", "u")
    dirs.make("default", "p", "u")
    assert [mode(dirs.pod("u") + part) for part in ("", "/volumes", "/plugins", "/containers")] == [0o750] * 4
    assert mode(f"{dirs.logs}/default_p_u") == 0o755
    assert mode(dirs.make_log_dir("default", "p", "u", "c")) == 0o755


def test_the_hosts_file_is_rewritten_in_place(dirs: PodDirs) -> None:
    dirs.make("default", "p", "u")
    path = dirs.write_etc_hosts("u", "one, and longer\n")
    before = os.stat(path).st_ino
    dirs.write_etc_hosts("u", "two\n")
    assert Path(path).read_text() == "two\n"
    assert (os.stat(path).st_ino, mode(path)) == (before, 0o644)


def test_each_instance_gets_its_own_message_file(dirs: PodDirs) -> None:
    dirs.make("default", "p", "u")
    one, two = dirs.make_termination_log("u", "c"), dirs.make_termination_log("u", "c")
    assert one != two and mode(one) == 0o666 and len(Path(one).name) == 8
    dirs.remove_termination_log("u", [one, "/etc/hosts"])
    assert not os.path.exists(one) and os.path.exists(two) and os.path.exists("/etc/hosts")


def test_the_highest_log_counts_restarts(dirs: PodDirs) -> None:
    assert dirs.highest_log("default", "p", "u", "c") is None
    dirs.make("default", "p", "u")
    directory = Path(dirs.make_log_dir("default", "p", "u", "c"))
    for name in ("0.log", "2.log", "11.log.gz", "10.log", "x.log"):
        (directory / name).write_text("")
    assert dirs.highest_log("default", "p", "u", "c") == 11


def test_links_are_made_only_to_logs_that_are_there_and_go_with_them(dirs: PodDirs, tmp_path: Path) -> None:
    target = tmp_path / "0.log"
    assert not dirs.link_log("p", "default", "c", "id", str(target))
    target.write_text("x")
    (tmp_path / "0.log.20260101-000000").write_text("y")
    assert dirs.link_log("p", "default", "c", "id", str(target))
    assert dirs.link_log("p", "default", "c", "id", str(target))
    link = Path(dirs.links) / "p_default_c-id.log"
    assert link.readlink() == target
    dirs.remove_container_logs("p", "default", "c", "id", str(target))
    assert not link.is_symlink() and list(tmp_path.glob("0.log*")) == []


def test_removal_never_touches_what_is_in_a_volume(dirs: PodDirs) -> None:
    dirs.make("default", "p", "u")
    volume = Path(dirs.pod("u")) / "volumes" / "kubernetes.io~empty-dir" / "v"
    volume.mkdir(parents=True)
    (volume / "data").write_text("precious")
    dirs.make_termination_log("u", "c")
    assert not dirs.remove("u")
    assert (volume / "data").read_text() == "precious"
    (volume / "data").unlink()
    assert dirs.remove("u") and not os.path.exists(dirs.pod("u"))
    assert dirs.remove("u")


# ---- termination messages ----


def ended(tmp_path: Path, message: str = "", policy: str = "File", code: int = 1, reason: str = "Error") -> Container:
    return Container("id", "c", 0, State.EXITED, "s", "u", 1, exit_code=code, reason=reason, message=message,
                     log_path=str(tmp_path / "0.log"), mounts=(Mount("/dev/termination-log", str(tmp_path / "msg")),),
                     annotations={names.TERMINATION_PATH: "/dev/termination-log", names.TERMINATION_POLICY: policy})


def test_the_file_follows_the_runtimes_own_words(tmp_path: Path) -> None:
    (tmp_path / "msg").write_text("x" * 5000 + "end")
    text = termination.message(ended(tmp_path, "runtime says"))
    assert text.startswith("runtime says: x") and text.endswith("end")
    assert len(text) == len("runtime says: ") + 4096


def test_the_log_is_used_when_asked_for_and_the_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "msg").write_text("")
    lines = [f"2026-01-01T00:00:00.000000000Z stdout F line {n}\n" for n in range(100)]
    (tmp_path / "0.log").write_text("".join(lines))
    text = termination.message(ended(tmp_path, policy="FallbackToLogsOnError"))
    assert text.splitlines() == [f"line {n}" for n in range(20, 100)]
    assert termination.message(ended(tmp_path, policy="FallbackToLogsOnError", code=0)) == ""
    assert termination.message(ended(tmp_path)) == ""


def test_parts_of_a_line_are_joined_and_the_end_is_kept(tmp_path: Path) -> None:
    stamp = "2026-01-01T00:00:00.000000000Z stderr"
    (tmp_path / "0.log").write_text(f"{stamp} P {'a' * 3000}\n{stamp} F b\n")
    assert termination.message(ended(tmp_path, policy="FallbackToLogsOnError")) == "a" * 2046 + "b\n"


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "msg").symlink_to("/etc/hostname")
    assert termination.message(ended(tmp_path)).startswith("Error on reading termination log ")
