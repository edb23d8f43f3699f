import os

import pytest

from kubelet_mp.errors import LockedError, StartError
from kubelet_mp.supervisor import startup


def test_one_instance_a_root_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(startup, "LOCK_PATIENCE", 0.0)
    path = tmp_path / "kubelet-mp.lock"
    held = startup.take_lock(path)
    with pytest.raises(LockedError, match=str(os.getpid())):
        startup.take_lock(path)
    os.close(held)
    os.close(startup.take_lock(path))


def test_a_root_directory_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="root directory"):
        startup.make_root(str(tmp_path / "file" / "root"))


def test_the_root_directory_is_closed_to_others(tmp_path):
    startup.make_root(str(tmp_path / "root"))
    assert (tmp_path / "root" / "pods").stat().st_mode & 0o777 == 0o750
