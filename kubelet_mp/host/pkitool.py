"""Keys, certificate requests and what certificates say. A program of its own: its library would take 10 MB of a room.

    python pkitool.py request    stdin {"key": PEM or "", "name": CN, "organizations": [...], "names": [DNS or IP]}
    python pkitool.py podkey     stdin {"kind": keyType of a PodCertificateRequest}
    python pkitool.py inspect    stdin {"pem": text}

each print one JSON object, or end with UNREADABLE and say on stderr what is wrong with what was given. Only
`pki.py` runs it.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

UNREADABLE = 3
_PRIVATE = re.compile(rb"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----.+?-----END (?:[A-Z]+ )?PRIVATE KEY-----", re.DOTALL)


_KINDS: Mapping[str, Callable[[], Any]] = {
    "RSA3072": lambda: rsa.generate_private_key(65537, 3072),
    "RSA4096": lambda: rsa.generate_private_key(65537, 4096),
    "ECDSAP256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ECDSAP384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "ECDSAP521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "ED25519": ed25519.Ed25519PrivateKey.generate,
}


def request(key: str, name: str, organizations: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """A request signed by `key` (a new one on P-256 if ""). Raises ValueError for a key that is none."""
    private = _read_key(key.encode()) if key else ec.generate_private_key(ec.SECP256R1())
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organizations]
    subject.append(x509.NameAttribute(NameOID.COMMON_NAME, name, _validate=False))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName([_general(one) for one in names]), critical=False)
    signed = builder.sign(private, hashes.SHA256())
    return {
        "key": key or _written(private), "request": signed.public_bytes(serialization.Encoding.PEM).decode(),
        "public": base64.b64encode(_public(private.public_key())).decode(),
    }


def pod_key(kind: str) -> dict[str, str]:
    """A key in PKCS#8 and a request without a subject. Raises ValueError for an unknown kind."""
    if kind not in _KINDS:
        raise ValueError(f"unknown key type {kind!r}")
    private = _KINDS[kind]()
    digest = None if kind == "ED25519" else hashes.SHA256()
    signed = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([])).sign(private, digest)
    key = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()
    return {"key": key, "request": base64.b64encode(signed.public_bytes(serialization.Encoding.DER)).decode()}


def inspect(pem: str) -> dict[str, Any]:
    """What the first certificate of a PEM text says; times in seconds since the epoch. Raises ValueError.

    public: its key as base64 of the DER form; matches: whether the private key in the text, if any, is its own.
    """
    certificate = x509.load_pem_x509_certificate(pem.encode())
    key = _PRIVATE.search(pem.encode())
    public = _public(certificate.public_key())
    return {
        "name": _last(certificate.subject, NameOID.COMMON_NAME),
        "organizations": [str(one.value) for one in
                          certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)],
        "names": _names(certificate),
        "not_before": certificate.not_valid_before_utc.timestamp(),
        "not_after": certificate.not_valid_after_utc.timestamp(),
        "public": base64.b64encode(public).decode(),
        "matches": key is not None and _public(_read_key(key.group()).public_key()) == public,
    }


def _read_key(pem: bytes) -> Any:
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except (TypeError, UnsupportedAlgorithm) as error:  # TypeError: it is encrypted
        raise ValueError(f"the private key cannot be used: {error}") from error


def _written(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    ).decode()


def _public(key: Any) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _last(name: x509.Name, kind: x509.ObjectIdentifier) -> str:
    found = name.get_attributes_for_oid(kind)
    return str(found[-1].value) if found else ""


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))]


def main(command: str, given: dict[str, Any]) -> dict[str, Any]:
    programs: Mapping[str, Callable[..., dict[str, Any]]] = {
        "request": request, "podkey": pod_key, "inspect": inspect}
    return programs[command](**given)


if __name__ == "__main__":
    try:
        json.dump(main(sys.argv[1], json.load(sys.stdin)), sys.stdout)
    except ValueError as problem:
        print(problem, file=sys.stderr)
        sys.exit(UNREADABLE)
