"""Which certificate 10250 serves: the configured pair, the one that the cluster signs, or a self-signed one.

The last two are in the certificate directory: kubelet-server-current.pem, which the reporter room writes, or
kubelet.crt and kubelet.key.
"""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from kubelet_mp import log
from kubelet_mp.config import Settings
from kubelet_mp.errors import HostError, StartError
from kubelet_mp.host.files import make_dirs, write_atomic
from kubelet_mp.model import clock
from kubelet_mp.rooms.http.tls import TlsFiles

_TIMEOUT = 60.0  # s; making a key takes a fraction of one on an idle machine
_KEY = "-----BEGIN RSA PRIVATE KEY-----"
_log = log.get("http")


def tls_files(settings: Settings, addresses: Callable[[], Sequence[str]]) -> TlsFiles:
    """The files to serve with; makes the self-signed pair if none is configured.

    Raises StartError for a configuration that cannot work, HostError if the pair cannot be made now.
    """
    kubelet = settings.kubelet
    client_ca = kubelet.authentication.x509.client_ca_file
    if kubelet.server_tls_bootstrap:
        signed = os.path.join(settings.cert_dir, "kubelet-server-current.pem")
        return TlsFiles(signed, signed, client_ca, late=True)
    cert, key = kubelet.tls_cert_file, kubelet.tls_private_key_file
    if bool(cert) != bool(key):
        raise StartError("only one of tlsCertFile and tlsPrivateKeyFile is set", "set both or neither")
    if not cert:
        cert, key = (os.path.join(settings.cert_dir, name) for name in ("kubelet.crt", "kubelet.key"))
        if problem := unusable(cert, key, settings.node_name, clock.wall_time()):
            _log.info("Making a self-signed serving certificate", cert=cert, reason=problem)
            make_pair(cert, key, settings.node_name, addresses())
    return TlsFiles(cert, key, client_ca)


def unusable(cert: str, key: str, node: str, now: float) -> str:
    """Why the pair cannot be used (again) for this node, "" if it can."""
    if not (os.path.exists(cert) and os.path.exists(key)):
        return "there is none"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key)
        context.load_verify_locations(cert)
    except OSError as error:
        return f"the old one cannot be used: {error}"
    found = context.get_ca_certs()
    if not found:
        return ""  # not one of ours: whoever put it there knows why
    if ssl.cert_time_to_seconds(str(found[0]["notAfter"])) <= now:
        return "the old one has expired"
    names: Any = found[0].get("subjectAltName", ())
    return "" if ("DNS", node) in names else "the old one is for another node name"


def make_pair(cert: str, key: str, node: str, addresses: Sequence[str]) -> None:
    """Write a new pair, the key first. Raises HostError."""
    program = os.path.join(os.path.dirname(__file__), "selfsigned.py")
    command = [sys.executable, "-P", program, node, str(int(clock.wall_time())), *addresses]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=True)
    except subprocess.SubprocessError as error:
        detail = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1:]
        raise HostError(f'cannot make the self-signed certificate "{cert}": {" ".join(detail)}',
                        "set tlsCertFile and tlsPrivateKeyFile") from error
    certificate, mark, private = done.stdout.partition(_KEY)
    make_dirs(os.path.dirname(cert))
    write_atomic(key, (mark + private).encode(), 0o600)
    write_atomic(cert, certificate.encode(), 0o644)
