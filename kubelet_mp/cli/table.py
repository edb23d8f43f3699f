"""Text for a terminal: tables and short ages. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines with columns aligned, three blanks apart."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return ["   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def age(seconds: float | None) -> str:
    """A duration as short as it is told in a table: 45s, 3m10s, 2h5m, 3d4h; "-" for None."""
    if seconds is None:
        return "-"
    minutes, secs = divmod(int(seconds), 60)
    hours, mins = divmod(minutes, 60)
    days, hrs = divmod(hours, 24)
    if days:
        return _two(days, "d", hrs, "h")
    if hours:
        return _two(hours, "h", mins, "m")
    return _two(minutes, "m", secs, "s") if minutes else f"{secs}s"


def _two(large: int, unit: str, small: int, below: str) -> str:
    return f"{large}{unit}" + (f"{small}{below}" if small else "")
