"""TLS towards the API server: a context from certificates and keys that need not lie in files."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kubelet_mp.errors import ApiError


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM texts; empty where there is none. Without `ca` the system's own roots are trusted."""

    ca: bytes = field(default=b"", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)


def make_context(tls: TlsFiles, source: str, *, insecure: bool = False) -> ssl.SSLContext:
    """A client's context, TLS 1.2 or newer. `source` names where the texts are from. Raises ApiError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        _trust(context, tls.ca, source)
    if tls.certificate or tls.key:
        _identify(context, tls, source)
    return context


def _trust(context: ssl.SSLContext, ca: bytes, source: str) -> None:
    if not ca:
        context.load_default_certs()
        return
    try:
        with _as_file(ca) as path:
            context.load_verify_locations(path)
    except (ssl.SSLError, OSError) as error:
        raise ApiError(f"{source}: the certificate authority is not a PEM certificate", "correct it") from error


def _identify(context: ssl.SSLContext, tls: TlsFiles, source: str) -> None:
    try:
        with _as_file(tls.certificate) as certificate, _as_file(tls.key) as key:
            context.load_cert_chain(certificate, key, password=lambda: b"")  # never ask on a terminal
    except (ssl.SSLError, OSError) as error:
        raise ApiError(
            f"{source}: the client certificate and key cannot be used: {getattr(error, 'reason', '') or 'no PEM'}",
            "give a PEM certificate and its unencrypted PEM key",
        ) from error


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """A path to the data, for a library that reads only files; nothing reaches a disk."""
    fd = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        os.write(fd, data)
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)
