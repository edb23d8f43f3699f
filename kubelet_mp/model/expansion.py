"""$(VAR) references in env values, command, args and subPathExpr (Kubernetes third_party/forked/golang)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expand(text: str, value_of: Callable[[str], str | None]) -> str:
    """The text with each $(NAME) replaced, once, by value_of("NAME").

    A name without a value stays as it is written; `$$` is a single dollar sign; any other dollar sign,
    one before an unclosed parenthesis too, is just a dollar sign.
    """

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "$"
        value = value_of(name)
        return match[0] if value is None else value

    return _REFERENCE.sub(replace, text)


def expand_from(text: str, *scopes: Mapping[str, str]) -> str:
    """expand() with the first scope that has the name."""
    return expand(text, lambda name: next((scope[name] for scope in scopes if name in scope), None))


def expand_all(texts: Iterable[str], scope: Mapping[str, str]) -> list[str]:
    return [expand_from(text, scope) for text in texts]


def missing_names(text: str, scope: Mapping[str, str]) -> list[str]:
    """The names in $(NAME) references of a text that have no value, in order of appearance."""
    missing: list[str] = []

    def note(name: str) -> str | None:
        if name not in scope:
            missing.append(name)
        return None

    expand(text, note)
    return missing
