"""Checks a decoded document against the types of core/v1: right types, known fields, canonical quantities.

Wrong types are problems; unknown fields are dropped with a warning, as the API's lenient decoder drops them.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable
from typing import Any

from kubelet_mp.model import clock, quantity
from kubelet_mp.model.podschema import TYPES

_ZERO: dict[str, Any] = {
    "str": "", "bool": False, "int32": 0, "int64": 0, "quantity": "0", "intstr": 0, "time": None,
}
_NAMES = {
    bool: "a boolean", int: "a number", float: "a number", str: "text", list: "a list", dict: "an object",
}
_SHOWN = 60  # characters of a wrong value in a message


class Conformer:
    """`problems` and `unknown` collect one line each, with the path of the field."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.unknown: list[str] = []

    def clean(self, value: Any, kind: str, path: str = "") -> Any:
        """`value` as a value of type `kind`; a zero value stands in for what is wrong."""
        if kind[0] == "[":
            return self._list(value, kind[1:-1], path)
        if kind[0] == "{":
            return self._map(value, kind[1:-1], path)
        if kind[0].isupper():
            return self._struct(value, kind, path)
        if value is None and kind != "any":
            return _ZERO[kind]
        return _SCALARS[kind](self, value, path)

    def _struct(self, value: Any, kind: str, path: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            if value is not None:
                self._wrong(path, value, "must be an object")
            return {}
        fields, result = TYPES[kind], {}
        for name, item in value.items():
            below = f"{path}.{name}" if path else name
            if name not in fields:
                self.unknown.append(_unknown(below, name, fields))
            elif item is not None:  # null is the same as absent
                result[name] = self.clean(item, fields[name], below)
        return result

    def _list(self, value: Any, kind: str, path: str) -> list[Any]:
        if not isinstance(value, list):
            self._wrong(path, value, "must be a list")
            return []
        return [self.clean(item, kind, f"{path}[{at}]") for at, item in enumerate(value)]

    def _map(self, value: Any, kind: str, path: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._wrong(path, value, "must be an object")
            return {}
        return {key: self.clean(item, kind, f"{path}[{key}]") for key, item in value.items()}

    def _text(self, value: Any, path: str) -> str:
        if isinstance(value, str):
            return value
        quote = "" if isinstance(value, (dict, list)) else "; quote it in YAML"
        self._wrong(path, value, f"must be text, not {_NAMES.get(type(value), 'that')}{quote}")
        return ""

    def _bool(self, value: Any, path: str) -> bool:
        if isinstance(value, bool):
            return value
        self._wrong(path, value, f"must be true or false, not {_NAMES.get(type(value), 'that')}")
        return False

    def _int32(self, value: Any, path: str) -> int:
        return self._integer(value, path, 31)

    def _int64(self, value: Any, path: str) -> int:
        return self._integer(value, path, 63)

    def _integer(self, value: Any, path: str, bits: int) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self._wrong(path, value, f"must be a whole number, not {_NAMES.get(type(value), 'that')}")
            return 0
        if not -(2**bits) <= value < 2**bits:
            self._wrong(path, value, f"must fit in {bits + 1} bits")
            return 0
        return value

    def _intstr(self, value: Any, path: str) -> int | str:
        return value if isinstance(value, str) else self._integer(value, path, 31)

    def _quantity(self, value: Any, path: str) -> str:
        try:
            return quantity.canonical(value)
        except (ValueError, TypeError) as error:
            self._wrong(path, value, str(error))
            return "0"

    def _time(self, value: Any, path: str) -> str:
        text = self._text(value, path)
        try:
            clock.parse_rfc3339(text)
        except (ValueError, OverflowError) as error:
            self._wrong(path, value, str(error))
        return text

    def _any(self, value: Any, path: str) -> Any:
        return value

    def _wrong(self, path: str, value: Any, detail: str) -> None:
        shown = json.dumps(value, ensure_ascii=False)
        shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
        self.problems.append(f"{path or 'the document'}: Invalid value: {shown}: {detail}")


_SCALARS: dict[str, Callable[[Conformer, Any, str], Any]] = {
    "str": Conformer._text, "bool": Conformer._bool, "int32": Conformer._int32, "int64": Conformer._int64,
    "intstr": Conformer._intstr, "quantity": Conformer._quantity, "time": Conformer._time,
    "any": Conformer._any,
}


def _unknown(path: str, name: str, fields: Any) -> str:
    near = [field for field in fields if field.casefold() == name.casefold()]
    near = near or difflib.get_close_matches(name, fields, 1)
    return f"{path}: unknown field, ignored{f'; did you mean {near[0]}?' if near else ''}"
