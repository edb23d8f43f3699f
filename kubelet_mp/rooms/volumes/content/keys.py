"""What of the API server volumes refer to. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

Json = dict[str, Any]
CONFIG_MAP, SECRET = "configmap", "secret"
_KEPT = ("data", "binaryData", "immutable", "type")


class Key(NamedTuple):
    """`kind`: configmap or secret, as texts name it."""

    kind: str
    namespace: str
    name: str

    @property
    def collection(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/{self.kind}s"

    @property
    def path(self) -> str:
        return f"{self.collection}/{self.name}"


BUNDLES = Key("clustertrustbundle", "", "")
"""Stands for all ClusterTrustBundles: a volume may be made of any of them."""

POD_CERTIFICATE = "podcertificate"
"""The kind of a key that tells of a pod's certificates; its name is the pod's UID."""


class Watch(Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...


class Objects(Protocol):
    """Where objects come from; one for each configMapAndSecretChangeDetectionStrategy. Thread-safe."""

    def hold(self, uid: str, keys: frozenset[Key]) -> None:
        """The pod needs these from now on, and no others."""

    def drop(self, uid: str) -> None:
        """The pod needs nothing any more."""

    def get(self, key: Key) -> Json | None:
        """What is kept of the object, None when it does not exist. May wait some seconds. Raises ApiError."""

    def close(self) -> None:
        """End what runs for it."""


def slim(found: Mapping[str, Any]) -> Json:
    """What of an object is kept in memory."""
    return {name: found[name] for name in _KEPT if found.get(name)}
