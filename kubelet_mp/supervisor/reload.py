"""What a reload changes. Pure: two Settings in, words out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from kubelet_mp.config import Settings

FIXED = ("root_dir", "node_name", "lock_file")  # what every room's state on disk is bound to
QUIET = ("kubelet", "warnings")


def changes(old: Settings, new: Settings) -> list[str]:
    """One line a changed value, as in `maxPods: 110 → 50`; header values are masked."""
    names = [field.name for field in dataclasses.fields(Settings) if field.name not in QUIET]
    flags = [line for name in names for line in _differ(_flag(name), getattr(old, name), getattr(new, name))]
    return flags + list(_differ("", old.loggable(), new.loggable()))


def refused(old: Settings, new: Settings) -> list[str]:
    """The flags that only a restart can change, and that would change."""
    return [_flag(name) for name in FIXED if getattr(old, name) != getattr(new, name)]


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _differ(path: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _differ(f"{path}.{key}" if path else key, old.get(key), new.get(key))
    elif old != new:
        yield f"{path}: {_show(old)} → {_show(new)}"


def _show(value: Any) -> str:
    return "unset" if value is None or value == "" else str(value)
