"""All that volumes get from the API server, behind one object; None stands for it where there is no API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kubelet_mp.config import Settings
from kubelet_mp.host import pki
from kubelet_mp.model.clock import SYSTEM, Clock
from kubelet_mp.rooms.lateapi import connect as connect_late
from kubelet_mp.rooms.volumes.content import bundles, certificates
from kubelet_mp.rooms.volumes.content.bundles import Bundles
from kubelet_mp.rooms.volumes.content.certificates import CertificateKey, Issued, PodCertificates, Tell
from kubelet_mp.rooms.volumes.content.collection import Collection
from kubelet_mp.rooms.volumes.content.fetched import DEFAULT_TTL, Fetched, ttl_of
from kubelet_mp.rooms.volumes.content.keys import BUNDLES, POD_CERTIFICATE, Json, Key, Objects, Watch
from kubelet_mp.rooms.volumes.content.tokens import TokenKey, Tokens
from kubelet_mp.rooms.volumes.content.watched import Watched

Crash = Callable[[BaseException], None]
Changed = Callable[[Key], None]
MakeWatch = Callable[[str, Mapping[str, Any], str, Any, Any, Any], Watch]
"""Collection's path, its parameters, a name, on_list, on_event, on_problem → a watch that is not started yet."""


class ApiContent:
    """`objects` … `certificates` may be asked from any thread; the rest is for the room's main thread.

    polled: nobody tells of changed objects, so volumes are to be written anew from time to time.
    """

    def __init__(self, objects: Objects, tokens: Tokens, trust: Bundles, pod_certificates: PodCertificates, *,
                 polled: bool) -> None:
        self.objects, self.tokens, self.polled = objects, tokens, polled
        self._trust, self._certificates = trust, pod_certificates
        self.ttl = DEFAULT_TTL

    def hold(self, uid: str, keys: frozenset[Key], *, certificates: bool = False) -> None:
        """The pod needs these objects (and perhaps tokens), and no others."""
        self.objects.hold(uid, keys - {BUNDLES})
        self._trust.collection.hold(uid, BUNDLES in keys)
        self._certificates.collection.hold(uid, certificates)
        self.tokens.hold(uid)

    def drop(self, uid: str) -> None:
        self.objects.drop(uid)
        self.tokens.drop(uid)
        self._trust.collection.hold(uid, False)
        self._certificates.drop(uid)

    def object(self, key: Key) -> Json | None:
        """None when it does not exist. Raises ApiError."""
        return self.objects.get(key)

    def token(self, key: TokenKey) -> str:
        """Raises ApiError."""
        return self.tokens.get(key)

    def anchors(self, source: Mapping[str, Any]) -> str:
        """Raises ApiError, ValueError."""
        return self._trust.anchors(source)

    def certificate(self, key: CertificateKey, source: Mapping[str, Any]) -> Issued:
        """Raises ApiError, HostError."""
        return self._certificates.bundle(key, source)

    def due(self) -> set[str]:
        """UIDs of the pods with a token or a certificate that is to be renewed now."""
        return self.tokens.due() | self._certificates.due()

    def take_node(self, node: Mapping[str, Any]) -> None:
        self.ttl = ttl_of(node)
        meta = node.get("metadata") or {}
        self._certificates.node = str(meta.get("name") or ""), str(meta.get("uid") or "")

    def close(self) -> None:
        self.objects.close()
        self._trust.collection.close()
        self._certificates.collection.close()


@dataclass(frozen=True, slots=True)
class Sources:
    """`client` gives a KubeApi or raises ApiError. changed, tell: called from any thread."""

    client: Callable[[], Any]
    watch: MakeWatch
    changed: Changed
    tell: Tell
    node_name: str = ""
    time: Clock = SYSTEM

    def get(self, path: str, **params: Any) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.client().get(path, **params)
        return found

    def create(self, path: str, body: dict[str, Any]) -> Mapping[str, Any]:
        made: Mapping[str, Any] = self.client().create(path, body)
        return made


def build(strategy: str, sources: Sources) -> ApiContent:
    """`strategy`: Watch, Cache or Get."""
    tokens = Tokens(sources.create, sources.time.monotonic)
    parts = tokens, _bundles(sources), _certificates(sources)
    if strategy == "Watch":
        return ApiContent(Watched(_of_one(sources.watch), sources.changed), *parts, polled=False)
    objects = Fetched(sources.get, sources.time.monotonic, lambda: made.ttl if strategy == "Cache" else 0.0)
    made = ApiContent(objects, *parts, polled=True)
    return made


def _of_one(watch: MakeWatch) -> Callable[[Key, Any, Any, Any], Watch]:
    def make(key: Key, *told: Any) -> Watch:
        return watch(key.collection, {"fieldSelector": f"metadata.name={key.name}"}, f"{key.kind}-{key.name}", *told)

    return make


def _bundles(sources: Sources) -> Bundles:
    def begin(*told: Any) -> Watch:
        return sources.watch(bundles.served_path(sources.get), {}, "clustertrustbundles", *told)

    return Bundles(Collection("ClusterTrustBundles", begin, bundles.slim, lambda _: sources.changed(BUNDLES)))


def _certificates(sources: Sources) -> PodCertificates:
    def begin(*told: Any) -> Watch:
        selector = {"fieldSelector": f"spec.nodeName={sources.node_name}"}
        return sources.watch(certificates.PATH, selector, "podcertificaterequests", *told)

    def changed(found: Json | None) -> None:
        if found is not None:
            sources.changed(Key(POD_CERTIFICATE, found["metadata"]["namespace"], found["spec"]["podUID"]))

    return PodCertificates(Collection("PodCertificateRequests", begin, certificates.slim, changed), sources.get,
                           sources.create, pki.make_pod_key, sources.tell, sources.time)


def connect(settings: Settings, changed: Changed, crashed: Crash, tell: Tell) -> ApiContent | None:
    """None standalone, where the client library is not even imported. `crashed` gets a fault of ours in a watch."""
    client = connect_late(settings, "volumes")
    if client is None:
        return None
    strategy = settings.kubelet.config_map_and_secret_change_detection_strategy
    return build(strategy, Sources(client, watching(client, crashed), changed, tell, settings.node_name))


def watching(client: Callable[[], Any], crashed: Crash) -> MakeWatch:
    def make(path: str, params: Mapping[str, Any], name: str, on_list: Any, on_event: Any, on_problem: Any) -> Watch:
        from kubelet_mp.host.kubeapi import ListWatch

        return ListWatch(client(), path, params=params, on_list=on_list, on_event=on_event, on_problem=on_problem,
                         on_crash=crashed, name=name)

    return make
