"""Go's way of writing JSON and quoted text, where a value must come out byte for byte alike."""

from __future__ import annotations

import json
from typing import Any

_JSON_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_QUOTE_ESCAPES = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def go_json(value: Any) -> str:
    """Compact JSON as encoding/json writes it: keys in the given order, `<`, `>` and `&` escaped."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).translate(_JSON_ESCAPES)


def go_quote(text: str) -> str:
    """strconv.Quote, the form of %q."""
    return '"' + "".join(map(_quoted, text)) + '"'


def _quoted(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    code = ord(char)
    known = _QUOTE_ESCAPES.get(char)
    return known or (
        f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    )
