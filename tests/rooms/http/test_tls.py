"""The serving certificate: made, kept, renewed; ciphers and versions by their configured names."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest

from kubelet_mp.config import KubeletConfiguration, Settings
from kubelet_mp.errors import StartError
from kubelet_mp.model.clock import wall_time
from kubelet_mp.rooms.http.serving import tls_files, unusable
from kubelet_mp.rooms.http.tls import NoCertificate, TlsContexts, TlsFiles, make_context, min_version, openssl_ciphers
from tests.support import wait_until

YEAR = 365 * 86400


def settings(root: Path, node: str = "node", **kubelet: object) -> Settings:
    return Settings(node_name=node, cert_dir=str(root), kubelet=KubeletConfiguration(**kubelet))  # type: ignore[arg-type]


def none_needed() -> list[str]:
    raise AssertionError("no certificate had to be made")


def test_a_pair_is_made_once_with_its_modes_and_names(tmp_path: Path) -> None:
    files = tls_files(settings(tmp_path / "pki"), lambda: ["127.0.0.1", "192.0.2.7", "2001:db8::1"])
    assert os.stat(files.cert).st_mode & 0o777 == 0o644
    assert os.stat(files.key).st_mode & 0o777 == 0o600
    context = ssl.create_default_context(cafile=files.cert)
    found = context.get_ca_certs()[0]
    names = found["subjectAltName"]
    assert ("DNS", "node") in names and ("IP Address", "192.0.2.7") in names
    assert str(found["subject"]).count("node@") == 1
    before = os.stat(files.cert).st_mtime_ns
    assert tls_files(settings(tmp_path / "pki"), none_needed) == files
    assert os.stat(files.cert).st_mtime_ns == before


def test_a_pair_is_not_used_for_another_node_nor_after_its_time(pki: Path) -> None:
    cert, key = str(pki / "kubelet.crt"), str(pki / "kubelet.key")
    assert unusable(cert, key, "node", wall_time()) == ""
    assert "another node" in unusable(cert, key, "other", wall_time())
    assert "expired" in unusable(cert, key, "node", wall_time() + YEAR)


def test_a_broken_or_mixed_pair_is_not_used(pki: Path, tmp_path: Path) -> None:
    broken = tmp_path / "kubelet.key"
    broken.write_text("not a key")
    assert "cannot be used" in unusable(str(pki / "kubelet.crt"), str(broken), "node", wall_time())


def test_a_configuration_that_cannot_work_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="only one of tlsCertFile"):
        tls_files(settings(tmp_path, tls_cert_file="/x.crt"), none_needed)


def test_the_certificate_that_the_cluster_signs_may_come_late(pki: Path, tmp_path: Path) -> None:
    files = tls_files(settings(tmp_path, server_tls_bootstrap=True), none_needed)
    assert files.cert == files.key == str(tmp_path / "kubelet-server-current.pem")
    contexts = TlsContexts(files, KubeletConfiguration())
    with pytest.raises(NoCertificate, match="no serving certificate available for the kubelet"):
        contexts.current()
    signed = tmp_path / "kubelet-server-1.pem"
    signed.write_bytes((pki / "kubelet.crt").read_bytes() + (pki / "kubelet.key").read_bytes())
    Path(files.cert).symlink_to(signed.name)

    def there() -> ssl.SSLContext | None:
        try:
            return contexts.current()
        except NoCertificate:
            return None

    wait_until(there, 4, "the certificate to be taken")


def test_a_missing_certificate_is_named() -> None:
    with pytest.raises(StartError, match=r"/nope\.crt"):
        make_context(TlsFiles("/nope.crt", "/nope.key"), KubeletConfiguration())


def test_ciphers_and_versions_have_the_names_of_the_configuration() -> None:
    assert openssl_ciphers(["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"]) == \
        "ECDHE-RSA-AES256-GCM-SHA384"
    assert min_version("") == ssl.TLSVersion.TLSv1_2
    assert min_version("VersionTLS13") == ssl.TLSVersion.TLSv1_3
    for wrong in (lambda: openssl_ciphers(["TLS_NOPE"]), lambda: min_version("TLS9")):
        with pytest.raises(StartError):
            wrong()


def test_every_known_cipher_is_openssls(pki: Path) -> None:
    from kubelet_mp.rooms.http.tls import _OPENSSL

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers(":".join(_OPENSSL.values()) + ":@SECLEVEL=0")
    assert {cipher["name"] for cipher in context.get_ciphers()} >= set(_OPENSSL.values())


def test_the_context_is_kept_until_the_files_change(pki: Path, tmp_path: Path) -> None:
    cert, key = tmp_path / "c", tmp_path / "k"
    cert.write_bytes((pki / "kubelet.crt").read_bytes())
    key.write_bytes((pki / "kubelet.key").read_bytes())
    contexts = TlsContexts(TlsFiles(str(cert), str(key)), KubeletConfiguration())
    first = contexts.current()
    assert contexts.current() is first
    cert.write_text("half")
    half = TlsFiles(str(cert), str(key)).signature()
    wait_until(lambda: contexts.current() is not first or contexts._signature == half, 4, "a look at the files")
    assert contexts.current() is first
    cert.write_bytes((pki / "kubelet.crt").read_bytes())
    wait_until(lambda: contexts.current() is not first, 4, "a new context")
