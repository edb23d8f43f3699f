"""Requests, what certificates say, and the files of a certificate directory."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from cryptography import x509

from kubelet_mp.host import pki, pkitool
from tests.fakes.api import FakeApi
from tests.fakes.signer import Signer

NAMES = ("node", "192.0.2.7", "2001:db8::1")


@pytest.fixture
def signer() -> Signer:
    return Signer(FakeApi(), life=100, age=50)


def test_a_request_and_its_certificate(signer: Signer) -> None:
    made = pki.make_request("system:node:n", ("system:nodes",), NAMES)
    csr = x509.load_pem_x509_csr(made.request.encode())
    assert csr.is_signature_valid
    assert csr.subject.rfc4514_string() == "CN=system:node:n,O=system:nodes"
    assert "KEY" not in repr(made)
    found = pki.inspect(signer.certificate(csr) + made.key.encode(), "x")
    assert (found.name, found.organizations, set(found.names)) == ("system:node:n", ("system:nodes",), set(NAMES))
    assert found.public == made.public
    assert found.matches
    assert found.not_after - found.not_before == pytest.approx(150, abs=1)


def test_the_same_key_is_used_again() -> None:
    made = pki.make_request("n", ())
    again = pki.make_request("n", (), key=made.key)
    assert (again.key, again.public) == (made.key, made.public)
    assert "SubjectAlternativeName" not in made.request


def test_a_key_of_another_is_noticed(signer: Signer) -> None:
    one, other = pkitool.request("", "n", [], []), pkitool.request("", "n", [], [])
    pem = signer.certificate(x509.load_pem_x509_csr(one["request"].encode())).decode()
    assert pkitool.inspect(pem + one["key"])["matches"]
    assert not pkitool.inspect(pem + other["key"])["matches"]
    assert not pkitool.inspect(pem)["matches"]


def test_what_is_no_pem_is_told_apart_from_a_failure() -> None:
    with pytest.raises(pki.PemError, match="cannot read the certificate in the file x"):
        pki.inspect(b"nothing", "the file x")
    with pytest.raises(pki.PemError, match="cannot make a certificate request"):
        pki.make_request("n", (), key="no key")


def test_the_current_certificate_is_a_link_to_the_newest(tmp_path: Path) -> None:
    store = pki.PemStore(str(tmp_path / "pki"), "kubelet-client")
    assert store.read() == b""
    first = store.save(b"C1\n", "K1", 1_700_000_000.9)
    assert os.path.basename(first) == "kubelet-client-2023-11-14-22-13-20.pem"
    assert stat.S_IMODE(os.stat(first).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(tmp_path / "pki").st_mode) == 0o755
    second = store.save(b"C2", "K2", 1_700_000_000)
    assert os.path.realpath(store.current) == os.path.realpath(second)
    assert store.read() == b"C2\nK2"
    assert sorted(os.listdir(tmp_path / "pki")) == sorted(
        map(os.path.basename, (first, second, store.current)))
