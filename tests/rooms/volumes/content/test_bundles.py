"""ClusterTrustBundles against an API server over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kubelet_mp.errors import ApiError
from kubelet_mp.rooms.volumes.content import bundles
from kubelet_mp.rooms.volumes.content.bundles import Bundles, normalised
from kubelet_mp.rooms.volumes.content.collection import Collection
from kubelet_mp.rooms.volumes.content.pem import blocks, certificate, clean_chain
from kubelet_mp.rooms.volumes.content.store import watching
from tests.fakes.api import FakeApi
from tests.support import wait_until

PATH = "/apis/certificates.k8s.io/v1/clustertrustbundles"


def pem(*contents: bytes) -> str:
    return "".join(map(certificate, contents))


def bundle(name: str, text: str, signer: str = "", **labels: str) -> dict[str, Any]:
    return {"apiVersion": "certificates.k8s.io/v1", "kind": "ClusterTrustBundle",
            "metadata": {"name": name, "labels": labels}, "spec": {"signerName": signer, "trustBundle": text}}


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as server:
        yield server


class Side:
    def __init__(self, api: FakeApi) -> None:
        self.crashed: list[BaseException] = []
        client = api.kube()
        watch = watching(lambda: client, self.crashed.append)
        self.changes: list[Any] = []
        self.found = Bundles(Collection(
            "ClusterTrustBundles",
            lambda *told: watch(bundles.served_path(lambda path, **params: client.get(path, **params)), {}, "b", *told),
            bundles.slim, self.changes.append))
        self.found.collection.hold("u", True)

    def content(self, **source: Any) -> set[bytes]:
        return set(blocks(self.found.anchors(source)))


@pytest.fixture
def side(api: FakeApi) -> Iterator[Side]:
    api.add(bundle("one", f"# a comment\n{pem(b'a', b'b', b'a')}"))
    api.add(bundle("s:1", pem(b"c"), "s", env="live"))
    api.add(bundle("s:2", pem(b"d", b"c"), "s", env="test"))
    made = Side(api)
    yield made
    made.found.collection.close()
    assert made.crashed == []


def test_by_name_and_by_signer(side: Side, api: FakeApi):
    assert side.content(name="one") == {b"a", b"b"} and side.found.anchors({"name": "one"}).count("BEGIN") == 2
    assert side.content(signerName="s", labelSelector={}) == {b"c", b"d"}
    assert side.content(signerName="s", labelSelector={"matchLabels": {"env": "live"}}) == {b"c"}
    assert side.content(name="none", optional=True) == side.content(signerName="t", optional=True) == set()
    for source, text in (({"name": "none"}, '"none" not found'),
                         ({"signerName": "s"}, "matched zero"), ({"signerName": "t", "labelSelector": {}}, "matched")):
        with pytest.raises(ApiError, match=text):
            side.content(**source)
    with pytest.raises(ValueError, match="requires either name or signerName"):
        side.content()
    wait_until(lambda: api.watches == 1)


def test_changes_are_told_and_seen(side: Side, api: FakeApi):
    side.content(name="one")
    wait_until(lambda: api.watches == 1)
    side.changes.clear()
    api.change(f"{PATH}/one", lambda found: found["spec"].update(trustBundle=pem(b"z")))
    wait_until(lambda: side.changes)
    assert side.content(name="one") == {b"z"}
    api.remove(f"{PATH}/one")
    wait_until(lambda: len(side.changes) == 2)
    assert side.content(name="one", optional=True) == set()
    side.found.collection.hold("u", False)
    wait_until(lambda: api.bookmark() or api.watches == 0)


def test_the_best_version_that_is_served():
    asked = []

    def get(path: str, **params: Any) -> dict[str, Any]:
        asked.append(path)
        if "/v1beta1/" not in path:
            raise ApiError("none", status=404)
        return {}

    assert bundles.served_path(get) == "/apis/certificates.k8s.io/v1beta1/clustertrustbundles" and len(asked) == 2


def test_a_server_without_them(api: FakeApi):
    api.fail(404, path="clustertrustbundles", reason="NotFound")
    side = Side(api)
    with pytest.raises(ApiError, match="does not serve ClusterTrustBundles"):
        side.content(name="one")
    assert side.content(name="one", optional=True) == set()


def test_texts_of_others_are_made_uniform():
    odd = pem(b"x" * 60).replace("\n", "\r\n") + "noise -----BEGIN\n" + pem(b"y").replace(
        "-----\n", "-----\nProc-Type: 4\nDEK: x\n\n", 1) + "-----BEGIN A-----\n!!\n-----END A-----\n"
    assert clean_chain(odd) == pem(b"x" * 60, b"y")
    assert normalised([odd, odd]) == normalised([clean_chain(odd)])
