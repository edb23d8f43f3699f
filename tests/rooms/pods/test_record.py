from __future__ import annotations

from pathlib import Path

import pytest

from kubelet_mp.rooms.pods.record import NAME, Record, Recorder, decode, load_all

POD = {"metadata": {"name": "p", "uid": "u"}, "spec": {}}


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path))
    kept = Record("u", POD, "file", True, False, {"phase": "Running"})
    recorder.write(kept)
    assert recorder.flush(5)
    assert load_all(str(tmp_path)) == ([kept], [])
    recorder.close()


def test_the_same_record_is_not_written_twice(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path))
    for _ in range(2):
        recorder.write(Record("u", POD, "file", True))
        assert recorder.flush(5)
        first = (tmp_path / "u" / NAME).stat().st_ino
    assert (tmp_path / "u" / NAME).stat().st_ino == first
    recorder.write(Record("u", POD, "file", True, True))
    assert recorder.flush(5)
    assert (tmp_path / "u" / NAME).stat().st_ino != first
    recorder.close()


def test_a_dropped_record_is_gone_and_can_come_back(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path))
    recorder.write(Record("u", POD, "file", True))
    recorder.drop("u")
    assert recorder.flush(5)
    assert not (tmp_path / "u" / NAME).exists()
    recorder.write(Record("u", POD, "file", True))
    assert recorder.flush(5)
    assert (tmp_path / "u" / NAME).exists()
    recorder.close()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"version":1,"uid":"u","pod":1,"status":{}}',
                                  b'{"version":9,"uid":"u"}', b'{"version":1,"uid":"other"}'])
def test_damaged_records_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode(data, "u")


def test_a_damaged_record_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / NAME).write_bytes(b'{"version"')
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / NAME).write_bytes(Record("b", POD, "file").encode())
    (tmp_path / "c").mkdir()
    records, problems = load_all(str(tmp_path))
    assert [r.uid for r in records] == ["b"]
    assert [Path(path).parent.name for path, _ in problems] == ["a"]


def test_a_disk_that_refuses_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    failed: list[str] = []
    recorder = Recorder(str(tmp_path / "file"), lambda uid, problem: failed.append(uid))
    recorder.write(Record("u", POD, "file"))
    assert recorder.flush(5)
    assert failed == ["u"]
    recorder.close()
