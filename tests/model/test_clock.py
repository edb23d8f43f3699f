"""Go durations and RFC 3339 times, against values that Go gives and by round trip."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.model import clock

DAY_NS = 86400 * clock.NS


@pytest.mark.parametrize(
    ("text", "ns", "shown"),
    [
        ("0", 0, "0s"),
        ("10s", 10 * clock.NS, "10s"),
        ("5m", 300 * clock.NS, "5m0s"),
        ("1m20s", 80 * clock.NS, "1m20s"),
        ("80s", 80 * clock.NS, "1m20s"),
        ("4h", 14400 * clock.NS, "4h0m0s"),
        ("1.5h", 5400 * clock.NS, "1h30m0s"),
        ("100ms", 10**8, "100ms"),
        ("1500ms", 15 * 10**8, "1.5s"),
        ("2us", 2000, "2µs"),
        ("1.5us", 1500, "1.5µs"),
        ("7ns", 7, "7ns"),
        (".5s", clock.NS // 2, "500ms"),
        ("-1m", -60 * clock.NS, "-1m0s"),
        ("+1s", clock.NS, "1s"),
    ],
)
def test_durations_are_read_and_written_as_go_does(text: str, ns: int, shown: str) -> None:
    assert clock.parse_duration_ns(text) == ns
    assert clock.format_duration_ns(ns) == shown
    assert clock.format_duration(clock.parse_duration(text)) == shown


@pytest.mark.parametrize("text", ["", "10", "s", "-", "1 s", "1m 2s", "1d", "s10", "1..5s", "10s ", "9999999h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        clock.parse_duration(text)


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_duration_round_trip_is_exact(ns: int) -> None:
    assert clock.parse_duration_ns(clock.format_duration_ns(ns)) == ns


def test_rfc3339_forms() -> None:
    ns = 1_704_164_645 * clock.NS + 120_000_000
    assert clock.rfc3339(ns) == "2024-01-02T03:04:05Z"
    assert clock.rfc3339_micro(ns) == "2024-01-02T03:04:05.120000Z"
    assert clock.rfc3339_nano(ns) == "2024-01-02T03:04:05.12Z"
    assert clock.rfc3339_nano(ns - 120_000_000) == "2024-01-02T03:04:05Z"
    assert clock.rfc3339_log(ns) == "2024-01-02T03:04:05.120000000Z"


def test_offsets_and_fractions_are_understood() -> None:
    assert clock.parse_rfc3339("2024-01-02T05:04:05+02:00") == 1_704_164_645 * clock.NS
    assert clock.parse_rfc3339("2024-01-02T03:04:05.1234567899Z") % clock.NS == 123_456_789


@pytest.mark.parametrize(
    "text", ["", "2024-01-02", "2024-01-02T03:04:05", "2024-13-02T03:04:05Z", "2024-01-02T03:04:05+99:00"]
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        clock.parse_rfc3339(text)


@given(st.integers(0, 80000 * DAY_NS))
def test_nano_round_trip_is_exact(ns: int) -> None:
    assert clock.parse_rfc3339(clock.rfc3339_nano(ns)) == ns
    assert clock.parse_rfc3339(clock.rfc3339_log(ns)) == ns


def test_the_system_clock_counts_on() -> None:
    first = clock.SYSTEM.monotonic()
    assert clock.monotonic() >= first
    assert clock.SYSTEM.wall_time_ns() // clock.NS - int(clock.wall_time()) in (-1, 0, 1)
