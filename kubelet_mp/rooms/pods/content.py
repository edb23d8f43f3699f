"""ConfigMaps and Secrets for the environment of containers and for image pulls.

Containers that start together share one GET. While the API server is away a container of a pod that has read
an object before gets it as it was then, so that containers restart.
"""

from __future__ import annotations

import base64
import binascii
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kubelet_mp.errors import ApiError, ContainerConfigError
from kubelet_mp.host.sharedgets import SharedGets
from kubelet_mp.rooms.pods.services import Services

MAX_AGE = 2.0  # s that an answer counts
_KEPT = ("data", "type")
_BROKEN = 500  # HTTP status from which on the server, not the request, is to blame

Json = dict[str, Any]


class PodContent:
    """`get` GETs a path of the API server and raises ApiError. Thread-safe."""

    def __init__(self, get: Callable[[str], Mapping[str, Any]], now: Callable[[], float], services: Services) -> None:
        self.services = services
        self._gets = SharedGets(get, now, keep=MAX_AGE, slim=_slim)
        self._lock = threading.Lock()
        self._read: dict[str, dict[str, Json | None]] = {}  # UID → path → object as read last

    def lookup(self, uid: str) -> PodLookup:
        """For one container of the pod."""
        return PodLookup(self, uid)

    def object(self, uid: str, kind: str, namespace: str, name: str) -> Json | None:
        """data and type of a configmap or secret for that pod, None when it does not exist. Raises ApiError."""
        path = f"/api/v1/namespaces/{namespace}/{kind}s/{name}"
        try:
            found = self._gets.get(path, MAX_AGE)
        except ApiError as error:
            return self._without_answer(uid, path, error)
        with self._lock:
            self._read.setdefault(uid, {})[path] = found
        return found

    def close(self) -> None:
        self.services.close()

    def drop(self, uid: str) -> None:
        """The pod is gone."""
        with self._lock:
            self._read.pop(uid, None)

    def _without_answer(self, uid: str, path: str, error: ApiError) -> Json | None:
        with self._lock:
            read = self._read.get(uid, {})
            refused = 0 < error.status < _BROKEN and error.status != 429
            if path not in read or refused:
                raise error
            return read[path]


class PodLookup:
    """model.environment.Lookup for one container: each object is read once. asked: something was looked up."""

    def __init__(self, content: PodContent, uid: str) -> None:
        self._content, self._uid = content, uid
        self._found: dict[tuple[str, str, str], Json | None] = {}
        self.asked = False

    def config_map(self, namespace: str, name: str) -> Mapping[str, str] | None:
        found = self._object("configmap", namespace, name)
        return None if found is None else found.get("data") or {}

    def secret(self, namespace: str, name: str) -> Mapping[str, str] | None:
        found = self._object("secret", namespace, name)
        return None if found is None else Decoded(found.get("data") or {}, f"Secret {namespace}/{name}")

    def _object(self, kind: str, namespace: str, name: str) -> Json | None:
        self.asked = True
        key = (kind, namespace, name)
        if key not in self._found:
            try:
                self._found[key] = self._content.object(self._uid, kind, namespace, name)
            except ApiError as error:
                raise ContainerConfigError(error.message, error.fix) from error
        return self._found[key]


class Decoded(Mapping[str, str]):
    """The values of a Secret, decoded when they are read: one that is no text spoils only itself."""

    def __init__(self, data: Mapping[str, str], where: str) -> None:
        self._data, self._where = data, where

    def __getitem__(self, key: str) -> str:
        try:
            return base64.b64decode(self._data[key] or "", validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ContainerConfigError(f"the value of key {key} in {self._where} is not UTF-8 text and cannot be "
                                       "the value of a variable") from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __contains__(self, key: object) -> bool:
        return key in self._data


def _slim(found: Mapping[str, Any]) -> Json:
    return {name: found[name] for name in _KEPT if found.get(name)}
