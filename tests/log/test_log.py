"""Log lines: form, fields, rooms, detail, masking, journal priorities."""

import io
import json
import logging
import os
import re
from collections.abc import Iterator
from typing import Any, TextIO

import pytest

from kubelet_mp import log


class Broken(io.StringIO):
    """A stderr whose other end is gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """The root logger as pytest had it."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    log.set_verbosity(0)


def lines(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def started(form: str = "text", verbosity: int = 0, **options: Any) -> io.StringIO:
    stream = io.StringIO()
    log.setup(form, verbosity, stream=stream, **options)
    return stream


def test_text_line_is_klogs_with_the_room() -> None:
    stream = started()
    log.get("pods").info("Started container", pod="default/web", attempt=2, ready=True, ids=["a"], none=None)
    pattern = r'I\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ pods\] "Started container" '
    assert re.fullmatch(pattern + r'pod="default/web" attempt=2 ready=true ids=\["a"\] none=null', lines(stream)[0])


def test_a_line_stays_one_line() -> None:
    stream = started()
    log.get("pods").error("two\nlines", err=ValueError("a\nb"))
    assert len(lines(stream)) == 1
    assert lines(stream)[0].startswith("E")
    assert r"two\nlines" in lines(stream)[0]


def test_json_line() -> None:
    stream = started("json")
    log.get("pleg").info("Relist done", seconds=0.5)
    log.get("pleg").error("Relist failed", err=OSError("no"))
    first, second = map(json.loads, lines(stream))
    assert (first["room"], first["msg"], first["seconds"], first["v"]) == ("pleg", "Relist done", 0.5, 0)
    assert (second["level"], second["err"], "v" in second) == ("E", "no", False)


def test_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="xml"):
        log.setup("xml")


def test_detail_is_shown_from_its_level_on() -> None:
    stream = started(verbosity=2)
    logger = log.get("pods")
    logger.v(2).info("two")
    logger.v(3).info("three")
    logger.debug("four")
    assert not logger.v(3).enabled()
    log.set_verbosity(4)
    logger.debug("four")
    assert [line.rsplit("]")[1] for line in lines(stream)] == [' "two"', ' "four"']
    assert log.verbosity() == 4


def test_vmodule_raises_the_detail_of_one_module() -> None:
    stream = started(vmodule={"test_l*": 5})
    log.get("pods").v(5).info("shown")
    log.get("pods").v(6).info("hidden")
    assert len(lines(stream)) == 1


def test_bound_fields_and_the_room_of_the_process() -> None:
    stream = started(room="supervisor")
    log.set_room("volumes")
    log.get().bind(pod="a/b").warning("Mount is slow", volume="v")
    assert lines(stream)[0].endswith('volumes] "Mount is slow" pod="a/b" volume="v"')


def test_libraries_warn_in_the_same_form_and_are_otherwise_silent() -> None:
    stream = started()
    logging.getLogger("some.library").info("chatter")
    logging.getLogger("some.library").warning("trouble %d", 1)
    assert len(lines(stream)) == 1
    assert lines(stream)[0].endswith('supervisor] "trouble 1"')


def test_exception_carries_the_stack() -> None:
    stream = started()
    try:
        raise KeyError("x")
    except KeyError as error:
        log.get("pods").exception("Failed", err=error)
    assert "Traceback" in lines(stream)[0]


def test_priorities_for_the_journal() -> None:
    stream = started(verbosity=6, journal=True)
    logger = log.get("pods")
    logger.info("a")
    logger.warning("b")
    logger.error("c")
    logger.v(6).info("d")
    assert [line[:3] for line in lines(stream)] == ["<6>", "<4>", "<3>", "<7>"]


@pytest.mark.parametrize(("said", "prefixed"), [("{dev}:{ino}", True), ("1:1", False), ("", False)])
def test_the_journal_is_recognised_by_its_stream(
    said: str, prefixed: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(tmp_path / "stderr", "w+") as stream:
        status = os.fstat(stream.fileno())
        monkeypatch.setenv("JOURNAL_STREAM", said.format(dev=status.st_dev, ino=status.st_ino))
        log.setup(stream=stream)
        log.get("pods").info("x")
        stream.seek(0)
        assert stream.read().startswith("<6>") is prefixed


def test_a_broken_stderr_stops_nobody() -> None:
    stream: TextIO = Broken()
    log.setup(stream=stream)
    log.get("pods").info("x")
    assert stream.getvalue() == ""  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("token", "abc"),
        ("api_token", "abc"),
        ("password", "hunter2"),
        ("Authorization", "Bearer abcdefgh"),
        ("client-secret-token", "x"),
        ("err", "401 for Authorization: Bearer abcdefgh.ijk"),
        ("url", "https://user:hunter2@host/path"),
        ("pem", "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----"),
        ("env", {"DB_PASSWORD": "hunter2"}),
        ("list", [{"token": "abc"}]),
    ],
)
def test_secrets_are_masked(name: str, value: Any) -> None:
    stream = started()
    log.get("pods").info("x", **{name: value})
    line = lines(stream)[0]
    assert log.MASKED in line
    assert not re.search(r"abc|hunter2", line)


@pytest.mark.parametrize(
    ("name", "value"), [("secret", "default/db"), ("tokens", 3), ("token", ""), ("url", "http://host:80/a@b")]
)
def test_what_only_sounds_secret_stays(name: str, value: Any) -> None:
    assert log.mask(value, name) == value
