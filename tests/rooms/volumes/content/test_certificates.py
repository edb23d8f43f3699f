"""Certificates for pods: asked for once, renewed in time, refused for good."""

from __future__ import annotations

from typing import Any

import pytest

from kubelet_mp.errors import ApiError
from kubelet_mp.model.clock import NS, rfc3339
from kubelet_mp.rooms.volumes.content import certificates
from kubelet_mp.rooms.volumes.content.certificates import CertificateKey, PodCertificates
from kubelet_mp.rooms.volumes.content.collection import Collection
from tests.support import FakeClock

KEY = CertificateKey("ns", "web", "u", "sa", "v", 1)
SOURCE = {"signerName": "example.com/s", "keyType": "ED25519", "maxExpirationSeconds": 86400,
          "userAnnotations": {"example.com/a": "b"}, "credentialBundlePath": "both.pem"}
PEM = "-----BEGIN CERTIFICATE-----\nAAEC\n-----END CERTIFICATE-----\n"


class Watch:
    def start(self) -> None:
        self.on_list([])  # type: ignore[attr-defined]

    def stop(self) -> None:
        pass


class Side:
    """An API server that takes requests, and a signer in the test's hand."""

    def __init__(self) -> None:
        self.clock, self.watch = FakeClock(), Watch()
        self.bodies: list[dict[str, Any]] = []
        self.events: list[tuple[str, str, str]] = []
        self.away = False
        self.pods = PodCertificates(
            Collection("PodCertificateRequests", self._begin, certificates.slim, lambda _: None), self._get,
            self._create, lambda kind: (f"{kind} key {len(self.bodies)}\n", "ABC="),
            lambda *event: self.events.append(event), self.clock, roll=lambda: 0.5)
        self.pods.node = ("n", "node-uid")
        self.pods.collection.hold("u", True)

    def _begin(self, on_list: Any, on_event: Any, on_problem: Any) -> Watch:
        self.watch.on_list, self.on_event = on_list, on_event  # type: ignore[attr-defined]
        return self.watch

    def _get(self, path: str) -> dict[str, Any]:
        assert path == "/api/v1/namespaces/ns/serviceaccounts/sa"
        return {"metadata": {"uid": "account-uid"}}

    def _create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        assert path == "/apis/certificates.k8s.io/v1/namespaces/ns/podcertificaterequests"
        if self.away:
            raise ApiError("no answer")
        self.bodies.append(body)
        made = {**body, "metadata": {**body["metadata"], "name": f"req-{len(self.bodies)}"}}
        self.on_event("ADDED", made)
        return made

    def decide(self, kind: str, seconds: float = 3600.0, **status: Any) -> None:
        """About the newest request; the certificate is to be renewed after half of `seconds`."""
        wall = self.clock.wall_time()
        times = {"beginRefreshAt": rfc3339(int((wall + seconds / 2) * NS)), "notAfter": rfc3339(
            int((wall + seconds) * NS)), "certificateChain": f"chain {len(self.bodies)}\n{PEM}"}
        condition = {"type": kind, "status": "True", "reason": "Why", "message": "so"}
        self.on_event("MODIFIED", {
            "metadata": {"namespace": "ns", "name": f"req-{len(self.bodies)}"}, "spec": {"podUID": "u"},
            "status": {"conditions": [condition], **(times if kind == "Issued" else {}), **status}})

    def fails(self, text: str) -> None:
        with pytest.raises(ApiError, match=text):
            self.pods.bundle(KEY, SOURCE)


@pytest.fixture
def side() -> Side:
    return Side()


def test_it_is_asked_for_once_and_there_when_it_is_issued(side: Side):
    side.fails("not issued yet")
    side.fails("not issued yet")
    [body] = side.bodies
    assert body["metadata"] == {"namespace": "ns", "generateName": "req-", "ownerReferences": [
        {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u"}]}
    assert body["spec"] == {
        "signerName": "example.com/s", "podName": "web", "podUID": "u", "serviceAccountName": "sa",
        "serviceAccountUID": "account-uid", "nodeName": "n", "nodeUID": "node-uid", "stubPKCS10Request": "ABC=",
        "maxExpirationSeconds": 86400, "unverifiedUserAnnotations": {"example.com/a": "b"}}
    side.decide("Issued")
    issued = side.pods.bundle(KEY, SOURCE)
    assert (issued.key, issued.chain) == ("ED25519 key 0\n", PEM)
    assert side.pods.bundle(KEY, SOURCE) is issued and len(side.bodies) == 1 and side.events == []


def test_it_is_renewed_and_the_old_one_serves_meanwhile(side: Side):
    side.fails("not issued yet")
    side.decide("Issued")
    old = side.pods.bundle(KEY, SOURCE)
    side.clock.advance(1940)
    assert side.pods.due() == set()
    side.clock.advance(20)  # half an hour, and half of five minutes
    assert side.pods.due() == {"u"}
    assert side.pods.bundle(KEY, SOURCE) is old and len(side.bodies) == 2
    side.decide("Issued")
    assert side.pods.bundle(KEY, SOURCE).key == "ED25519 key 1\n" and side.pods.due() == set()


def test_overdue_and_expired_are_told_once(side: Side):
    side.fails("not issued yet")
    side.decide("Issued")
    side.pods.bundle(KEY, SOURCE)
    side.away = True
    for seconds in (1960, 620, 30, 1000, 30):
        side.clock.advance(seconds)
        side.pods.bundle(KEY, SOURCE)
    assert side.events == [("u", "CertificateOverdueForRefresh", "PodCertificate refresh overdue"),
                           ("u", "CertificateExpired", "PodCertificate expired")]
    side.away = False
    side.clock.advance(30)
    side.pods.bundle(KEY, SOURCE)
    side.decide("Issued")
    assert side.pods.bundle(KEY, SOURCE).key == "ED25519 key 1\n"


@pytest.mark.parametrize(("kind", "word", "was"), [("Denied", "denied", "was denied"), ("Failed", "failed", "failed")])
def test_refused_is_for_good(side: Side, kind: str, word: str, was: str):
    side.fails("not issued yet")
    side.decide(kind)
    for _ in range(2):
        side.fails(f'permanently {word}: reason="Why" message="so"')
    assert side.events == [("u", kind, f'PodCertificateRequest ns/req-1 {was}, reason="Why" message="so"')]
    assert len(side.bodies) == 1 and side.pods.due() == set()


def test_a_request_that_was_deleted_is_made_again_after_a_while(side: Side):
    side.fails("not issued yet")
    side.on_event("DELETED", {"metadata": {"namespace": "ns", "name": "req-1"}, "spec": {"podUID": "u"}})
    side.clock.advance(700)
    side.fails("not issued yet")
    side.clock.advance(100)
    side.fails("appears to have been deleted")
    side.fails("not issued yet")
    assert len(side.bodies) == 2


def test_what_is_missing_is_named(side: Side):
    side.pods.node = ("", "")
    side.fails("the Node object is not known yet")
    side.pods.node = ("n", "node-uid")
    side.away = True
    side.fails("no answer")
    side.pods.drop("u")
    side.fails("no pod needs them any more")
