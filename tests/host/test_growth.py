"""The pollable watch of a directory."""

from __future__ import annotations

import select
from pathlib import Path

import pytest

from kubelet_mp.host.inotify import Growth, WatchError


def readable(growth: Growth, milliseconds: int) -> bool:
    poll = select.poll()
    poll.register(growth.fileno(), select.POLLIN)
    return bool(poll.poll(milliseconds))


def test_growth_and_renames_make_it_readable_once(tmp_path: Path) -> None:
    log = tmp_path / "0.log"
    log.touch()
    growth = Growth(str(tmp_path))
    try:
        assert not readable(growth, 0)
        with log.open("a") as file:
            file.write("x")
        assert readable(growth, 1000)
        growth.drain()
        assert not readable(growth, 0)
        log.rename(tmp_path / "0.log.1")
        assert readable(growth, 1000)
    finally:
        growth.close()


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WatchError, match="nope"):
        Growth(str(tmp_path / "nope"))
