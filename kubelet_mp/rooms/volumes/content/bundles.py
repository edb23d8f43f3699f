"""ClusterTrustBundles: the trust anchors of one by its name, or of all of a signer.

Source: Kubernetes 1.37 pkg/kubelet/clustertrustbundle.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from kubelet_mp.errors import ApiError
from kubelet_mp.model.labels import selects
from kubelet_mp.rooms.volumes.content.collection import Collection
from kubelet_mp.rooms.volumes.content.keys import Json
from kubelet_mp.rooms.volumes.content.pem import blocks, certificate

GROUP = "/apis/certificates.k8s.io"
VERSIONS = ("v1", "v1beta1", "v1alpha1")  # best first
_SALT = os.urandom(16)


class Bundle(NamedTuple):
    """What is kept of one."""

    signer: str
    labels: Mapping[str, str]
    text: str


class NotServed(ApiError):
    """The API server has no ClusterTrustBundles."""


def slim(found: Json) -> Bundle:
    spec = found.get("spec") or {}
    return Bundle(spec.get("signerName") or "", found["metadata"].get("labels") or {}, spec.get("trustBundle") or "")


def served_path(get: Callable[..., Any]) -> str:
    """The collection in the best version that is served; `get` GETs a path. Raises ApiError (NotServed)."""
    for version in VERSIONS:
        path = f"{GROUP}/{version}/clustertrustbundles"
        try:
            get(path, limit=1)
        except ApiError as error:
            if not error.not_found:
                raise
        else:
            return path
    raise NotServed("the API server does not serve ClusterTrustBundles (certificates.k8s.io)",
                    "turn them on in kube-apiserver, or mark the source optional")


class Bundles:
    """Both methods give PEM, and raise ApiError; they may wait for the first list."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection

    def anchors(self, source: Mapping[str, Any]) -> str:
        """For the `clusterTrustBundle` of a projected volume. Raises ValueError for one that is not valid."""
        try:
            found = self._chosen(source)
        except NotServed:
            if not source.get("optional"):
                raise
            found = []
        return normalised(bundle.text for bundle in found)

    def _chosen(self, source: Mapping[str, Any]) -> list[Bundle]:
        if source.get("name") is not None:
            return self._by_name(source["name"], bool(source.get("optional")))
        if source.get("signerName") is None:
            raise ValueError("ClusterTrustBundle projection requires either name or signerName to be set")
        selector = source.get("labelSelector")
        found = [bundle for bundle in self.collection.items().values()
                 if bundle.signer == source["signerName"] and selects(selector, bundle.labels)]
        if not found and not source.get("optional"):
            raise ApiError("combination of signerName and labelSelector matched zero ClusterTrustBundles")
        return found

    def _by_name(self, name: str, optional: bool) -> list[Bundle]:
        found = self.collection.items().get(("", name))
        if found is None and not optional:
            raise ApiError(f'clustertrustbundle "{name}" not found')
        return [found] if found is not None else []


def normalised(texts: Iterable[str]) -> str:
    """Each anchor once, in an order that is no one's and differs from agent to agent, so that nobody relies on it."""
    found = {der for text in texts for der in blocks(text)}
    return "".join(map(certificate, sorted(found, key=lambda der: hashlib.sha256(_SALT + der).digest())))
