"""The files that ConfigMaps and Secrets become in a volume. Pure.

Source: Kubernetes 1.37 pkg/volume/configmap and pkg/volume/secret (MakePayload).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from kubelet_mp.host.atomicdir import Content, check_path
from kubelet_mp.rooms.volumes.content.keys import CONFIG_MAP, Key

MODE = 0o644
_WORDS = {CONFIG_MAP: "config"}  # a Secret's key is called after the secret


def mode_of(body: Mapping[str, Any], default: int, field: str = "mode") -> int:
    """A mode of the spec; 0 is one too."""
    found = body.get(field)
    return default if found is None else int(found)


def user_of(body: Mapping[str, Any], default: int | None, field: str = "user") -> int | None:
    """An owner of the spec; 0 is one too."""
    found = body.get(field)
    return default if found is None else int(found)


def object_files(key: Key, found: Mapping[str, Any] | None, body: Mapping[str, Any], default: int,
                 user: int | None = None) -> dict[str, Content]:
    """Path → content of a source. `body`: the source's items and optional; `found`: None if it does not exist.
    default, user: mode and owner of files of which the spec tells none.

    Raises ValueError with the text of the problem.
    """
    if found is None:
        if not body.get("optional"):
            raise ValueError(f'{key.kind} "{key.name}" not found')
        found = {}
    values = _values(key, found)
    items = body.get("items")
    if not items:
        return {check_path(name): Content(data, default, user) for name, data in values.items()}
    return _chosen(key, values, items, Content(b"", default, user), bool(body.get("optional")))


def _chosen(key: Key, values: Mapping[str, bytes], items: Iterable[Mapping[str, Any]], like: Content, optional: bool
            ) -> dict[str, Content]:
    files = {}
    for item in items:
        if item["key"] in values:
            files[check_path(item["path"])] = Content(
                values[item["key"]], mode_of(item, like.mode), user_of(item, like.uid))
        elif not optional:
            raise ValueError(f"references non-existent {_WORDS.get(key.kind, key.kind)} key: {item['key']}")
    return files


def _values(key: Key, found: Mapping[str, Any]) -> dict[str, bytes]:
    data, binary = found.get("data") or {}, found.get("binaryData") or {}
    if key.kind != CONFIG_MAP:
        return {name: _decoded(text, key, name) for name, text in data.items()}
    texts = {name: text.encode() for name, text in data.items()}
    return texts | {name: _decoded(text, key, name) for name, text in binary.items() if name not in texts}


def _decoded(text: str, key: Key, name: str) -> bytes:
    try:
        return base64.b64decode(text or "", validate=True)
    except binascii.Error as error:
        raise ValueError(f'{key.kind} "{key.name}": the value of key {name} is not base64') from error


def together(problems: Iterable[str]) -> str:
    """One text for several problems, as upstream joins them."""
    unique = list(dict.fromkeys(problems))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
