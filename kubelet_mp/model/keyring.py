"""Which registry credentials fit an image (Kubernetes 1.37 pkg/credentialprovider)."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from kubelet_mp.model.images import DEFAULT_DOMAIN, LEGACY_DOMAIN

CONFIG_JSON, CONFIG = ".dockerconfigjson", ".dockercfg"
_TYPES = {CONFIG_JSON: "kubernetes.io/dockerconfigjson", CONFIG: "kubernetes.io/dockercfg"}
_SCHEMES = ("https://", "http://")
_VERSIONS = ("/v1/", "/v2/")


@dataclass(frozen=True, slots=True)
class Entry:
    """A registry's host and perhaps path ("r.example:5000/team"; * and ? in the host), and who to be there."""

    key: str
    username: str
    password: str

    def auth(self) -> dict[str, str]:
        """The CRI's AuthConfig."""
        return {"username": self.username, "password": self.password}


def entries_of(secret: Mapping[str, Any]) -> list[Entry]:
    """The credentials in a Secret of the API server (values in base64); none for a Secret of another type.

    Raises ValueError with what is wrong; never with a part of the content.
    """
    data = secret.get("data") or {}
    for field, type_ in _TYPES.items():
        if secret.get("type") == type_ and data.get(field):
            document = _document(data[field], field)
            auths = document.get("auths") if field == CONFIG_JSON else document
            return _entries(auths or {}, field)
    return []


def _document(text: str, field: str) -> Mapping[str, Any]:
    try:
        found = json.loads(base64.b64decode(text, validate=True))
    except (ValueError, binascii.Error):
        raise ValueError(f"{field} is not JSON in base64") from None
    if not isinstance(found, dict):
        raise ValueError(f"{field} is not an object")
    return found


def _entries(auths: Any, field: str) -> list[Entry]:
    if not isinstance(auths, dict) or not all(isinstance(body, dict) for body in auths.values()):
        raise ValueError(f"{field} is not a map of registries")
    found = (_entry(place, body) for place, body in auths.items())
    return [entry for entry in found if entry is not None]


def _entry(place: str, body: Mapping[str, Any]) -> Entry | None:
    """None for a registry that is no URL, which is passed over."""
    key = _key(place)
    username, password = str(body.get("username") or ""), str(body.get("password") or "")
    if body.get("auth"):
        username, password = _pair(str(body["auth"]), place)
    return Entry(key, username, password) if key else None


def _pair(auth: str, place: str) -> tuple[str, str]:
    text = auth.strip()
    try:
        plain = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode()
    except ValueError:
        plain = ""
    username, colon, password = plain.partition(":")
    if not colon:
        raise ValueError(f"auth of {place} must be formatted as base64(username:password)")
    return username, password


def _key(place: str) -> str:
    try:
        parts = urlsplit(place if place.startswith(_SCHEMES) else f"https://{place}")
    except ValueError:
        return ""
    path = parts.path
    for version in _VERSIONS:
        if path.startswith(version):
            path = path[len(version) - 1:]
    return parts.netloc + (path if path != "/" else "")


def credentials(entries: Iterable[Entry], repository: str) -> list[dict[str, str]]:
    """AuthConfigs to try for a repository ("docker.io/library/busybox"), those with the longest path first."""
    known = list(entries)
    fitting = [entry for entry in known if matches(entry.key, repository)]
    if not fitting and repository.partition("/")[0] in (DEFAULT_DOMAIN, LEGACY_DOMAIN):
        fitting = [entry for entry in known if entry.key == LEGACY_DOMAIN]
    fitting.sort(key=lambda entry: entry.key, reverse=True)  # stable: of one key the first given comes first
    unique = dict.fromkeys(fitting)
    return [entry.auth() for entry in unique]


def matches(key: str, repository: str) -> bool:
    """Whether a key of the keyring covers a repository: part by part of the host name, and by the path's start."""
    host, port, path = _split(key)
    target_host, target_port, target_path = _split(repository)
    if port != target_port or len(host) != len(target_host) or not target_path.startswith(path):
        return False
    return all(fnmatchcase(part, glob) for glob, part in zip(host, target_host, strict=True))


def _split(place: str) -> tuple[list[str], str, str]:
    """(parts of the host, port, path)."""
    authority, slash, path = place.partition("/")
    host, colon, port = authority.rpartition(":")
    if not colon or not port.isdigit():
        host, port = authority, ""
    return host.split("."), port, slash + path
