"""`kubelet-mp check` and the API server: reached, not reached, with a certificate or a token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509

from kubelet_mp.cli import apiserver
from kubelet_mp.cli.checks import ApiFacts, Facts, api_server, client_certificate
from kubelet_mp.config import Settings
from kubelet_mp.host import pki
from kubelet_mp.model.clock import wall_time
from tests.cli.test_checks import HOST, RUNTIME
from tests.fakes.api import FakeApi
from tests.fakes.signer import Signer


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as fake:
        yield fake


def settings(path: Path | str, bootstrap: str = "") -> Settings:
    return Settings(node_name="n", kubeconfig=str(path), bootstrap_kubeconfig=bootstrap)


def lines(facts: ApiFacts | None, node: str = "n") -> list[str]:
    given = Facts(HOST, RUNTIME, facts)
    chosen = replace(settings("/k"), node_name=node)
    return [f"{one.level} {one.text}" for check in (api_server, client_certificate) for one in check(chosen, given)]


def certified(api: FakeApi, directory: Path, life: float = 1000.0) -> str:
    request = pki.make_request("system:node:n", ())
    pem = Signer(api, life=life).certificate(x509.load_pem_x509_csr(request.request.encode())) + request.key.encode()
    (directory / "c.pem").write_bytes(pem)
    return api.kubeconfig(directory / "k", {"client-certificate": "c.pem", "client-key": "c.pem"})


def test_standalone_there_is_nothing_to_say() -> None:
    assert apiserver.ask(Settings(node_name="n"), 0.0) is None
    assert lines(None) == []


def test_a_server_that_answers(api: FakeApi, tmp_path: Path) -> None:
    found = apiserver.ask(settings(certified(api, tmp_path)), wall_time())
    assert lines(found)[0] == f"ok v1.37.2 at {api.url}"
    assert lines(found)[1].startswith("ok system:node:n, until 2")
    assert "and this is node other" in lines(found, "other")[2]


def test_a_server_that_is_away(api: FakeApi, tmp_path: Path) -> None:
    path = api.kubeconfig(tmp_path / "k", {"token": "hush"})
    api.down()
    [line] = lines(apiserver.ask(settings(path), wall_time(), 1.0))
    assert line.startswith("FAIL") and "/version" in line and "hush" not in line
    api.up()


def test_an_expired_certificate(api: FakeApi, tmp_path: Path) -> None:
    path = certified(api, tmp_path, life=-1)
    assert lines(apiserver.ask(settings(path), wall_time())) == [f"FAIL {path}: the client certificate has expired"]
    bootstrap = api.kubeconfig(tmp_path / "b", {"token": "x"})
    assert lines(apiserver.ask(settings(path, bootstrap), wall_time())) == [
        f"ok v1.37.2 at {api.url}", "warn will be asked for: the client certificate has expired"]


def test_no_kubeconfig(api: FakeApi, tmp_path: Path) -> None:
    [line] = lines(apiserver.ask(settings(tmp_path / "none"), wall_time()))
    assert "cannot read kubeconfig" in line
    bootstrap = api.kubeconfig(tmp_path / "b", {"token": "x"})
    found = apiserver.ask(settings(tmp_path / "none", bootstrap), wall_time())
    assert lines(found)[1].startswith("warn will be asked for: cannot read")
