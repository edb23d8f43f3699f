"""One log record as one line: klog's text form, or JSON.

Text: `I1201 00:04:05.678901    4711 pods] "Started container" pod="ns/name" container="c"`
JSON: `{"ts":1764547445678.9,"v":0,"room":"pods","msg":"Started container","pod":"ns/name","container":"c"}`
(ts in milliseconds since the epoch; an error has no "v", as in k8s.io/component-base/logs/json).
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from typing import Any

from kubelet_mp.log.mask import mask, mask_text

Fields = dict[str, Any]
_SEVERITY = {logging.CRITICAL: "F", logging.ERROR: "E", logging.WARNING: "W", logging.INFO: "I"}
_PRIORITY = {"F": 2, "E": 3, "W": 4, "I": 6, "D": 7}


def severity(record: logging.LogRecord) -> str:
    """klog's letter; anything below INFO counts as I."""
    return _SEVERITY.get(record.levelno, "I")


def journal_priority(record: logging.LogRecord) -> str:
    """The `<N>` that journald takes off the line as its priority (syslog numbers; detail is debug)."""
    detail = getattr(record, "v", 0) >= 4 or record.levelno < logging.INFO
    return f"<{_PRIORITY['D' if detail else severity(record)]}>"


def fields_of(record: logging.LogRecord) -> Fields:
    """The masked key=value fields of a record, the exception last."""
    fields: Fields = {key: mask(value, key) for key, value in getattr(record, "fields", {}).items()}
    if record.exc_info and record.exc_info[0]:
        fields["stack"] = mask_text(logging.Formatter().formatException(record.exc_info))
    return fields


def text_line(record: logging.LogRecord, room: str) -> str:
    """klog's text form, always on one line."""
    clock = time.localtime(record.created)
    micros = int(record.created % 1 * 1_000_000)
    stamp = f"{severity(record)}{time.strftime('%m%d %H:%M:%S', clock)}.{micros:06d}"
    parts = [f"{stamp} {record.process or 0:>7} {room}]", _quoted(mask_text(record.getMessage()))]
    parts += [f"{key}={_shown(value)}" for key, value in fields_of(record).items()]
    return " ".join(parts)


def json_line(record: logging.LogRecord, room: str) -> str:
    """The JSON form, always on one line."""
    line: Fields = {"ts": round(record.created * 1000, 3)}
    if record.levelno < logging.WARNING:
        line["v"] = getattr(record, "v", 0)
    line |= {"level": severity(record), "pid": record.process, "room": room}
    line["msg"] = mask_text(record.getMessage())
    line |= fields_of(record)
    return json.dumps(line, ensure_ascii=False, default=_plain, separators=(",", ":"))


FORMATS: dict[str, Callable[[logging.LogRecord, str], str]] = {"text": text_line, "json": json_line}


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _plain(value: Any) -> str:
    return mask_text(str(value))


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False, default=_plain)
    return _quoted(_plain(value))
