"""PodCertificateRequests: a key and a certificate for a pod, from a signer of the cluster, and their renewal.

Source: Kubernetes 1.37 pkg/kubelet/podcertificate. The times that the signer gives are turned into monotonic ones
when they come. Nothing outlives the room: a room that starts anew asks for new certificates.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kubelet_mp import log
from kubelet_mp.errors import ApiError, KubeletError
from kubelet_mp.model.clock import NS, Clock, parse_rfc3339
from kubelet_mp.rooms.volumes.content.collection import Collection
from kubelet_mp.rooms.volumes.content.keys import Json
from kubelet_mp.rooms.volumes.content.pem import clean_chain

PATH = "/apis/certificates.k8s.io/v1/podcertificaterequests"
ABANDONED = 600.0  # s after which a request that is not seen has been deleted
OVERDUE = 600.0  # s after the time for renewal
JITTER = 300.0  # s at most, on both
RETRY = 10.0  # s after a failure while a certificate is there, up to twice that
_log = log.get("volumes")

MakeKey = Callable[[str], tuple[str, str]]
"""Type of the key → the private key as PKCS#8 PEM, a PKCS#10 request signed by it as base64 of DER."""
Tell = Callable[[str, str, str], None]
"""UID, reason and message of a warning event about the pod."""


class CertificateKey(NamedTuple):
    """One source of one volume; `place` is where it stands among the volume's sources."""

    namespace: str
    pod: str
    uid: str
    account: str
    volume: str
    place: int


@dataclass(frozen=True, slots=True)
class Issued:
    """Times are monotonic seconds."""

    key: str = field(repr=False)
    chain: str
    renew_at: float
    expires: float


@dataclass(slots=True)
class _Asked:
    """A request that is open."""

    name: str
    key: str = field(repr=False)
    abandon_at: float


@dataclass(slots=True)
class _Record:
    lock: threading.Lock = field(default_factory=threading.Lock)
    asked: _Asked | None = None
    issued: Issued | None = None
    refused: str = ""
    retry_at: float = 0.0
    told: set[str] = field(default_factory=set)  # reasons of the events about what is issued


def slim(found: Json) -> Json:
    return {"uid": (found.get("spec") or {}).get("podUID"), "status": found.get("status") or {}}


class PodCertificates:
    """`create` POSTs and `get` GETs at a path; both raise ApiError. Thread-safe.

    node: name and UID of the Node; the UID is "" until it is known.
    """

    def __init__(self, collection: Collection, get: Callable[[str], Mapping[str, Any]],
                 create: Callable[[str, Json], Mapping[str, Any]], make_key: MakeKey, tell: Tell, time: Clock,
                 roll: Callable[[], float] = random.random) -> None:
        self.collection, self._get, self._create = collection, get, create
        self._make_key, self._tell, self._time, self._roll = make_key, tell, time, roll
        self._lock = threading.Lock()
        self._records: dict[CertificateKey, _Record] = {}
        self.node = ("", "")

    def drop(self, uid: str) -> None:
        with self._lock:
            self._records = {key: record for key, record in self._records.items() if key.uid != uid}
        self.collection.hold(uid, False)

    def due(self) -> set[str]:
        """UIDs of the pods of which something is to be done now."""
        now = self._time.monotonic()
        with self._lock:
            return {key.uid for key, record in self._records.items()
                    if record.issued and not record.refused and now >= max(record.issued.renew_at, record.retry_at)}

    def bundle(self, key: CertificateKey, source: Mapping[str, Any]) -> Issued:
        """What is issued for a `podCertificate` source; asks for it, and for a new one when it is time.

        Raises ApiError while there is none and when it was refused, HostError where no key can be made.
        """
        with self._lock:
            record = self._records.setdefault(key, _Record())
        with record.lock:
            try:
                self._go_on(key, record, source)
            except KubeletError as error:
                self._without_answer(key, record, error)
            if record.refused:
                raise ApiError(record.refused)
            if record.issued is None:
                raise ApiError("credential bundle is not issued yet")
            return record.issued

    def _go_on(self, key: CertificateKey, record: _Record, source: Mapping[str, Any]) -> None:
        now = self._time.monotonic()
        if record.refused:
            return
        if record.asked is not None:
            self._look(key, record, record.asked)
        self._warn(key, record, now)
        due = record.issued is None or now >= record.issued.renew_at
        if due and record.asked is None and not record.refused and now >= record.retry_at:
            self._ask(key, record, source)
            self._look(key, record, record.asked)

    def _without_answer(self, key: CertificateKey, record: _Record, error: KubeletError) -> None:
        if record.issued is None:
            raise error
        record.retry_at = self._time.monotonic() + RETRY * (1 + self._roll())
        _log.warning("pod certificate not renewed", pod=f"{key.namespace}/{key.pod}", volume=key.volume,
                     err=error.message)

    # ---- a request ----

    def _ask(self, key: CertificateKey, record: _Record, source: Mapping[str, Any]) -> None:
        # watch first, so that no answer is missed
        self.collection.items()
        name, uid = self.node
        if not uid:
            raise ApiError("the Node object is not known yet, which a PodCertificateRequest names")
        account = self._get(f"/api/v1/namespaces/{key.namespace}/serviceaccounts/{key.account}")
        private, request = self._make_key(source.get("keyType") or "")
        spec = {
            "signerName": source.get("signerName") or "", "podName": key.pod, "podUID": key.uid,
            "serviceAccountName": key.account, "serviceAccountUID": account["metadata"]["uid"], "nodeName": name,
            "nodeUID": uid, "stubPKCS10Request": request,
            **_given(source, "maxExpirationSeconds", "maxExpirationSeconds"),
            **_given(source, "userAnnotations", "unverifiedUserAnnotations"),
        }
        made = self._create(PATH.replace("/v1/", f"/v1/namespaces/{key.namespace}/"), _object(key, spec))
        abandon_at = self._time.monotonic() + ABANDONED + self._roll() * JITTER
        record.asked = _Asked(made["metadata"]["name"], private, abandon_at)

    def _look(self, key: CertificateKey, record: _Record, asked: _Asked | None) -> None:
        """See what has become of the request."""
        if asked is None:
            return
        found = self.collection.items().get((key.namespace, asked.name))
        if found is None:
            if self._time.monotonic() > asked.abandon_at:
                record.asked = None
                raise ApiError(f'PodCertificateRequest "{key.namespace}/{asked.name}" appears to have been deleted')
            return
        for condition in found["status"].get("conditions") or ():
            if condition.get("type") == "Issued":
                record.asked, record.issued = None, self._issued(asked, found["status"])
                record.told.clear()
            elif condition.get("type") in ("Denied", "Failed"):
                self._refuse(key, record, asked, condition)

    def _issued(self, asked: _Asked, status: Json) -> Issued:
        wall, now = self._time.wall_time(), self._time.monotonic()
        try:
            renew, expires = (parse_rfc3339(status[name]) / NS - wall for name in ("beginRefreshAt", "notAfter"))
        except (KeyError, ValueError) as error:
            raise ApiError(f"PodCertificateRequest {asked.name} was issued without its times") from error
        chain = clean_chain(status.get("certificateChain") or "")
        return Issued(asked.key, chain, now + renew + self._roll() * JITTER, now + expires)

    def _refuse(self, key: CertificateKey, record: _Record, asked: _Asked, condition: Json) -> None:
        """For good: the same would be refused again."""
        word = "denied" if condition["type"] == "Denied" else "failed"
        why = f'reason="{condition.get("reason") or ""}" message="{condition.get("message") or ""}"'
        record.asked, record.refused = None, f"PodCertificateRequest was permanently {word}: {why}"
        was = "was denied" if word == "denied" else word
        self._tell(key.uid, condition["type"], f"PodCertificateRequest {key.namespace}/{asked.name} {was}, {why}")

    def _warn(self, key: CertificateKey, record: _Record, now: float) -> None:
        if record.issued is None:
            return
        late, gone = now > record.issued.renew_at + OVERDUE, now > record.issued.expires
        for is_so, reason, text in ((late, "CertificateOverdueForRefresh", "PodCertificate refresh overdue"),
                                    (gone, "CertificateExpired", "PodCertificate expired")):
            if is_so and reason not in record.told:
                record.told.add(reason)
                self._tell(key.uid, reason, text)


def _given(source: Mapping[str, Any], name: str, to: str) -> Json:
    return {to: source[name]} if source.get(name) is not None else {}


def _object(key: CertificateKey, spec: Json) -> Json:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": key.pod, "uid": key.uid}
    return {"apiVersion": "certificates.k8s.io/v1", "kind": "PodCertificateRequest",
            "metadata": {"namespace": key.namespace, "generateName": "req-", "ownerReferences": [owner]}, "spec": spec}
