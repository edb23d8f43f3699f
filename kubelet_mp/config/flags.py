"""The command line: words → values by flag, as the kubelet's flag library reads them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubelet_mp.config.flagtable import FLAGS, SHORTHANDS, Flag
from kubelet_mp.config.flagvalues import KINDS
from kubelet_mp.errors import ConfigError

USAGE = """kubelet-mp: a Kubernetes node agent.

Usage:
  kubelet-mp [flags]              run the agent
  kubelet-mp check [flags]        tell whether this machine can run it with these flags
  kubelet-mp pods | why POD | logs POD [-c CONTAINER] [-f]

Flags marked * also stand in the file given by --config, which is where they should be set.
"""


@dataclass(slots=True)
class Given:
    """What the command line said: values by flag name (already parsed), and loose words."""

    values: dict[str, Any] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)

    def set(self, flag: Flag, text: str) -> None:
        """Take one occurrence of a flag. Raises ConfigError."""
        kind = KINDS[flag.kind]
        try:
            value = kind.parse(text)
        except ValueError as error:
            raise ConfigError(f'invalid argument "{text}" for "--{flag.name}" flag: {error}') from error
        if kind.add and flag.name in self.values:
            value = kind.add(self.values[flag.name], value)
        self.values[flag.name] = value

    def process(self) -> dict[str, Any]:
        """The values that belong to Settings, by attribute."""
        return {FLAGS[name].attr: value for name, value in self.values.items() if FLAGS[name].attr}

    def overrides(self) -> dict[tuple[str, ...], Any]:
        """The values that replace fields of the v1beta1 document, by path."""
        return {FLAGS[name].path: value for name, value in self.values.items() if FLAGS[name].path}

    def deprecated(self) -> list[str]:
        """The deprecated flags that were used, in the order of first use."""
        return [name for name in self.values if FLAGS[name].deprecated]


def parse(argv: Sequence[str]) -> Given:
    """Read the command line (without the program's name). Raises ConfigError.

    Long flags may be written with `_`; `--flag value`, `--flag=value`, `-v 4`, `-v4` and `-v=4` are all read;
    a boolean takes a value only with `=`. After `--` everything is a loose word.
    """
    given = Given()
    words = iter(argv)
    for word in words:
        if word == "--":
            given.words.extend(words)
        elif word.startswith("--"):
            _long(given, word[2:], words)
        elif word.startswith("-") and len(word) > 1:
            _short(given, word[1:], words)
        else:
            given.words.append(word)
    return given


def _long(given: Given, text: str, words: Iterator[str]) -> None:
    name, sign, value = text.partition("=")
    flag = FLAGS.get(name.replace("_", "-"))
    if flag is None:
        raise ConfigError(f"unknown flag: --{name}", fix=_likely(name))
    given.set(flag, value if sign else _following(flag, words))


def _short(given: Given, text: str, words: Iterator[str]) -> None:
    while text:
        flag, text = SHORTHANDS.get(text[0]), text[1:]
        if flag is None:
            raise ConfigError("unknown shorthand flag in the command line", fix="write flags as --name=value")
        if text.startswith("="):
            return given.set(flag, text[1:])
        if not flag.optional_value and text:
            return given.set(flag, text)
        given.set(flag, _following(flag, words))
    return None


def _following(flag: Flag, words: Iterator[str]) -> str:
    """The value of a flag that was written without `=`."""
    alone = KINDS[flag.kind].alone
    if alone is not None:
        return alone
    value = next(words, None)
    if value is None:
        raise ConfigError(f"flag needs an argument: --{flag.name}")
    return value


def _likely(name: str) -> str | None:
    """A hint when the name is that of a field that has no flag, or nearly a flag."""
    close = difflib.get_close_matches(name.replace("_", "-"), FLAGS, n=1)
    return f"did you mean --{close[0]}?" if close else "see kubelet-mp --help"


def usage() -> str:
    """The text of --help."""
    lines = [USAGE]
    for flag in sorted(FLAGS.values(), key=lambda flag: flag.name):
        dash = f"-{flag.shorthand}, --" if flag.shorthand else "    --"
        word = "" if flag.kind == "bool" else f" {flag.kind}"
        star = " *" if flag.deprecated and flag.path else ""
        lines.append(f"  {dash + flag.name + word:<58} {flag.help}{star}")
    return "\n".join(lines)
