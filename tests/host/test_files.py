"""Real files in a temporary directory."""

import errno
import os
import stat

import pytest

from kubelet_mp.host import files


def test_write_atomic_replaces_content_and_sets_the_mode_whatever_the_umask(tmp_path):
    path = tmp_path / "f"
    old = os.umask(0o077)
    try:
        files.write_atomic(path, b"one")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        files.write_atomic(str(path), b"two", 0o644)
    finally:
        os.umask(old)
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert os.listdir(tmp_path) == ["f"]


def test_write_atomic_gives_a_new_inode_so_an_open_reader_keeps_the_old_content(tmp_path):
    path = tmp_path / "f"
    files.write_atomic(path, b"old")
    with open(path, "rb") as reader:
        files.write_atomic(path, b"new")
        assert reader.read() == b"old"
    assert path.read_bytes() == b"new"


def test_write_atomic_leaves_nothing_behind_when_the_target_is_a_directory(tmp_path):
    (tmp_path / "d").mkdir()
    with pytest.raises(files.FileError) as caught:
        files.write_atomic(tmp_path / "d", b"x")
    assert caught.value.errno in (errno.EISDIR, errno.ENOTEMPTY)
    assert os.listdir(tmp_path) == ["d"]


def test_write_atomic_says_that_the_directory_is_missing(tmp_path):
    with pytest.raises(files.MissingFile, match=r'cannot write ".*/no/f": No such file'):
        files.write_atomic(tmp_path / "no" / "f", b"x")


@pytest.mark.parametrize("size", [0, 1, 9, 10])
def test_read_limited_takes_up_to_the_limit(tmp_path, size):
    (tmp_path / "f").write_bytes(b"x" * size)
    assert files.read_limited(tmp_path / "f", 10) == b"x" * size


def test_read_limited_refuses_one_byte_more(tmp_path):
    (tmp_path / "f").write_bytes(b"x" * 11)
    with pytest.raises(files.FileTooLarge, match="larger than 10 bytes"):
        files.read_limited(tmp_path / "f", 10)


def test_read_limited_reads_files_whose_size_the_kernel_calls_zero():
    assert files.read_limited("/proc/self/stat", 4096).startswith(str(os.getpid()).encode())


def test_read_limited_does_not_hang_on_a_pipe_and_refuses_a_directory(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(files.FileError):
            files.read_limited(path, 10)


def test_missing_is_told_apart_and_carries_errno(tmp_path):
    (tmp_path / "f").write_text("x")
    for path in (tmp_path / "none", tmp_path / "f" / "below"):
        with pytest.raises(files.MissingFile) as caught:
            files.read_text(path)
        assert caught.value.errno in (errno.ENOENT, errno.ENOTDIR)


def test_read_text_replaces_what_is_not_utf8(tmp_path):
    (tmp_path / "f").write_bytes(b"a\xffb")
    assert files.read_text(tmp_path / "f") == "a�b"


def test_remove_file_says_whether_it_was_there(tmp_path):
    (tmp_path / "f").write_text("x")
    assert [files.remove_file(tmp_path / "f"), files.remove_file(tmp_path / "f")] == [True, False]
    with pytest.raises(files.FileError, match="cannot remove"):
        files.remove_file(tmp_path)


def test_make_dirs_keeps_what_is_there_and_refuses_a_file(tmp_path):
    files.make_dirs(tmp_path / "a" / "b", 0o711)
    (tmp_path / "a" / "b").chmod(0o700)
    files.make_dirs(tmp_path / "a" / "b", 0o755)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    (tmp_path / "f").write_text("x")
    with pytest.raises(files.FileError, match="cannot make directory"):
        files.make_dirs(tmp_path / "f")


def test_file_state_tells_kinds_and_changes_apart(tmp_path):
    path = tmp_path / "f"
    path.write_text("a")
    first = files.file_state(path)
    files.write_atomic(path, b"b")
    assert first.kind == files.file_state(path).kind == "file" and first != files.file_state(path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("f")
    assert files.file_state(tmp_path).kind == "directory" and files.file_state(tmp_path / "pipe").kind == "other"
    assert files.file_state(tmp_path / "link") == files.file_state(path)
    with pytest.raises(files.MissingFile, match="cannot look at"):
        files.file_state(tmp_path / "none")


def test_list_names_is_sorted_and_says_what_it_cannot_list(tmp_path):
    for name in (b"b", b"a", b"\xff"):
        (tmp_path / os.fsdecode(name)).touch()
    assert files.list_names(tmp_path) == ["a", "b", "\udcff"]
    with pytest.raises(files.MissingFile, match="cannot list"):
        files.list_names(tmp_path / "a")
