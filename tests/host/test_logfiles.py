"""Reading container logs: records, slices, the last lines, bounded memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.host.files import MissingFile
from kubelet_mp.host.logfiles import (
    BLOCK,
    MAX_LINE,
    Lines,
    LogOptions,
    Since,
    open_log,
    pad_stamp,
    parse_line,
    read_log,
    tail_offset,
)
from kubelet_mp.model.clock import parse_rfc3339

STAMP = "2024-01-02T03:04:05.{:09d}Z"


def record(n: int, text: str, tag: str = "F", stream: str = "stdout") -> str:
    return f"{STAMP.format(n)} {stream} {tag} {text}\n"


def write(path: Path, *records: str) -> Path:
    path.write_text("".join(records))
    return path


def given_out(path: Path, **options: object) -> bytes:
    return b"".join(read_log(open_log(str(path)), LogOptions(**options)))  # type: ignore[arg-type]


@pytest.fixture
def long_log(tmp_path: Path) -> Path:
    """The log of case C13: twenty lines, one of 20000 bytes in two pieces, a last one."""
    lines = [record(n, f"line-{n}") for n in range(20)]
    long = [record(20, "x" * 16384, "P"), record(21, "x" * 3616)]
    return write(tmp_path / "0.log", *lines, *long, record(22, "end"))


def test_a_whole_log_is_given_without_its_stamps(long_log: Path) -> None:
    text = b"".join(b"line-%d\n" % n for n in range(20)) + b"x" * 20000 + b"\nend\n"
    assert given_out(long_log) == text


def test_limit_bytes_cuts_within_a_line(long_log: Path) -> None:
    assert given_out(long_log, limit_bytes=10) == b"line-0\nlin"


def test_limit_bytes_counts_the_stamps(long_log: Path) -> None:
    assert given_out(long_log, limit_bytes=31, timestamps=True) == b"2024-01-02T03:04:05.000000000Z "


@pytest.mark.parametrize(("lines", "expected"), [(0, b""), (1, b"end\n"), (2, b"x" * 3616 + b"\nend\n")])
def test_tail_counts_pieces_as_lines(long_log: Path, lines: int, expected: bytes) -> None:
    assert given_out(long_log, tail_lines=lines) == expected


def test_tail_larger_than_the_log_gives_all(long_log: Path) -> None:
    assert given_out(long_log, tail_lines=1000) == given_out(long_log)


def test_a_stamp_stands_only_before_a_new_line(tmp_path: Path) -> None:
    path = write(tmp_path / "l", record(1, "ab", "P"), record(2, "cd"), record(3, "ef", "F:more"))
    one, three = STAMP.format(1).encode(), STAMP.format(3).encode()
    assert given_out(path, timestamps=True) == one + b" abcd\n" + three + b" ef\n"


def test_since_leaves_out_older_records_after_the_tail(long_log: Path) -> None:
    since = parse_rfc3339(STAMP.format(19))
    assert given_out(long_log, since=since, tail_lines=1) == b"end\n"
    assert given_out(long_log, since=since).startswith(b"line-19\nx")
    assert given_out(long_log, since=parse_rfc3339(STAMP.format(23))) == b""


def test_lines_that_are_no_records_are_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "l", "garbage\n", record(1, "a"), "2024 stdin F x\n", record(2, ""))
    assert given_out(path) == b"a\n\n"


def test_an_unfinished_last_line_is_given_once(tmp_path: Path) -> None:
    path = write(tmp_path / "l", record(1, "a"), record(2, "b")[:-1])
    assert given_out(path) == b"a\nb"


def test_carriage_returns_stay_within_their_line(tmp_path: Path) -> None:
    path = tmp_path / "l"
    path.write_bytes(record(1, "a\rb").encode())
    assert given_out(path) == b"a\rb\n"


def test_a_missing_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="nope"):
        open_log(str(tmp_path / "nope"))


def test_links_are_followed(tmp_path: Path, long_log: Path) -> None:
    (tmp_path / "link").symlink_to(long_log)
    assert given_out(tmp_path / "link", tail_lines=1) == b"end\n"


def test_an_endless_line_costs_no_memory_and_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "l"
    path.write_bytes(b"x" * (2 * MAX_LINE + 5) + b"\n" + record(1, "after").encode())
    with open_log(str(path)) as source:
        lines, longest = Lines(source), 0
        while lines.read() is not None:
            longest = max(longest, len(lines.rest))
    assert longest <= MAX_LINE + BLOCK
    assert given_out(path) == b"after\n"


@pytest.mark.parametrize(
    ("stamp", "padded"),
    [
        (b"2024-01-02T03:04:05Z", b"2024-01-02T03:04:05.000000000Z"),
        (b"2024-01-02T03:04:05.12Z", b"2024-01-02T03:04:05.120000000Z"),
        (b"2024-01-02T03:04:05.123456789+02:00", b"2024-01-02T03:04:05.123456789+02:00"),
        (b"2024-01-02T03:04:05+02:00", b"2024-01-02T03:04:05.000000000+02:00"),
    ],
)
def test_stamps_are_given_with_nine_digits(stamp: bytes, padded: bytes) -> None:
    assert pad_stamp(stamp) == padded


@given(st.integers(0, 2_000_000_000), st.integers(-3, 3), st.sampled_from(["", ".5", ".000000001", ".120"]))
def test_since_compares_as_times_do(second: int, shift: int, fraction: str) -> None:
    from kubelet_mp.model.clock import NS, rfc3339

    stamp = rfc3339(second * NS)[:-1] + fraction + "Z"
    since = max(1, second * NS + shift * NS // 2)
    assert Since(since).admits(stamp.encode()) == (parse_rfc3339(stamp) >= since)


def test_since_understands_zones() -> None:
    since = Since(parse_rfc3339("2024-01-02T03:04:05Z"))
    assert since.admits(b"2024-01-02T05:04:05+02:00")
    assert not since.admits(b"2024-01-02T05:04:04.9+02:00")


@given(st.lists(st.integers(0, 3 * BLOCK // 2), max_size=6), st.integers(0, 8), st.booleans())
def test_tail_offset_agrees_with_counting(tmp_path_factory: pytest.TempPathFactory, lengths: list[int],
                                          wanted: int, unfinished: bool) -> None:
    path = tmp_path_factory.mktemp("t") / "l"
    lines = [b"y" * n + b"\n" for n in lengths]
    whole = b"".join(lines) + (b"zz" if unfinished else b"")
    path.write_bytes(whole)
    fd = os.open(path, os.O_RDONLY)
    try:
        at = tail_offset(fd, len(whole), wanted)
    finally:
        os.close(fd)
    kept = lines[len(lines) - wanted :] if wanted < len(lines) else lines
    expected = (b"".join(kept) if wanted else b"") + (b"zz" if unfinished else b"")
    assert whole[at:] == expected


@given(st.binary(max_size=60))
def test_any_line_parses_or_is_refused(line: bytes) -> None:
    record_ = parse_line(line)
    assert record_ is None or len(record_) == 3
