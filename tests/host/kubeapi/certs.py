"""A certificate authority for tests, in memory."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kubelet_mp.model.clock import SYSTEM

_DAY = datetime.timedelta(days=1)


def _now() -> datetime.datetime:
    return datetime.datetime.fromtimestamp(SYSTEM.wall_time(), datetime.UTC)


class Authority:
    """`pem`: its certificate."""

    def __init__(self, name: str = "ca") -> None:
        self._name, self._key = _subject(name), ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._signed(self._name, self._key, x509.BasicConstraints(True, None))
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, *alternatives: str) -> tuple[bytes, bytes]:
        """Certificate and key; alternatives: DNS names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [_alternative(text) for text in alternatives]
        extension = x509.SubjectAlternativeName(names) if names else x509.BasicConstraints(False, None)
        certificate = self._signed(_subject(name), key, extension)
        return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())

    def server_context(self, place: Path, *alternatives: str) -> ssl.SSLContext:
        """For a server that demands a certificate of this authority from its clients."""
        certificate, key = self.issue("server", *alternatives)
        (place / "server.pem").write_bytes(certificate + key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(place / "server.pem")
        context.load_verify_locations(cadata=self.pem.decode())
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType
    ) -> x509.Certificate:
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).add_extension(extension, critical=False)
        builder = builder.not_valid_before(_now() - _DAY).not_valid_after(_now() + _DAY)
        return builder.sign(self._key, hashes.SHA256())


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)
