"""TLS of the 10250 listener: the context, kept until one of its files changes.

Source: Kubernetes 1.37 cmd/kubelet/app/server.go (InitializeTLS), k8s.io/component-base/cli/flag.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable
from dataclasses import dataclass

from kubelet_mp import log
from kubelet_mp.config import KubeletConfiguration
from kubelet_mp.errors import StartError
from kubelet_mp.model import clock

_log = log.get("http")
_LOOK = 1.0  # s between two looks at the files
_VERSIONS = {
    "": ssl.TLSVersion.TLSv1_2,
    "VersionTLS10": ssl.TLSVersion.TLSv1,
    "VersionTLS11": ssl.TLSVersion.TLSv1_1,
    "VersionTLS12": ssl.TLSVersion.TLSv1_2,
    "VersionTLS13": ssl.TLSVersion.TLSv1_3,
}
_OPENSSL = {  # IANA name without TLS_ → OpenSSL's name
    "ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
    "ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
}
_ALWAYS = frozenset({"AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305_SHA256"})  # TLS 1.3

ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # OpenSSL sets itself up with the first one: do that before the fork


@dataclass(frozen=True)
class TlsFiles:
    """`client_ca`: "" when client certificates are not asked for.

    late: the certificate is signed by the cluster and may not be there yet.
    """

    cert: str
    key: str
    client_ca: str = ""
    late: bool = False

    def signature(self) -> tuple[tuple[int, int, int] | None, ...]:
        """Changes whenever one of the files does."""
        return tuple(_stat(path) for path in (self.cert, self.key, self.client_ca))


def _stat(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def min_version(name: str) -> ssl.TLSVersion:
    """tlsMinVersion ("" = TLS 1.2). Raises StartError for an unknown name."""
    try:
        return _VERSIONS[name]
    except KeyError:
        raise StartError(f"tlsMinVersion {name!r} is unknown", f"use one of {', '.join(filter(None, _VERSIONS))}") \
            from None


def openssl_ciphers(names: Iterable[str]) -> str:
    """OpenSSL's cipher string for tlsCipherSuites, "" for its default. Raises StartError for unknown names.

    The suites of TLS 1.3 cannot be chosen: they are always on, as in upstream.
    """
    suites = []
    for name in names:
        short = name.removeprefix("TLS_")
        if short in _OPENSSL:
            suites.append(_OPENSSL[short])
        elif short not in _ALWAYS:
            raise StartError(f"tlsCipherSuites: {name!r} is unknown or not supported", "remove it from the list")
    return ":".join(dict.fromkeys(suites))


def make_context(files: TlsFiles, kubelet: KubeletConfiguration) -> ssl.SSLContext:
    """A server context. Raises StartError that names the file at fault.

    With a client CA, certificates are asked for but not demanded; a wrong one ends the handshake.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = min_version(kubelet.tls_min_version)
    if ciphers := openssl_ciphers(kubelet.tls_cipher_suites):
        context.set_ciphers(ciphers)
    try:
        context.load_cert_chain(files.cert, files.key)
    except OSError as error:
        raise StartError(f'cannot use the serving certificate "{files.cert}" with the key "{files.key}": {error}',
                         "set tlsCertFile and tlsPrivateKeyFile to a PEM pair that belongs together") from error
    if files.client_ca:
        _ask_for_certificates(context, files.client_ca)
    return context


def _ask_for_certificates(context: ssl.SSLContext, client_ca: str) -> None:
    try:
        context.load_verify_locations(client_ca)
    except OSError as error:
        raise StartError(f'cannot read the client CA "{client_ca}": {error}',
                         "set authentication.x509.clientCAFile to a PEM file of certificates") from error
    context.verify_mode = ssl.CERT_OPTIONAL


class NoCertificate(Exception):
    """There is no serving certificate yet."""


class TlsContexts:
    """Gives the context for each new connection; makes a new one when its files have changed.

    Raises StartError unless the certificate may come late.
    """

    def __init__(self, files: TlsFiles, kubelet: KubeletConfiguration) -> None:
        self._files, self._kubelet = files, kubelet
        self._signature = files.signature()
        self._context: ssl.SSLContext | None = None
        if not files.late:
            self._context = make_context(files, kubelet)
        elif self._signature[0] is not None:
            self._try()
        else:
            _log.info("Waiting for the serving certificate: no TLS handshake succeeds before", cert=files.cert)
        self._looked = clock.monotonic()

    def current(self) -> ssl.SSLContext:
        """Raises NoCertificate."""
        now = clock.monotonic()
        if now - self._looked >= _LOOK:
            self._looked = now
            self._renew()
        if self._context is None:
            raise NoCertificate("no serving certificate available for the kubelet")
        return self._context

    def _renew(self) -> None:
        signature = self._files.signature()
        if signature == self._signature:
            return
        self._try()
        self._signature = signature

    def _try(self) -> None:
        """Take the files as they are now, if they can be used."""
        try:
            self._context = make_context(self._files, self._kubelet)
        except StartError as error:
            old = "keeping the old serving certificate" if self._context else "still without a serving certificate"
            _log.error(old, err=str(error))
        else:
            _log.info("Serving certificate or client CA renewed", cert=self._files.cert)
