import os
import stat
from pathlib import Path

import pytest

from kubelet_mp.host.ownership import give_to_group

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="changing groups needs root")


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    (tmp_path / "d").mkdir(mode=0o700)
    (tmp_path / "d/f").write_text("x")
    (tmp_path / "d/f").chmod(0o600)
    (tmp_path / "link").symlink_to("/etc")
    tmp_path.chmod(0o755)
    return tmp_path


def test_everything_goes_to_the_group_and_links_are_not_followed(volume: Path):
    before = os.stat("/etc").st_gid
    assert give_to_group(str(volume), 4321) == 4
    assert {p.lstat().st_gid for p in (volume, volume / "d", volume / "d/f", volume / "link")} == {4321}
    assert os.stat("/etc").st_gid == before
    assert (_mode(volume), _mode(volume / "d"), _mode(volume / "d/f")) == (0o2775, 0o2770, 0o660)


def test_read_only_volumes_get_read_bits(volume: Path):
    give_to_group(str(volume), 4321, read_only=True)
    assert (_mode(volume / "d"), _mode(volume / "d/f")) == (0o2750, 0o640)


def test_on_mismatch_only_looks_at_the_root(volume: Path):
    assert give_to_group(str(volume), 4321, on_mismatch_only=True) == 4
    (volume / "d/f").chmod(0o600)
    assert give_to_group(str(volume), 4321, on_mismatch_only=True) == 0
    assert _mode(volume / "d/f") == 0o600
