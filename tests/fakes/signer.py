"""A certificate authority that signs CertificateSigningRequests of a fake API server."""

from __future__ import annotations

import base64
import threading
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubelet_mp.model.clock import wall_time
from tests.fakes.api import FakeApi

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


class Signer:
    """`sign` one request; as a context manager it signs all that come, as the controllers do.

    life: seconds that certificates are valid; age: seconds that they have been valid already.
    """

    def __init__(self, api: FakeApi, life: float = 3600.0, age: float = 300.0) -> None:
        self.api, self.life, self.age = api, life, age
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def pending(self) -> list[dict[str, Any]]:
        return [one for one in self.api.all(PATH) if not (one.get("status") or {}).get("conditions")]

    def sign(self, found: dict[str, Any], *, request: bytes = b"") -> bytes:
        """Approve it and give it its certificate, which is for the request in it or another (PEM)."""
        request = request or base64.b64decode(found["spec"]["request"])
        pem = self.certificate(x509.load_pem_x509_csr(request))
        self.decide(found, "Approved", certificate=base64.b64encode(pem).decode())
        return pem

    def decide(self, found: dict[str, Any], kind: str, **status: Any) -> None:
        """Approved, Denied or Failed."""
        condition = {"type": kind, "status": "True", "reason": "Tested", "message": "by a test"}
        name = found["metadata"]["name"]
        self.api.change(f"{PATH}/{name}", lambda one: one.update(status={"conditions": [condition], **status}))

    def certificate(self, request: x509.CertificateSigningRequest) -> bytes:
        now = datetime.fromtimestamp(wall_time(), UTC)
        builder = (
            x509.CertificateBuilder().subject_name(request.subject)
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")]))
            .public_key(request.public_key()).serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(seconds=self.age)).not_valid_after(now + timedelta(seconds=self.life))
        )
        for extension in request.extensions:
            builder = builder.add_extension(extension.value, extension.critical)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def authority(self) -> bytes:
        """The certificate by which all others are verified, as PEM."""
        now = datetime.fromtimestamp(wall_time(), UTC)
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ca")])
        builder = (
            x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(self._key.public_key())
            .serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        )
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            for one in self.pending():
                self.sign(one)

    def __enter__(self) -> Signer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(5)
