"""Volumes whose content comes from an API server, in the room, against a fake server over HTTP."""

from __future__ import annotations

import base64
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from kubelet_mp.config import KubeletConfiguration, Settings
from kubelet_mp.host import mounts
from kubelet_mp.rooms.volumes import room as rooms
from kubelet_mp.rooms.volumes.content.pem import certificate
from kubelet_mp.rooms.volumes.crew import Crew
from kubelet_mp.rooms.volumes.room import VolumesRoom
from kubelet_mp.wire.messages import Event, NodeFacts, NodeObject, PodAdmitted, PodFreed, PodStopped, PodVolumesReady
from tests.fakes.api import FakeApi
from tests.fakes.link import RoomRunner
from tests.support import wait_until

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
FACTS = NodeFacts(("192.0.2.5",), "n", 1, "cgroupfs", {"memory": 1 << 30}, {"memory": 1 << 30})
BASE = "/api/v1/namespaces/d"
CA = {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}
ACCESS = {"name": "kube-api-access-x1y2z", "projected": {"defaultMode": 0o644, "sources": [
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": CA},
    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
]}}


def pod(uid: str, *volumes: dict[str, Any], spec: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    mounted = [{"name": volume["name"], "mountPath": "/x"} for volume in volumes]
    return {"metadata": {"uid": uid, "name": f"p-{uid}", "namespace": "d", **meta},
            "spec": {"volumes": list(volumes), "containers": [{"name": "c", "volumeMounts": mounted}],
                     "serviceAccountName": "default", **(spec or {})}}


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "d"}, "data": data,
            "binaryData": {"bin": "AAE="}}


def secret(name: str, **data: str) -> dict[str, Any]:
    coded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "d"}, "data": coded}


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as server:
        yield server


class Runs:
    """The room, made with a strategy."""

    def __init__(self, api: FakeApi, base: Path) -> None:
        self.root = base.resolve() / "root"
        self.root.mkdir()
        self._config = api.kubeconfig(base / "kubeconfig")

    def __call__(self, strategy: str = "Watch", **config: Any) -> RoomRunner:
        kubelet = KubeletConfiguration(config_map_and_secret_change_detection_strategy=strategy, **config)
        settings = Settings(node_name="n", root_dir=str(self.root), kubeconfig=self._config, kubelet=kubelet)
        made = RoomRunner(VolumesRoom, settings, share_root=False)
        made.give(FACTS)
        return made


@pytest.fixture
def run(api: FakeApi, tmp_path: Path) -> Iterator[Runs]:
    made = Runs(api, tmp_path)
    yield made
    for mount in mounts.under(mounts.mount_table(), str(made.root)):
        mounts.umount(mount.path)


def stands(room: RoomRunner, uid: str) -> dict[str, str]:
    return dict(room.wait_for(PodVolumesReady, lambda m: m.uid == uid and not m.problem and not m.pending).paths)


def test_the_volume_that_every_pod_has(api: FakeApi, run: Runs):
    api.add(config_map("kube-root-ca.crt", **{"ca.crt": "PEM"}))
    with run() as room:
        uids = [f"u{number}" for number in range(30)]
        room.give(*[PodAdmitted(uid, pod(uid, ACCESS)) for uid in uids])
        paths = [Path(stands(room, uid)[ACCESS["name"]]) for uid in uids]  # type: ignore[index]
        assert {(path / "ca.crt").read_text() for path in paths} == {"PEM"}
        assert {(path / "namespace").read_text() for path in paths} == {"d"}
        assert len({(path / "token").read_text() for path in paths}) == 30 and mode(paths[0] / "token") == 0o644
        assert str(paths[0]).endswith(f"/kubernetes.io~projected/{ACCESS['name']}") and os.path.ismount(paths[0])
        assert len(api.asked("list")) == 1 and len(api.asked("watch")) == 1 and api.asked("get") == []
        requests = api.asked("create", "/serviceaccounts/default/token")
        assert sorted(r.body["spec"]["boundObjectRef"]["uid"] for r in requests) == sorted(uids)
        room.give(*[PodStopped(uid, None) for uid in uids])
        wait_until(lambda: len({m.uid for m in room.link.of(PodFreed)}) == 30)
        wait_until(lambda: api.bookmark() or api.watches == 0)
        assert not any(path.exists() for path in paths)


def test_a_change_is_in_the_files_at_once(api: FakeApi, run: Runs):
    api.add(config_map("one", k="1"))
    api.add(secret("two", k="1", other="x"))
    both = {"sources": [{"configMap": {"name": "one"}}, {"secret": {
        "name": "two", "items": [{"key": "k", "path": "deep/s", "mode": 0o400}]}}]}
    with run() as room:
        room.give(PodAdmitted("u", pod("u", {"name": "c", "configMap": {"name": "one", "defaultMode": 0o640}},
                                       {"name": "s", "secret": {"secretName": "two"}},
                                       {"name": "b", "projected": both})))
        paths = {name: Path(path) for name, path in stands(room, "u").items()}
        assert (paths["c"] / "k").read_text() == "1" and (paths["c"] / "bin").read_bytes() == b"\0\1"
        assert mode(paths["c"] / "k") == 0o640 and not os.path.ismount(paths["c"]) and os.path.ismount(paths["s"])
        assert [p.parent.name for p in paths.values()] == [f"kubernetes.io~{n}" for n in ("configmap", "secret",
                                                                                      "projected")]
        assert mode(paths["b"] / "deep/s") == 0o400 and not (paths["b"] / "other").exists()
        wait_until(lambda: api.watches == 2)
        room.link.clear()
        api.change(f"{BASE}/configmaps/one", lambda o: o["data"].update(k="2"))
        api.change(f"{BASE}/secrets/two", lambda o: o["data"].update(k="Mg=="))
        files = [paths["c"] / "k", paths["s"] / "k", paths["b"] / "k", paths["b"] / "deep/s"]
        wait_until(lambda: [f.read_text() for f in files] == ["2"] * 4, 2.0)
        api.remove(f"{BASE}/configmaps/one")
        wait_until(lambda: room.link.of(Event))
        assert (paths["c"] / "k").read_text() == "2"  # what stands goes on standing
        assert not [m for m in room.link.of(PodVolumesReady) if m.pending]


def test_what_is_missing_is_told_and_taken_when_it_comes(api: FakeApi, run: Runs):
    with run() as room:
        room.give(PodAdmitted("u", pod("u", {"name": "c", "configMap": {"name": "late"}}, {
            "name": "o", "secret": {"secretName": "never", "optional": True}})))
        told = room.wait_for(PodVolumesReady, lambda m: bool(m.problem) and "o" in m.paths)
        text = 'MountVolume.SetUp failed for volume "c" : configmap "late" not found'
        assert told.problem == text and told.pending == ("c",)
        assert [(e.type, e.reason, e.message) for e in room.link.of(Event)][:1] == [("Warning", "FailedMount", text)]
        wait_until(lambda: api.watches == 2)
        api.add(config_map("late", k="1"))
        assert (Path(stands(room, "u")["c"]) / "k").read_text() == "1"


def test_several_problems_of_one_volume_are_told_together(api: FakeApi, run: Runs):
    api.add(config_map("one", k="1"))
    sources = [{"configMap": {"name": "one", "items": [{"key": "x", "path": "x"}]}}, {"secret": {"name": "gone"}},
               {"secret": {"name": "gone"}}]
    with run() as room:
        room.give(PodAdmitted("u", pod("u", {"name": "b", "projected": {"sources": sources}})))
        told = room.wait_for(PodVolumesReady, lambda m: bool(m.problem))
        assert told.problem.endswith(' : [references non-existent config key: x, secret "gone" not found]')
        room.give(PodAdmitted("v", pod("v", {"name": "s", "secret": {
            "secretName": "gone", "items": [{"key": "x", "path": "x"}], "optional": True}})))
        assert [n for n in os.listdir(stands(room, "v")["s"]) if not n.startswith("..")] == []


def test_whose_a_token_is(api: FakeApi, run: Runs):
    token = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "token", "audience": "a"}}]}}
    with run() as room:
        room.give(PodAdmitted("u", pod("u", token, spec={"securityContext": {"runAsUser": 1234}})),
                  PodAdmitted("g", pod("g", token, spec={"securityContext": {"fsGroup": 2345}})))
        user, group = (os.stat(f"{stands(room, uid)['t']}/token") for uid in "ug")
        assert (user.st_uid, stat.S_IMODE(user.st_mode)) == (1234, 0o600)
        assert (group.st_gid, stat.S_IMODE(group.st_mode)) == (2345, 0o640)


def test_tokens_are_renewed_without_a_restart(api: FakeApi, run: Runs, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rooms, "RENEW_EVERY", 0.05)
    monkeypatch.setattr("kubelet_mp.rooms.volumes.content.tokens.USED", 0.0002)
    monkeypatch.setattr("kubelet_mp.rooms.volumes.content.tokens.JITTER", 0.0)
    api.add(config_map("kube-root-ca.crt", **{"ca.crt": "PEM"}))
    with run() as room:
        room.give(PodAdmitted("u", pod("u", ACCESS)))
        path = Path(stands(room, "u")[str(ACCESS["name"])])
        first = (path / "token").read_text()
        wait_until(lambda: (path / "token").read_text() != first, 5.0)
        assert not room.link.of(Event)


@pytest.mark.parametrize("strategy", ["Cache", "Get"])
def test_without_watches_objects_are_read_again(api: FakeApi, run: Runs, strategy: str,
                                                monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("kubelet_mp.rooms.volumes.content.fetched.BURST", 0.05)
    monkeypatch.setattr("kubelet_mp.rooms.volumes.content.fetched.DEFAULT_TTL", 0.2)
    monkeypatch.setattr("kubelet_mp.rooms.volumes.content.store.DEFAULT_TTL", 0.2)
    api.add(config_map("one", k="1"))
    with run(strategy, sync_frequency="100ms") as room:
        room.give(PodAdmitted("u", pod("u", {"name": "c", "configMap": {"name": "one"}})))
        path = Path(stands(room, "u")["c"])
        api.change(f"{BASE}/configmaps/one", lambda o: o["data"].update(k="2"))
        wait_until(lambda: (path / "k").read_text() == "2", 5.0)
        assert api.asked("watch") == api.asked("list") == []


def test_an_echo_of_the_pod_asks_for_nothing(api: FakeApi, run: Runs):
    api.add(config_map("kube-root-ca.crt", **{"ca.crt": "PEM"}))
    with run() as room:
        room.give(PodAdmitted("u", pod("u", ACCESS)))
        path = Path(stands(room, "u")[str(ACCESS["name"])])
        before = os.readlink(path / "..data")
        room.give(PodAdmitted("u", pod("u", ACCESS, generation=2)))
        room.give(PodAdmitted("v", pod("v", ACCESS)))
        stands(room, "v")
        assert os.readlink(path / "..data") == before and len(api.asked("create")) == 2


def test_pods_wait_for_a_server_that_is_away(api: FakeApi, run: Runs):
    api.add(config_map("one", k="1"))
    api.down()
    with run() as room:
        room.give(PodAdmitted("u", pod("u", {"name": "c", "configMap": {"name": "one"}})),
                  PodAdmitted("v", pod("v", {"name": "e", "emptyDir": {}})))
        assert "e" in stands(room, "v")
        assert "refused" in room.wait_for(PodVolumesReady, lambda m: m.uid == "u").problem
        api.up()
        assert "c" in stands(room, "u")


def test_a_crew_is_small_and_ends_when_there_is_nothing_to_do():
    crew, go, done = Crew(2, idle=0.05), threading.Event(), list[int]()

    def work(number: int) -> None:
        go.wait(5)
        done.append(number)

    for number in range(6):
        crew.run(lambda number=number: work(number))  # type: ignore[misc]
    assert crew._threads == 2
    go.set()
    wait_until(lambda: len(done) == 6)
    wait_until(lambda: crew._threads == 0)
    crew.run(lambda: done.append(9))
    wait_until(lambda: 9 in done)


def test_trust_and_a_certificate_for_the_pod(api: FakeApi, run: Runs):
    requests = "/apis/certificates.k8s.io/v1/namespaces/d/podcertificaterequests"
    api.add({"apiVersion": "certificates.k8s.io/v1", "kind": "ClusterTrustBundle", "metadata": {"name": "t"},
             "spec": {"trustBundle": certificate(b"anchor")}})
    api.add({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "d"}})
    source = {"signerName": "s.example/x", "keyType": "ECDSAP256", "credentialBundlePath": "b.pem", "keyPath": "k.pem",
              "certificateChainPath": "c.pem"}
    volume = {"name": "v", "projected": {"sources": [
        {"clusterTrustBundle": {"name": "t", "path": "t.pem"}}, {"podCertificate": source}]}}
    with run() as room:
        room.give(NodeObject({"metadata": {"name": "n", "uid": "node-uid"}}),
                  PodAdmitted("u", pod("u", volume, spec={"securityContext": {"runAsUser": 7}})))
        [made] = wait_until(lambda: api.all(requests))
        request = x509.load_der_x509_csr(base64.b64decode(made["spec"]["stubPKCS10Request"]))
        assert made["spec"]["nodeUID"] == "node-uid" and request.is_signature_valid
        times = {"beginRefreshAt": "2100-01-01T00:00:00Z", "notAfter": "2100-02-01T00:00:00Z"}
        api.change(f"{requests}/{made['metadata']['name']}", lambda one: one.update(status={
            "conditions": [{"type": "Issued", "status": "True"}], "certificateChain": certificate(b"leaf"), **times}))
        path = Path(stands(room, "u")["v"])
        key, chain = (path / "k.pem").read_text(), (path / "c.pem").read_text()
        assert chain == certificate(b"leaf") and (path / "b.pem").read_text() == key + chain
        private = serialization.load_pem_private_key(key.encode(), None)
        assert key.startswith("-----BEGIN PRIVATE KEY-----\n") and private.public_key() == request.public_key()
        assert (path / "t.pem").read_text() == certificate(b"anchor")
        assert mode(path / "k.pem") == 0o600 and os.stat(path / "k.pem").st_uid == 7
        api.change("/apis/certificates.k8s.io/v1/clustertrustbundles/t",
                   lambda one: one["spec"].update(trustBundle=certificate(b"new")))
        wait_until(lambda: (path / "t.pem").read_text() == certificate(b"new"), 2.0)
        assert (path / "k.pem").read_text() == key


def test_owners_of_files(api: FakeApi, run: Runs):
    api.add(config_map("one", a="1", b="2"))
    items = [{"key": "a", "path": "a", "user": 5}, {"key": "b", "path": "b"}]
    with run() as room:
        room.give(PodAdmitted("u", pod(
            "u", {"name": "c", "configMap": {"name": "one", "items": items, "defaultUser": 6}},
            {"name": "d", "downwardAPI": {"items": [
                {"path": "n", "user": 8, "fieldRef": {"fieldPath": "metadata.name"}}]}})))
        paths = stands(room, "u")
        assert [os.stat(f"{paths['c']}/{name}").st_uid for name in "ab"] == [5, 6]
        assert os.stat(f"{paths['d']}/n").st_uid == 8
