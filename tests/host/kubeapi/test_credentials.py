"""kubeconfig files, and what becomes of them while they change."""

import base64
import os

import pytest

from kubelet_mp import log
from kubelet_mp.errors import ApiError
from kubelet_mp.host.kubeapi import Kubeconfig
from tests.fakes.api import FakeApi
from tests.host.kubeapi.certs import Authority


@pytest.fixture(scope="module")
def authority():
    return Authority()


@pytest.fixture
def api(authority, tmp_path):
    """An https server that wants to see a certificate; it is called `api` and 127.0.0.1."""
    with FakeApi(authority.server_context(tmp_path, "api", "127.0.0.1")) as api:
        yield api


def replace(path, data):
    """As a rotation does it: the old or the new content, nothing between."""
    fresh = path.with_name(f".{path.name}")
    fresh.write_bytes(data)
    os.replace(fresh, path)


def b64(data):
    return base64.b64encode(data).decode()


def test_certificates_in_files_beside_it(api, authority, tmp_path):
    certificate, key = authority.issue("system:node:n")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    (tmp_path / "client.pem").write_bytes(certificate + key)  # both in one file, as the kubelet keeps them
    path = api.kubeconfig(tmp_path / "k", {"client-certificate": "client.pem", "client-key": "client.pem"},
                          {"certificate-authority": "ca.crt"})
    assert api.kube_of(path).get("/version")["minor"] == "37"


def test_certificates_as_data(api, authority, tmp_path):
    certificate, key = authority.issue("system:node:n")
    user = {"client-certificate-data": b64(certificate), "client-key-data": b64(key), "client-key": "/nowhere"}
    path = api.kubeconfig(tmp_path / "k", user, {"certificate-authority-data": b64(authority.pem)})
    before = set(os.listdir(tmp_path))
    assert api.kube_of(path).get("/version")["minor"] == "37"
    assert set(os.listdir(tmp_path)) == before
    login = Kubeconfig(path).current()
    assert "BEGIN" not in repr(login) and login.server == api.url


def test_a_server_of_another_authority_is_not_trusted(api, authority, tmp_path):
    certificate, key = authority.issue("system:node:n")
    user = {"client-certificate-data": b64(certificate), "client-key-data": b64(key)}
    path = api.kubeconfig(tmp_path / "k", user, {"certificate-authority-data": b64(Authority().pem)})
    with pytest.raises(ApiError, match=r"TLS with https://127.*certificate verify failed.*fix: check the certificate"):
        api.kube_of(path).get("/version")
    with pytest.raises(ApiError, match="certificate verify failed"):  # nor by the system's roots
        api.kube_of(api.kubeconfig(tmp_path / "k2", user)).get("/version")
    path = api.kubeconfig(tmp_path / "k3", user, {"insecure-skip-tls-verify": True})
    assert api.kube_of(path).get("/version")


def test_the_name_to_expect(api, authority, tmp_path):
    certificate, key = authority.issue("system:node:n")
    user = {"client-certificate-data": b64(certificate), "client-key-data": b64(key)}
    for name, well in (("api", True), ("other", False)):
        cluster = {"certificate-authority-data": b64(authority.pem), "tls-server-name": name}
        kube = api.kube_of(api.kubeconfig(tmp_path / name, user, cluster))
        if well:
            assert kube.get("/version")
        else:
            with pytest.raises(ApiError, match="other"):
                kube.get("/version")


def test_a_rotated_certificate_is_taken_up_and_half_a_rotation_is_not(authority, tmp_path, api, capsys):
    log.setup()
    (first, key), (second, other_key) = authority.issue("a"), authority.issue("b")
    certificate, keys = tmp_path / "c", tmp_path / "k"
    certificate.write_bytes(first)
    keys.write_bytes(key)
    path = api.kubeconfig(tmp_path / "kc", {"client-certificate": str(certificate), "client-key": str(keys)},
                          {"certificate-authority-data": b64(authority.pem)})
    credentials = Kubeconfig(path)
    old = credentials.current()
    assert credentials.current() is old
    replace(certificate, second)
    assert credentials.current() is old and credentials.current() is old
    assert capsys.readouterr().err.count("the old ones are kept") == 1
    replace(keys, other_key)
    assert credentials.current() is not old


def test_a_token_file_is_read_again(tmp_path):
    with FakeApi() as api:
        token = tmp_path / "token"
        token.write_text("one\n")
        kube = api.kube_of(api.kubeconfig(tmp_path / "k", {"tokenFile": "token", "token": "fallback"}))
        kube.get("/version")
        replace(token, b"two\n")
        kube.get("/version")
        replace(token, b"")
        kube.get("/version")
        assert [request.headers["Authorization"] for request in api.asked()] == [
            "Bearer one", "Bearer two", "Bearer fallback"]


def test_another_server_in_the_same_file(tmp_path):
    with FakeApi() as one, FakeApi() as other:
        kube = one.kube_of(one.kubeconfig(tmp_path / "k", {"username": "u", "password": "p"}))
        kube.get("/version")
        replace(tmp_path / "k", other_file(other, tmp_path))
        kube.get("/version")
        assert (len(one.asked()), len(other.asked())) == (1, 1)
        assert one.asked()[0].headers["Authorization"] == "Basic " + b64(b"u:p")


def other_file(api, tmp_path):
    path = api.kubeconfig(tmp_path / "other")
    with open(path, "rb") as file:
        return file.read()


@pytest.mark.parametrize(("user", "cluster", "said"), [
    ({"exec": {"command": "x"}}, {}, "an exec plugin"),
    ({"auth-provider": {"name": "x"}}, {}, "an auth provider"),
    ({"tokenFile": "nowhere"}, {}, 'cannot read ".*nowhere"'),
    ({"client-certificate": "nowhere"}, {}, 'cannot read ".*nowhere"'),
    ({"client-certificate-data": "AAAA"}, {}, "give a PEM certificate and its unencrypted PEM key"),
    ({}, {"certificate-authority-data": "AAAA"}, "is not a PEM certificate"),
    ({}, {"certificate-authority-data": "A"}, "certificate-authority-data is not base64"),
    ({}, {"server": "ftp://x"}, "must be an http or https URL"),
    ({}, {"server": "https://u:secret@192.0.2.1"}, "must be an http or https URL without a user"),
])
def test_what_cannot_be_used(tmp_path, user, cluster, said):
    path = FakeApi().kubeconfig(tmp_path / "k", user, {"server": "https://192.0.2.1:6443", **cluster})
    with pytest.raises(ApiError, match="no credentials for the API server: .*" + said):
        Kubeconfig(path).current()


@pytest.mark.parametrize(("cluster", "server"), [
    ({"server": "192.0.2.1:8080"}, "http://192.0.2.1:8080"),
    ({"server": "192.0.2.1:6443", "insecure-skip-tls-verify": True}, "https://192.0.2.1:6443"),
    ({"server": "https://192.0.2.1:6443/prefix/"}, "https://192.0.2.1:6443/prefix"),
])
def test_how_the_server_is_written(tmp_path, cluster, server):
    assert Kubeconfig(FakeApi().kubeconfig(tmp_path / "k", {}, cluster)).current().server == server
