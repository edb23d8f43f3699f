"""Env files: variables that one container of a pod leaves for another (Kubernetes 1.37 pkg/kubelet/util/env).

A subset of the POSIX shell's assignments: NAME='value', where the value stands for itself and may go over several
lines, blank lines, and comments. As in the shell, a blank after the `=` makes the value empty.
"""

from __future__ import annotations

from collections.abc import Iterator

_BLANK = " \t"
_Lines = Iterator[tuple[int, str]]


def value_in(text: str, key: str) -> str:
    """The value that the file gives to `key` first, "" without one. What follows it is not looked at.

    Raises ValueError that names the faulty line, never its content.
    """
    lines: _Lines = enumerate(text.replace("\r\n", "\n").split("\n"), 1)
    for number, line in lines:
        line = line.lstrip(_BLANK)
        if not line or line.startswith("#"):
            continue
        name, rest = _name(number, line)
        value = "" if rest.startswith(tuple(_BLANK)) else _quoted(number, rest, lines)
        if name == key:
            return value
    return ""


def _name(number: int, line: str) -> tuple[str, str]:
    """The name, and what follows the `=`."""
    name, sign, rest = line.partition("=")
    if not sign:
        raise _fault(number, "missing '='")
    if not name:
        raise _fault(number, "empty variable name")
    if name != name.rstrip(_BLANK):
        raise _fault(number, "whitespace before '=' is not allowed")
    return name, rest


def _quoted(number: int, rest: str, lines: _Lines) -> str:
    """The text between single quotes, read on to the line where the second one is."""
    if not rest.startswith("'"):
        raise _fault(number, "value must be enclosed in single quotes")
    begun, text = number, rest[1:]
    while "'" not in text:
        number, more = next(lines, (0, ""))
        if not number:
            raise _fault(begun, "unclosed single quote")
        text += "\n" + more
    value, _, after = text.partition("'")
    after = after.lstrip(_BLANK)
    if after and not after.startswith("#"):
        raise _fault(number, "unexpected content after closing quote")
    return value


def _fault(number: int, text: str) -> ValueError:
    return ValueError(f"invalid environment variable format at line {number}: {text}")
