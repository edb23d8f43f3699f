"""The list that checks add to, with the fixed texts of k8s.io/apimachinery/pkg/util/validation/field."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

_SHOWN = 200  # characters of a wrong value in a message


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


class Errors(list[str]):
    """Problems in the order of finding; `path` is the path of a field, like spec.containers[0].name."""

    def required(self, path: str, detail: str = "") -> None:
        self.append(f"{path}: Required value{': ' + detail if detail else ''}")

    def invalid(self, path: str, value: Any, detail: str) -> None:
        self.append(f"{path}: Invalid value: {_show(value)}: {detail}")

    def each_invalid(self, path: str, value: Any, details: Iterable[str]) -> None:
        """One problem for each detail (the name checks give several)."""
        for detail in details:
            self.invalid(path, value, detail)

    def unsupported(self, path: str, value: Any, supported: Iterable[str]) -> None:
        known = ", ".join(json.dumps(name) for name in supported)
        self.append(f"{path}: Unsupported value: {_show(value)}: supported values: {known}")

    def duplicate(self, path: str, value: Any) -> None:
        self.append(f"{path}: Duplicate value: {_show(value)}")

    def not_found(self, path: str, value: Any) -> None:
        self.append(f"{path}: Not found: {_show(value)}")

    def forbidden(self, path: str, detail: str) -> None:
        self.append(f"{path}: Forbidden: {detail}")

    def too_long(self, path: str, limit: int) -> None:
        self.append(f"{path}: Too long: may not be more than {limit} bytes")

    def too_many(self, path: str, count: int, limit: int) -> None:
        self.append(f"{path}: Too many: {count}: must have at most {limit} items")

    def not_negative(self, path: str, value: int) -> None:
        """A problem if `value` is negative."""
        if value < 0:
            self.invalid(path, value, "must be greater than or equal to 0")

    def one_of(self, path: str, value: str, supported: Iterable[str]) -> None:
        """A problem if `value` is missing or none of `supported`."""
        supported = list(supported)
        if not value:
            self.required(path)
        elif value not in supported:
            self.unsupported(path, value, supported)
