"""Reading configuration files: bytes → plain document, with every duplicate key told by its path.

Nothing is decided here about the meaning of fields; see decode.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kubelet_mp.config.model import API_VERSION, KIND
from kubelet_mp.errors import ConfigError

LIMIT = 4 << 20
"""Bytes of one configuration file at most."""
_FIX = "correct the file, or point the flag at another one"


@dataclass(frozen=True, slots=True)
class Document:
    """One file. data: the decoded object without apiVersion and kind; duplicates: paths of repeated keys."""

    path: str
    data: dict[str, Any]
    duplicates: tuple[str, ...] = ()


class _Loader(yaml.SafeLoader):
    """YAML as JSON sees it: no dates, which Kubernetes files keep as text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read(path: str | Path) -> Document:
    """The KubeletConfiguration of a file (YAML or JSON). Raises ConfigError, which names the file."""
    text = _text(Path(path))
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        data = None if node is None else _plain(loader.construct_document(node))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"configuration file {path} is not YAML or JSON: {_one_line(error)}", _FIX) from error
    if data is None:
        raise ConfigError(f"configuration file {path} is empty", _FIX)
    if not isinstance(data, dict):
        raise ConfigError(f"configuration file {path} holds a {type(data).__name__}, not an object", _FIX)
    _check_type(str(path), data)
    body = {key: value for key, value in data.items() if key not in ("apiVersion", "kind")}
    return Document(str(path), body, tuple(_duplicates(node)))


def drop_ins(directory: str | Path) -> tuple[list[Path], list[Path]]:
    """(files to merge, files left aside) of a drop-in directory, walked recursively in lexical order.

    Only names ending in `.conf` are merged. Raises ConfigError when the directory cannot be walked.
    """
    root = Path(directory)
    if not root.is_dir():
        raise ConfigError(f"--config-dir {directory} is not a directory", "create it or leave the flag out")
    found = sorted(_walk(root), key=lambda path: path.relative_to(root).parts)
    wanted = [path for path in found if path.name.endswith(".conf")]
    return wanted, [path for path in found if not path.name.endswith(".conf")]


def _walk(root: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise ConfigError(f"--config-dir: cannot list {error.filename}: {error.strerror}") from error

    for directory, _, names in os.walk(root, onerror=refuse):
        yield from (Path(directory, name) for name in names)


def merge_patch(base: Any, patch: Any) -> Any:
    """RFC 7386: objects merge per key, null deletes, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(LIMIT + 1)
    except OSError as error:
        raise ConfigError(f"cannot read configuration file {path}: {error.strerror}", _FIX) from error
    if len(raw) > LIMIT:
        raise ConfigError(f"configuration file {path} is larger than {LIMIT >> 20} MiB", _FIX)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"configuration file {path} is not UTF-8: {error}", _FIX) from error


def _check_type(path: str, data: dict[str, Any]) -> None:
    said = (data.get("apiVersion"), data.get("kind"))
    if said != (API_VERSION, KIND):
        raise ConfigError(
            f"configuration file {path} says apiVersion {said[0]!r} and kind {said[1]!r}",
            f"it must say apiVersion: {API_VERSION} and kind: {KIND}",
        )


def _plain(value: Any) -> Any:
    """The value as JSON would hold it: text keys, no bytes, no sets. Raises ValueError."""
    if isinstance(value, dict):
        return {_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise ValueError(f"a value of type {type(value).__name__} has no place in a configuration")


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, (str, int, float)):
        return str(key)
    raise ValueError(f"{key!r} cannot be the name of a field")


def _duplicates(node: yaml.Node | None, at: str = "") -> Iterator[str]:
    """Paths of keys that stand more than once in one mapping."""
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _duplicates(item, f"{at}[{index}]")
    elif isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            path = f"{at}.{key.value}" if at else str(key.value)
            if path in seen:
                yield path
            seen.add(path)
            yield from _duplicates(value, path)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
