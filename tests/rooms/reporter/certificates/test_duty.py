"""The duty in its room, against an API server over HTTP and an authority that signs."""

from __future__ import annotations

import io
import json
import os
import ssl
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from kubelet_mp import log
from kubelet_mp.config import KubeletConfiguration, Settings
from kubelet_mp.host import pki
from kubelet_mp.rooms.reporter.certificates import plan
from kubelet_mp.rooms.reporter.certificates.duty import Certificates, wanted
from kubelet_mp.rooms.reporter.room import ReporterRoom
from kubelet_mp.wire.messages import Metrics, NodeObject
from tests.fakes.api import FakeApi
from tests.fakes.link import RoomRunner
from tests.fakes.signer import PATH, Signer
from tests.support import wait_until

NODE = "n1"
TOKEN = {"token": "abcdef.0123456789abcdef"}


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as fake:
        yield fake


@pytest.fixture
def said(request: pytest.FixtureRequest) -> io.StringIO:
    stream = io.StringIO()
    log.setup("text", stream=stream, journal=False, verbosity=2)
    request.addfinalizer(lambda: log.setup("text"))
    return stream


class Place:
    """A node's files, and the settings that name them."""

    def __init__(self, root: Path) -> None:
        self.pki, self.kubeconfig, self.bootstrap = root / "pki", root / "etc" / "kubeconfig", root / "bootstrap"
        self.current = self.pki / "kubelet-client-current.pem"
        self.kept = self.pki / "kubelet-client.key.tmp"
        self.server = self.pki / "kubelet-server-current.pem"

    def run(self, *, bootstrap: bool = True, **kubelet: Any) -> RoomRunner:
        settings = Settings(
            node_name=NODE, kubeconfig=str(self.kubeconfig), cert_dir=str(self.pki),
            bootstrap_kubeconfig=str(self.bootstrap) if bootstrap else "", kubelet=KubeletConfiguration(**kubelet))
        assert wanted(settings)
        return RoomRunner(ReporterRoom, settings, make=[lambda context: Certificates(context, retry=lambda *_: 0.05)])

    def give_certificate(self, api: FakeApi, signer: Signer) -> None:
        """A kubeconfig with a client certificate of that signer."""
        request = pki.make_request(plan.user_name(NODE), plan.ORGANIZATIONS)
        chain = signer.certificate(x509.load_pem_x509_csr(request.request.encode()))
        pki.PemStore(str(self.pki), "kubelet-client").save(chain, request.key, 0)
        self.kubeconfig.parent.mkdir(exist_ok=True)
        user = {"client-certificate": str(self.current), "client-key": str(self.current)}
        api.kubeconfig(self.kubeconfig, user)


@pytest.fixture
def place(tmp_path: Path, api: FakeApi) -> Place:
    made = Place(tmp_path)
    (tmp_path / "ca.crt").write_text("CA")
    api.kubeconfig(made.bootstrap, TOKEN, {"certificate-authority": "ca.crt", "tls-server-name": "api.example"})
    return made


def test_a_token_becomes_a_certificate(api: FakeApi, place: Place, tmp_path: Path, said: io.StringIO) -> None:
    with Signer(api), place.run():
        wait_until(place.kubeconfig.exists, 10, "the kubeconfig")
        wait_until(lambda: not place.kept.exists(), 5, "the kept key to go")
    [made] = api.all(PATH)
    assert made["metadata"]["name"].startswith("node-csr-")
    assert made["spec"]["signerName"] == plan.CLIENT_SIGNER
    assert "expirationSeconds" not in made["spec"]
    assert api.asked("create", PATH)[0].headers["Authorization"] == f"Bearer {TOKEN['token']}"
    found = pki.inspect(place.current.read_bytes(), "x")
    assert (found.name, found.organizations, found.matches) == ("system:node:n1", ("system:nodes",), True)
    assert place.current.is_symlink()
    assert stat.S_IMODE(place.current.stat().st_mode) == stat.S_IMODE(place.kubeconfig.stat().st_mode) == 0o600
    written = json.loads(place.kubeconfig.read_text())
    assert written["users"][0]["user"] == {"client-certificate": str(place.current), "client-key": str(place.current)}
    assert written["clusters"][0]["cluster"] == {
        "server": api.url, "certificate-authority": str(tmp_path / "ca.crt"), "tls-server-name": "api.example"}
    assert TOKEN["token"] not in place.kubeconfig.read_text() + said.getvalue()


def test_a_restart_takes_up_the_request_that_waits(api: FakeApi, place: Place) -> None:
    signer = Signer(api)
    with place.run():
        wait_until(signer.pending, 10, "the request")
        assert stat.S_IMODE(place.kept.stat().st_mode) == 0o600
    with place.run():
        wait_until(lambda: len(api.asked("create", PATH)) == 2, 10, "the second attempt")
        [only] = signer.pending()
        signer.sign(only)
        wait_until(place.kubeconfig.exists, 10, "the kubeconfig")
    assert len(api.all(PATH)) == 1


def test_an_expired_certificate_leads_back_to_the_token(api: FakeApi, place: Place, said: io.StringIO) -> None:
    place.give_certificate(api, Signer(api, life=-10))
    old = os.readlink(place.current)
    with Signer(api), place.run():
        wait_until(lambda: os.readlink(place.current) != old, 10, "a new certificate")
    assert "the certificate has expired, at 2" in said.getvalue()
    assert pki.inspect(place.current.read_bytes(), "x").matches


def test_with_a_good_certificate_the_token_is_not_used(api: FakeApi, place: Place) -> None:
    place.give_certificate(api, Signer(api))
    with Signer(api), place.run() as runner:
        text = runner.wait_for(Metrics, lambda m: "ttl_seconds 3" in m.text, 10).text
    assert "kubelet_certificate_manager_client_ttl_seconds 3" in text
    assert api.all(PATH) == []


def test_a_denied_request_is_said_and_not_repeated(api: FakeApi, place: Place, said: io.StringIO) -> None:
    signer = Signer(api)
    with place.run():
        signer.decide(wait_until(signer.pending, 10, "the request")[0], "Denied")
        wait_until(lambda: "denied (Tested: by a test)" in said.getvalue(), 10, "the reason")
        wait_until(lambda: len(api.asked("create", PATH)) >= 2, 10, "a second attempt")
    assert len(api.all(PATH)) == 1
    assert place.kept.exists()
    assert not place.kubeconfig.exists()


def test_a_certificate_for_another_key_is_not_taken(api: FakeApi, place: Place, said: io.StringIO) -> None:
    signer = Signer(api)
    other = pki.make_request("x", ()).request.encode()
    with place.run():
        signer.sign(wait_until(signer.pending, 10, "the request")[0], request=other)
        wait_until(lambda: "the private key is not that of the certificate" in said.getvalue(), 10, "the reason")
        wait_until(lambda: len(api.all(PATH)) == 2, 10, "a request with another key")
    assert not place.current.exists()


def test_an_api_server_that_is_away_is_waited_for(api: FakeApi, place: Place, said: io.StringIO) -> None:
    api.fail(503, "create", PATH, times=1)
    with Signer(api), place.run():
        wait_until(place.kubeconfig.exists, 15, "the kubeconfig")
    assert said.getvalue().count("no new client certificate") == 1


def test_a_certificate_is_renewed_with_itself(api: FakeApi, place: Place) -> None:
    place.give_certificate(api, Signer(api, life=100, age=1000))
    old = os.readlink(place.current)
    before = place.kubeconfig.read_text()
    with Signer(api), place.run(bootstrap=False, rotate_certificates=True):
        wait_until(lambda: os.readlink(place.current) != old, 10, "a new certificate")
    [made] = api.all(PATH)
    assert made["metadata"]["name"].startswith("csr-")
    assert place.kubeconfig.read_text() == before
    assert (place.pki / old).exists()


def test_a_kubeconfig_with_a_certificate_of_its_own_is_pointed_to_the_new_one(api: FakeApi, place: Place) -> None:
    place.give_certificate(api, Signer(api, life=100, age=1000))
    own = place.pki / "own.pem"
    os.rename(place.current.resolve(), own)
    place.current.unlink()
    api.kubeconfig(place.kubeconfig, {"client-certificate": "../pki/own.pem", "client-key": "../pki/own.pem"})
    with Signer(api), place.run(bootstrap=False, rotate_certificates=True):
        wait_until(place.current.exists, 10, "a new certificate")
        wait_until(lambda: str(place.current) in place.kubeconfig.read_text(), 5, "the kubeconfig to name it")


def test_an_expired_certificate_without_a_token_is_said(api: FakeApi, place: Place, said: io.StringIO) -> None:
    place.give_certificate(api, Signer(api, life=-10))
    with place.run(bootstrap=False, rotate_certificates=True):
        wait_until(lambda: "give --bootstrap-kubeconfig" in said.getvalue(), 10, "what to do")
    assert api.all(PATH) == []


def test_over_tls_the_new_certificate_is_who_we_are_and_watches_go_on(place: Place, tmp_path: Path) -> None:
    signer = Signer(FakeApi(), life=100, age=1000)
    (tmp_path / "ca.crt").write_bytes(signer.authority())
    made = pki.make_request("api", (), ("127.0.0.1",))
    chain = signer.certificate(x509.load_pem_x509_csr(made.request.encode()))
    (tmp_path / "api.pem").write_bytes(chain + made.key.encode())
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "api.pem")
    tls.load_verify_locations(tmp_path / "ca.crt")
    tls.verify_mode = ssl.CERT_REQUIRED
    with FakeApi(tls) as api:
        signer.api = api
        place.give_certificate(api, signer)
        user = {"client-certificate": str(place.current), "client-key": str(place.current)}
        api.kubeconfig(place.kubeconfig, user, {"certificate-authority": str(tmp_path / "ca.crt")})
        kube = api.kube_of(str(place.kubeconfig))
        with kube.stream("/api/v1/nodes", quiet=30, watch="true") as watch:
            old = os.readlink(place.current)
            with signer, place.run(bootstrap=False, rotate_certificates=True):
                wait_until(lambda: os.readlink(place.current) != old, 10, "a new certificate")
            connections = api.connections
            kube.get("/version")
            assert api.connections == connections + 1  # one that knows the new certificate
            api.add({"kind": "Node", "metadata": {"name": NODE}})
            assert json.loads(next(watch.iter_lines()))["object"]["metadata"]["name"] == NODE


def node(*ips: str) -> NodeObject:
    addresses = [{"type": "InternalIP", "address": ip} for ip in ips] + [{"type": "Hostname", "address": NODE}]
    return NodeObject({"metadata": {"name": NODE}, "status": {"addresses": addresses}})


def test_a_serving_certificate_follows_the_addresses(api: FakeApi, place: Place) -> None:
    place.kubeconfig.parent.mkdir()
    api.kubeconfig(place.kubeconfig)
    with Signer(api), place.run(bootstrap=False, server_tls_bootstrap=True) as runner:
        runner.give(node())
        runner.give(node("192.0.2.1"))
        wait_until(place.server.exists, 10, "the certificate")
        first = os.readlink(place.server)
        assert set(pki.inspect(place.server.read_bytes(), "x").names) == {NODE, "192.0.2.1"}
        runner.give(node("192.0.2.1"), node("192.0.2.1", "192.0.2.2"))
        wait_until(lambda: os.readlink(place.server) != first, 10, "another one")
        found = pki.inspect(place.server.read_bytes(), "x")
    assert set(found.names) == {NODE, "192.0.2.1", "192.0.2.2"}
    assert (found.name, found.organizations) == ("system:node:n1", ("system:nodes",))
    assert len(api.all(PATH)) == 2
    spec = api.all(PATH)[0]["spec"]
    assert (spec["signerName"], spec["usages"]) == (plan.SERVING_SIGNER, ["digital signature", "server auth"])


def test_a_serving_certificate_that_is_there_is_kept(api: FakeApi, place: Place) -> None:
    place.kubeconfig.parent.mkdir()
    api.kubeconfig(place.kubeconfig)
    with Signer(api), place.run(bootstrap=False, server_tls_bootstrap=True) as runner:
        runner.give(node("192.0.2.1"))
        wait_until(place.server.exists, 10, "the certificate")
    with Signer(api), place.run(bootstrap=False, server_tls_bootstrap=True) as runner:
        runner.give(node("192.0.2.1"))
        text = runner.wait_for(Metrics, lambda m: "ttl_seconds 3" in m.text, 10).text
    assert "kubelet_certificate_manager_server_ttl_seconds 3" in text
    assert len(api.all(PATH)) == 1


def test_a_message_from_another_duty_of_the_room_comes_too(api: FakeApi, place: Place) -> None:
    place.kubeconfig.parent.mkdir()
    api.kubeconfig(place.kubeconfig)
    with Signer(api), place.run(bootstrap=False, server_tls_bootstrap=True) as runner:
        runner.run_here(lambda: runner.room.tell(node("192.0.2.1")))
        wait_until(place.server.exists, 10, "the certificate")


def test_there_is_no_duty_where_nothing_is_asked_for() -> None:
    rotating = KubeletConfiguration(rotate_certificates=True)
    assert not wanted(Settings(node_name=NODE, kubelet=rotating))
    assert not wanted(Settings(node_name=NODE, kubeconfig="/k"))
    assert wanted(Settings(node_name=NODE, kubeconfig="/k", kubelet=rotating))
