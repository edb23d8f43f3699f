"""Makes the self-signed serving certificate. A program of its own, so that the room need not hold its library.

    python selfsigned.py NODE NOW [IP ...]     NOW: seconds since the epoch

prints the certificate and then the private key as PEM. Only `serving.py` runs it.
"""

from __future__ import annotations

import ipaddress
import sys
from datetime import UTC, datetime, timedelta


def make(node: str, now: int, addresses: list[str]) -> tuple[bytes, bytes]:
    """(certificate, private key) as PEM: RSA 2048, valid for a year from an hour ago, subject NODE@NOW."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{node}@{now}"[:64])])
    start = datetime.fromtimestamp(now, UTC) - timedelta(hours=1)
    names: list[x509.GeneralName] = [x509.DNSName(node)]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=365))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


if __name__ == "__main__":
    pem = make(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
    sys.stdout.write("".join(part.decode() for part in pem))
