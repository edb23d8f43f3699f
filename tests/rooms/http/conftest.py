"""An http room on free ports of this machine, and requests to it."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from kubelet_mp.config import KubeletConfiguration, Settings
from kubelet_mp.config.model import AnonymousAuthentication, Authentication, Authorization, WebhookAuthentication
from kubelet_mp.rooms.http.room import HttpRoom
from kubelet_mp.wire.messages import PodStatus
from tests.fakes.cri import FakeCRI
from tests.fakes.link import RoomRunner
from tests.support import wait_until

OPEN = {
    "authentication": Authentication(
        webhook=WebhookAuthentication(enabled=False), anonymous=AnonymousAuthentication(enabled=True)
    ),
    "authorization": Authorization(mode="AlwaysAllow"),
}


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@dataclass
class Answer:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.body.decode()


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@dataclass
class Server:
    """A running room; `ask` makes one request on the listener of a configuration field."""

    runner: RoomRunner
    root: Path

    def address(self, field_: str) -> tuple[str, int]:
        """Where the listener of that field is, once there is one."""
        wait_until(lambda: self.runner.failure() or self.runner.room.serving, 10, "the listeners")
        found: tuple[str, int] = self.runner.room.addresses[field_]
        return found

    def connect(self, field_: str = "port", tls: ssl.SSLContext | None = None) -> http.client.HTTPConnection:
        host, port = self.address(field_)
        if field_ == "port":
            return http.client.HTTPSConnection(host, port, timeout=10, context=tls or unverified())
        return http.client.HTTPConnection(host, port, timeout=10)

    def ask(self, path: str, method: str = "GET", *, on: str = "port", tls: ssl.SSLContext | None = None) -> Answer:
        connection = self.connect(on, tls)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            return Answer(response.status, response.read(), dict(response.getheaders()))
        finally:
            connection.close()

    def give(self, *messages: Any) -> None:
        """Deliver messages and wait until the room has taken them."""
        wait_until(lambda: self.runner.link.credits, 10, "the room's first turn")
        credits = self.runner.link.credits
        self.runner.give(*messages)
        wait_until(lambda: self.runner.link.credits > credits, 5, "the room to take messages")


def settings(root: Path, **kubelet: Any) -> Settings:
    fields: dict[str, Any] = {
        "address": "127.0.0.1", "port": 0, "read_only_port": free_port(), "healthz_port": free_port(), **OPEN, **kubelet
    }
    return Settings(node_name="node", root_dir=str(root), cert_dir=str(root / "pki"),
                    kubelet=KubeletConfiguration(**fields))


@pytest.fixture(scope="session")
def pki(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a self-signed pair, made once."""
    from kubelet_mp.rooms.http.serving import make_pair

    directory = tmp_path_factory.mktemp("pki")
    make_pair(str(directory / "kubelet.crt"), str(directory / "kubelet.key"), "node", ["127.0.0.1"])
    return directory


@pytest.fixture
def fake_cri() -> Iterator[FakeCRI]:
    with FakeCRI(logs=True) as fake:
        yield fake


@pytest.fixture
def server(tmp_path: Path, pki: Path, fake_cri: FakeCRI) -> Iterator[Server]:
    with serve(tmp_path, pki, container_runtime_endpoint=fake_cri.endpoint) as runner:
        yield Server(runner, tmp_path)


def serve(root: Path, pki: Path, **kubelet: Any) -> RoomRunner:
    fields = {"tls_cert_file": str(pki / "kubelet.crt"), "tls_private_key_file": str(pki / "kubelet.key")} | kubelet
    return RoomRunner(HttpRoom, settings(root, **fields))


def status(name: str = "web", uid: str = "u1", phase: str = "Running", waiting_for: str = "",
           **fields: Any) -> PodStatus:
    """A PodStatus with one container c."""
    state = fields.pop("state", {"running": {"startedAt": "2024-01-02T03:04:05Z"}})
    container = {"name": "c", "state": state, "lastState": fields.pop("last", {}), "ready": phase == "Running",
                 "restartCount": fields.pop("restarts", 0), "containerID": fields.pop("id", "containerd://abc")}
    pod = {
        "metadata": {"name": name, "namespace": "default", "uid": uid},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": phase, "containerStatuses": [container], **fields},
    }
    return PodStatus(uid, pod, "file", waiting_for)


def _certificate(directory: Path, name: str, ca: tuple[Any, Any] | None) -> tuple[Any, Any]:
    """Make NAME.pem (certificate and key) signed by `ca`, or by itself as a CA."""
    from datetime import datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    start = datetime(2020, 1, 1, tzinfo=UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(subject).issuer_name(ca[0].subject if ca else subject)
        .public_key(key.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(start).not_valid_after(start + timedelta(days=36500))
        .add_extension(x509.BasicConstraints(ca=ca is None, path_length=None), critical=True)
        .sign(ca[1] if ca else key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (directory / f"{name}.pem").write_bytes(pem)
    return certificate, key


@pytest.fixture(scope="session")
def client_ca(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CA with the client certificate admin.pem beside it, and stranger.pem of another CA."""
    directory = tmp_path_factory.mktemp("clients")
    _certificate(directory, "admin", _certificate(directory, "ca", None))
    _certificate(directory, "stranger", _certificate(directory, "other-ca", None))
    return directory / "ca.pem"


@pytest.fixture
def make_client(client_ca: Path) -> Callable[[str], ssl.SSLContext]:
    """The TLS context of a client with the certificate of that name."""

    def make(name: str) -> ssl.SSLContext:
        context = unverified()
        context.load_cert_chain(str(client_ca.parent / f"{name}.pem"))
        return context

    return make
