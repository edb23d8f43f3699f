"""The logger with fields, and the one handler that writes lines to stderr.

Built on the standard library's logging, so that what libraries log arrives in the same form (their warnings
and errors only). The level of detail can be changed while running.
"""

from __future__ import annotations

import fnmatch
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, TextIO

from kubelet_mp.log.format import FORMATS, journal_priority

_TREE = "kubelet_mp"


class _State:
    """What setup() decided; one per process, copied by the fork."""

    verbosity = 0
    vmodule: Mapping[str, int] = {}
    room = "main"


class LineHandler(logging.Handler):
    """Writes each record as one line with one write, so that lines of several processes do not mix."""

    def __init__(self, stream: TextIO, form: str, journal: bool) -> None:
        super().__init__()
        self.stream, self.line, self.journal = stream, FORMATS[form], journal

    def emit(self, record: logging.LogRecord) -> None:
        prefix = journal_priority(record) if self.journal else ""
        line = prefix + self.line(record, getattr(record, "room", "") or _State.room) + "\n"
        try:
            self.stream.write(line)
            self.stream.flush()
        except (OSError, ValueError):
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """A closed or full stderr must not stop the agent, and there is nowhere left to say so."""


class Logger:
    """Logs for one room or part. Every field is a keyword; `err` is the usual name for an exception."""

    __slots__ = ("_fields", "_logger", "_room", "_v")

    def __init__(self, name: str, fields: Mapping[str, Any] | None = None, v: int = 0) -> None:
        self._logger = logging.getLogger(f"{_TREE}.{name}" if name else _TREE)
        self._fields, self._room, self._v = dict(fields or {}), name, v

    def bind(self, **fields: Any) -> Logger:
        """The same logger with fields that every line carries."""
        return Logger(self._room, {**self._fields, **fields}, self._v)

    def v(self, level: int) -> Logger:
        """The same logger for detail: its info() is silent below that verbosity."""
        return Logger(self._room, self._fields, level)

    def enabled(self) -> bool:
        """Whether info() writes anything; ask before computing costly fields."""
        return _shows(self._v, 2)

    def info(self, message: str, **fields: Any) -> None:
        if _shows(self._v, 2):
            self._write(logging.INFO, message, fields)

    def debug(self, message: str, **fields: Any) -> None:
        """Same as v(4).info()."""
        if _shows(max(self._v, 4), 2):
            self._write(logging.INFO, message, fields, v=max(self._v, 4))

    def warning(self, message: str, **fields: Any) -> None:
        self._write(logging.WARNING, message, fields)

    def error(self, message: str, **fields: Any) -> None:
        self._write(logging.ERROR, message, fields)

    def exception(self, message: str, **fields: Any) -> None:
        """error() with the stack of the exception being handled."""
        self._write(logging.ERROR, message, fields, stack=True)

    def _write(
        self,
        level: int,
        message: str,
        fields: Mapping[str, Any],
        *,
        v: int | None = None,
        stack: bool = False,
    ) -> None:
        extra = {"fields": {**self._fields, **fields}, "room": self._room, "v": self._v if v is None else v}
        self._logger.log(level, "%s", message, extra=extra, exc_info=stack, stacklevel=3)


def _shows(level: int, depth: int) -> bool:
    if level <= _State.verbosity:
        return True
    if not _State.vmodule:
        return False
    module = PurePath(sys._getframe(depth).f_code.co_filename).stem
    return any(level <= limit and fnmatch.fnmatchcase(module, glob) for glob, limit in _State.vmodule.items())


def get(name: str = "") -> Logger:
    """The logger of a room or part; an empty name takes the room of the process."""
    return Logger(name)


def setup(
    format: str = "text",
    verbosity: int = 0,
    *,
    room: str = "supervisor",
    vmodule: Mapping[str, int] | None = None,
    stream: TextIO | None = None,
    journal: bool | None = None,
) -> None:
    """Send all logging of this process (and of the children it forks) to stderr.

    format: "text" or "json", else ValueError; vmodule: verbosity by module-name pattern;
    journal: prefix `<N>` priorities, by default when JOURNAL_STREAM tells that stderr is the journal.
    """
    if format not in FORMATS:
        raise ValueError(f"unknown log format {format!r}; known: {', '.join(FORMATS)}")
    stream = sys.stderr if stream is None else stream
    journal = _is_journal(stream) if journal is None else journal
    _State.vmodule = dict(vmodule or {})
    set_room(room)
    set_verbosity(verbosity)
    root = logging.getLogger()
    root.handlers[:] = [LineHandler(stream, format, journal)]
    root.setLevel(logging.WARNING)
    logging.getLogger(_TREE).setLevel(logging.INFO)
    logging.captureWarnings(True)


def set_room(room: str) -> None:
    """Name the room that lines of this process are prefixed with."""
    _State.room = room


def set_verbosity(level: int) -> None:
    """Change the detail shown by this process."""
    _State.verbosity = level


def verbosity() -> int:
    """The detail shown by this process."""
    return _State.verbosity


def _is_journal(stream: TextIO) -> bool:
    """Whether the stream is the one that JOURNAL_STREAM ("device:inode") names."""
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
