"""Keys and certificates of a cluster that lives for one run of the tests, and the kubeconfig files with them."""

from __future__ import annotations

import datetime
import ipaddress
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAY = 24.0
_PEM = serialization.Encoding.PEM


class Authority:
    """A certificate authority in a folder: `ca.crt`, `ca.key`, and NAME.crt, NAME.key of what it issued."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject("kubelet-mp-test-ca", ())
        certificate = _builder(self._name, self._name, self._key.public_key(), hours=_DAY)
        certificate = certificate.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self._write("ca", certificate.sign(self._key, hashes.SHA256()), self._key)

    @property
    def certificate(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def key(self) -> Path:
        return self.folder / "ca.key"

    def issue(
        self,
        name: str,
        user: str,
        groups: Sequence[str] = (),
        *,
        hosts: Sequence[str] = (),
        hours: float = _DAY,
    ) -> tuple[Path, Path]:
        """Issue a certificate for client and server; return its file and the key's.

        `user` and `groups` are who its bearer is to the API server, `hosts` addresses and DNS names of a server.
        A negative `hours` gives a certificate that has expired already.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH])
        certificate = _builder(_subject(user, groups), self._name, key.public_key(), hours=hours)
        certificate = certificate.add_extension(usage, critical=False)
        names = x509.SubjectAlternativeName([_host(host) for host in hosts or (name,)])
        certificate = certificate.add_extension(names, critical=False)
        self._write(name, certificate.sign(self._key, hashes.SHA256()), key)
        return self.folder / f"{name}.crt", self.folder / f"{name}.key"

    def _write(self, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        (self.folder / f"{name}.crt").write_bytes(certificate.public_bytes(_PEM))
        (self.folder / f"{name}.key").write_bytes(_private(key))


def signing_pair(folder: Path, name: str) -> tuple[Path, Path]:
    """Make a key for tokens of service accounts; return the files of the private and of the public key."""
    key = ec.generate_private_key(ec.SECP256R1())
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    private.write_bytes(_private(key))
    public.write_bytes(key.public_key().public_bytes(_PEM, serialization.PublicFormat.SubjectPublicKeyInfo))
    return private, public


def kubeconfig(target: Path, server: str, authority: Path, user: Mapping[str, Any]) -> Path:
    """Write a kubeconfig file; `user` as in {"token": …} or {"client-certificate": …, "client-key": …}."""
    cluster = {"server": server, "certificate-authority": str(authority)}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "user", "user": {name: str(value) for name, value in user.items()}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user"}}],
        "current-context": "test",
    }
    target.write_text(json.dumps(content, indent=1))
    target.chmod(0o600)
    return target


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(_PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())


def _subject(user: str, groups: Sequence[str]) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, hours: float
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    span = datetime.timedelta(hours=hours)
    builder = x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(min(now, now + span) - datetime.timedelta(hours=1))
    return builder.not_valid_after(now + span)


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def signing_request(user: str, groups: Sequence[str]) -> bytes:
    """A certificate signing request with a key that nobody keeps, as PEM."""
    builder = x509.CertificateSigningRequestBuilder(_subject(user, groups))
    return builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(_PEM)


def minutes(pem: bytes) -> float:
    """How long a certificate is valid, from its first to its last moment."""
    certificate = x509.load_pem_x509_certificate(pem)
    return (certificate.not_valid_after_utc - certificate.not_valid_before_utc).total_seconds() / 60


def names(pem: bytes) -> set[str]:
    """The addresses and DNS names of the first certificate in a file."""
    found = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))}
