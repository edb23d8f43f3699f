"""Reads one JSON or YAML document into plain dicts, lists and scalars, as the API's own YAML reader does.

Differences from PyYAML's defaults follow k8s.io/apimachinery/pkg/util/yaml: `y`, `n`, `on`, `off` are
booleans, `22:22` is text and no number, dates stay text, keys become text. Aliases, depth and size are
limited, so that no input costs more than time in proportion to its length.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from kubelet_mp.errors import ManifestError

MAX_BYTES = 10 * 1024 * 1024  # Kubernetes 1.37 pkg/kubelet/config: maxConfigLength
MAX_DEPTH = 100
MAX_ALIASED = 100_000  # nodes that aliases may repeat in all

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_TRUE = frozenset("y Y yes Yes YES true True TRUE on On ON".split())
_FALSE = frozenset("n N no No NO false False FALSE off Off OFF".split())
_NULL = frozenset(["", "~", "null", "Null", "NULL"])
_NUMERIC = frozenset("+-.0123456789")
_INT = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


class DocumentError(ManifestError):
    """The bytes are no document; the message gives line and column where they are known."""


@dataclass
class Document:
    """`value`: what the document holds; `warnings`: what a careful reader would want to know."""

    value: Any
    warnings: list[str] = field(default_factory=list)


def load(data: bytes) -> Document:
    """The first document in `data`. Raises DocumentError."""
    if len(data) > MAX_BYTES:
        raise DocumentError(f"larger than {MAX_BYTES} bytes", "a manifest holds one pod; make it smaller")
    text = _text(data)
    if text.lstrip()[:1] in ("{", "["):
        document = _load_json(text)
        if document is not None:
            return document
    return _load_yaml(text)


def _text(data: bytes) -> str:
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DocumentError(f"line {line}: byte {data[error.start]:#04x} is not UTF-8") from error
    if not text.strip():
        raise DocumentError("the document is empty")
    return text


# ---- JSON ----------------------------------------------------------------------------------------------


def _load_json(text: str) -> Document | None:
    """None where it is no JSON (flow style YAML begins alike)."""
    warnings: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(items)
        if len(result) < len(items):
            names = [name for name, _ in items]
            repeated = sorted({name for name in names if names.count(name) > 1})
            warnings.append(f"duplicate key {', '.join(map(repr, repeated))}: the last one counts")
        return result

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_float=_number, parse_constant=_no_constant)
    except RecursionError as error:
        raise DocumentError(f"nested deeper than {MAX_DEPTH} levels") from error
    except ValueError:
        return None
    _, depth = _measure(value)
    if depth > MAX_DEPTH:
        raise DocumentError(f"nested deeper than {MAX_DEPTH} levels")
    return Document(_without_surrogates(value) if "\\u" in text else value, warnings)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _without_surrogates(value: Any) -> Any:
    """Half a surrogate pair is no character: replaced, as Go's decoder does."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    return value


def _measure(value: Any) -> tuple[int, int]:
    """(nodes, levels of nesting), found without recursion."""
    nodes = deepest = 0
    todo = [(value, 0)]
    while todo:
        item, depth = todo.pop()
        nodes += 1
        deepest = max(deepest, depth)
        if isinstance(item, dict):
            todo += [(child, depth + 1) for child in item.values()]
        elif isinstance(item, list):
            todo += [(child, depth + 1) for child in item]
    return nodes, deepest


# ---- YAML ----------------------------------------------------------------------------------------------


def _load_yaml(text: str) -> Document:
    """The first document that holds something; later ones are named in a warning."""
    events = yaml.parse(text, Loader=_LOADER)
    try:
        return _first_document(events)
    except yaml.YAMLError as error:
        raise _yaml_error(error) from error


def _first_document(events: Iterator[Any]) -> Document:
    found: Document | None = None
    for event in events:
        if not isinstance(event, yaml.DocumentStartEvent):
            continue
        if found is not None:
            if not _is_empty_document(events):
                found.warnings.append(f"{_at(event)}: a second document begins here and is not used")
            return found
        document = _Builder().build(events)
        if document.value is not None:
            found = document
    if found is None:
        raise DocumentError("the document is empty")
    return found


def _is_empty_document(events: Iterator[Any]) -> bool:
    event = next(events)
    return isinstance(event, yaml.ScalarEvent) and event.value == "" and event.implicit[0]


def _yaml_error(error: yaml.YAMLError) -> DocumentError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    context = getattr(error, "context", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    return DocumentError(f"{where}not valid YAML: {problem}{f' ({context})' if context else ''}")


def _at(event: Any) -> str:
    return f"line {event.start_mark.line + 1}, column {event.start_mark.column + 1}"


class _Frame:
    """A collection that is still open. `key`: the pending key of a mapping, None between pairs."""

    __slots__ = ("anchor", "key", "merges", "merging", "value")

    def __init__(self, value: dict[str, Any] | list[Any], anchor: str | None) -> None:
        self.value, self.anchor = value, anchor
        self.key: str | None = None
        self.merging = False  # the pending key is <<
        self.merges: list[Any] = []


class _Builder:
    """Builds one document from parser events, on a stack of its own rather than the interpreter's."""

    def __init__(self) -> None:
        self.document = Document(None)
        self._stack: list[_Frame] = []
        self._anchors: dict[str, Any] = {}
        self._aliased = 0

    def build(self, events: Iterator[Any]) -> Document:
        for event in events:
            if isinstance(event, yaml.DocumentEndEvent):
                break
            self._take(event)
        return self.document

    def _take(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            value = _scalar(event)
            self._anchor(event.anchor, value)
            self._add(value, event)
        elif isinstance(event, yaml.AliasEvent):
            self._add(self._alias(event), event)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._open(event)
        else:
            self._close(event)

    def _open(self, event: Any) -> None:
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", _TAG + ("map" if mapping else "seq")):
            raise DocumentError(f"{_at(event)}: the tag {event.tag} is not supported")
        if mapping and self._stack and self._in_key_place():
            raise DocumentError(f"{_at(event)}: a key must be text, not a mapping")
        if len(self._stack) >= MAX_DEPTH:
            raise DocumentError(f"{_at(event)}: nested deeper than {MAX_DEPTH} levels")
        self._stack.append(_Frame({} if mapping else [], event.anchor))

    def _close(self, event: Any) -> None:
        frame = self._stack.pop()
        for source in frame.merges:
            _merge(frame.value, source, event)
        self._anchor(frame.anchor, frame.value)
        self._add(frame.value, event)

    def _anchor(self, name: str | None, value: Any) -> None:
        if name:
            self._anchors[name] = value

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            raise DocumentError(f"{_at(event)}: the alias *{event.anchor} refers to nothing above it")
        value = self._anchors[event.anchor]
        nodes, depth = _measure(value)
        self._aliased += nodes
        if self._aliased > MAX_ALIASED or len(self._stack) + depth > MAX_DEPTH:
            raise DocumentError(f"{_at(event)}: the aliases repeat more than is reasonable")
        return _copy(value)

    def _in_key_place(self) -> bool:
        frame = self._stack[-1]
        return isinstance(frame.value, dict) and frame.key is None

    def _add(self, value: Any, event: Any) -> None:
        if not self._stack:
            self.document.value = value
            return
        frame = self._stack[-1]
        if isinstance(frame.value, list):
            frame.value.append(value)
        elif frame.key is None:
            frame.key, frame.merging = _key(value, event), _is_merge(event)
        else:
            self._set(frame, value, event)

    def _set(self, frame: _Frame, value: Any, event: Any) -> None:
        assert isinstance(frame.value, dict) and frame.key is not None
        key, frame.key = frame.key, None
        if frame.merging:
            frame.merges.append(value)
            return
        if key in frame.value:
            warning = f"{_at(event)}: duplicate key {self._path(key)}: the last one counts"
            self.document.warnings.append(warning)
        frame.value[key] = value

    def _path(self, last: str) -> str:
        """The place of a key: spec.containers[0].image."""
        path = ""
        for frame in self._stack[:-1]:
            path += f"[{len(frame.value)}]" if isinstance(frame.value, list) else f".{frame.key}"
        return f"{path}.{last}".lstrip(".")


def _is_merge(event: Any) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.value == "<<" and bool(event.implicit[0])


def _merge(into: Any, source: Any, event: Any) -> None:
    for mapping in source if isinstance(source, list) else [source]:
        if not isinstance(mapping, dict):
            raise DocumentError(f"{_at(event)}: << takes a mapping or a list of mappings")
        for key, value in mapping.items():
            into.setdefault(key, value)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _key(value: Any, event: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    kind = "null" if value is None else "a list" if isinstance(value, list) else "a mapping"
    raise DocumentError(f"{_at(event)}: a key must be text, not {kind}")


def _scalar(event: Any) -> Any:
    plain, tag, text = event.implicit[0], event.tag, event.value
    if tag in (None, "!"):
        return _resolve(text) if plain and tag is None else text
    if tag == _TAG + "str":
        return text
    value = _resolve(text)
    kinds = {"null": type(None), "bool": bool, "int": int, "float": (int, float)}
    kind = kinds.get(tag.removeprefix(_TAG)) if tag.startswith(_TAG) else None
    if kind is None or not isinstance(value, kind):  # type: ignore[arg-type]
        raise DocumentError(f"{_at(event)}: {text!r} with the tag {tag} is not supported")
    return value


def _resolve(text: str) -> Any:
    """What a plain scalar means."""
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    return _number(text.replace("_", ""), text) if text[0] in _NUMERIC else text


def _number(digits: str, text: str | None = None) -> Any:
    """An int within 64 bits, a finite float, or else the text as it stands."""
    if _INT.fullmatch(digits) and len(digits) <= 70:
        value = _integer(digits)
        if -(2**63) <= value < 2**64:
            return value
    if _FLOAT.fullmatch(digits):
        number = float(digits)
        if math.isfinite(number):
            return number
    return digits if text is None else text


def _integer(digits: str) -> int:
    body = digits.lstrip("+-")
    if len(body) > 1 and body[0] == "0" and body[1].isdigit():
        body = "0o" + body[1:]
    return -int(body, 0) if digits[0] == "-" else int(body, 0)
