"""Real inotify on a temporary directory."""

import os
import threading

import pytest

from kubelet_mp.host.inotify import Watcher, WatchError


class Bell:
    def __init__(self):
        self._rung = threading.Event()

    def ring(self):
        self._rung.set()

    def rung(self, seconds=3.0):
        """Whether it rang since the last look, waiting for it."""
        heard = self._rung.wait(seconds)
        self._rung.clear()
        return heard


@pytest.fixture
def bell():
    return Bell()


@pytest.fixture
def watcher(bell):
    watcher = Watcher(bell.ring)
    yield watcher
    watcher.close()


def test_each_kind_of_change_rings(tmp_path, bell, watcher):
    watcher.watch({str(tmp_path): ""})
    path = tmp_path / "f"
    steps = [
        lambda: path.write_text("x"), lambda: path.chmod(0o600), lambda: path.rename(tmp_path / "g"),
        lambda: (tmp_path / "link").symlink_to("g"), lambda: os.link(tmp_path / "g", tmp_path / "hard"),
        lambda: (tmp_path / "d").mkdir(), lambda: (tmp_path / "g").unlink(),
        lambda: tmp_path.rename(tmp_path.with_name("moved")),
    ]
    for step in steps:
        step()
        assert bell.rung()
        while bell.rung(0.02):  # the rest of what this step caused
            pass


def test_a_file_rings_when_it_is_closed_not_while_it_is_written(tmp_path, bell, watcher):
    watcher.watch({str(tmp_path): ""})
    with open(tmp_path / "f", "w") as file:
        file.write("half")
        file.flush()
        assert not bell.rung(0.1)
    assert bell.rung()


def test_only_the_wanted_name_rings(tmp_path, bell, watcher):
    watcher.watch({str(tmp_path): "wanted"})
    (tmp_path / "other").write_text("x")
    assert not bell.rung(0.1)
    (tmp_path / "wanted").write_text("x")
    assert bell.rung()


def test_a_replaced_directory_is_watched_anew(tmp_path, bell, watcher):
    place = tmp_path / "d"
    place.mkdir()
    watcher.watch({str(place): ""})
    place.rename(tmp_path / "old")
    assert bell.rung()
    place.mkdir()
    watcher.watch({str(place): ""})
    (tmp_path / "old" / "f").write_text("x")
    assert not bell.rung(0.1)
    (place / "f").write_text("x")
    assert bell.rung()


def test_what_cannot_be_watched_is_said_and_the_rest_is_watched(tmp_path, bell, watcher):
    with pytest.raises(WatchError, match=r"cannot watch .*none.*No such file"):
        watcher.watch({str(tmp_path / "none"): "", str(tmp_path): ""})
    (tmp_path / "f").write_text("x")
    assert bell.rung()
