import base64
import json
from typing import Any

import pytest

from kubelet_mp.model.images import parse
from kubelet_mp.model.keyring import Entry, credentials, entries_of, matches


def secret(auths: dict[str, Any], *, old: bool = False, type_: str = "") -> dict[str, Any]:
    field = ".dockercfg" if old else ".dockerconfigjson"
    text = json.dumps(auths if old else {"auths": auths})
    return {"type": type_ or f"kubernetes.io{field.replace('.', '/')}",
            "data": {field: base64.b64encode(text.encode()).decode()}}


def pair(name: str, word: str = "w") -> dict[str, str]:
    return {"username": name, "password": word}


def names(entries: list[Entry], image: str) -> list[str]:
    return [auth["username"] for auth in credentials(entries, parse(image).name)]


def test_both_forms_of_secrets_and_both_forms_of_credentials():
    auth = base64.b64encode(b"joe:se:cret").decode()
    for old in (False, True):
        found = entries_of(secret({"r.example": {"auth": auth}, "s.example": pair("ann")}, old=old))
        assert [e.auth() for e in found] == [pair("joe", "se:cret"), pair("ann")]
    unpadded = entries_of(secret({"r.example": {"auth": auth.rstrip("=")}}))
    assert unpadded[0].username == "joe"
    assert entries_of(secret({"r.example": pair("x")}, type_="Opaque")) == []
    assert "w" not in repr(entries_of({"type": "Opaque"}))


@pytest.mark.parametrize(("found", "says"), [
    (secret({"r.example": {"auth": "bm9jb2xvbg=="}}), "auth of r.example must be formatted as"),
    (secret({"r.example": {"auth": "*"}}), "auth of r.example must be formatted as"),
    (secret({"r.example": "x"}), "not a map of registries"),
    ({"type": "kubernetes.io/dockercfg", "data": {".dockercfg": "eA=="}}, "not JSON in base64"),
    ({"type": "kubernetes.io/dockercfg", "data": {".dockercfg": "W10="}}, "not an object"),
])  # fmt: skip
def test_what_is_broken_is_said_without_its_content(found: dict[str, Any], says: str):
    with pytest.raises(ValueError, match=says) as caught:
        entries_of(found)
    assert "bm9jb2xvbg" not in str(caught.value)


@pytest.mark.parametrize(("key", "repository", "fits"), [
    ("r.example", "r.example/team/app", True),
    ("r.example/team", "r.example/team/app", True),
    ("r.example/other", "r.example/team/app", False),
    ("*.example", "r.example/app", True),
    ("*.example", "a.r.example/app", False),
    ("r?.example", "r1.example/app", True),
    ("r.example:5000", "r.example/app", False),
    ("*.example:5000", "r.example:5000/app", True),
    ("r.example", "r.example:5000/app", False),
])  # fmt: skip
def test_hosts_match_part_by_part_and_paths_by_their_start(key: str, repository: str, fits: bool):
    assert matches(key, repository) is fits


def test_longer_paths_come_first_and_those_of_one_key_as_given():
    entries = [
        *entries_of(secret({"https://r.example/v2/": pair("host"), "http://r.example/team/app": pair("app"),
                            "r.example/team": pair("team")})),
        *entries_of(secret({"r.example": pair("second"), "r.example/team": pair("team")})),
    ]
    assert names(entries, "r.example/team/app:1") == ["app", "team", "host", "second"]
    assert names(entries, "r.example/else") == ["host", "second"]
    assert names(entries, "q.example/team/app") == []


def test_the_hub_by_its_old_name():
    entries = entries_of(secret({"https://index.docker.io/v1/": pair("hub")}))
    assert names(entries, "busybox") == names(entries, "docker.io/team/app:2") == ["hub"]
    assert names(entries, "r.example/busybox") == []
