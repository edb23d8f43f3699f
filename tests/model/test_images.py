from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.model.images import InvalidImageName, Reference, default_pull_policy, parse, with_default_tag

DIGEST = "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    ("image", "expected", "tagged", "policy"),
    [
        ("busybox", Reference("docker.io/library/busybox"), "busybox:latest", "Always"),
        ("busybox:latest", Reference("docker.io/library/busybox", "latest"), "busybox:latest", "Always"),
        ("busybox:1.36", Reference("docker.io/library/busybox", "1.36"), "busybox:1.36", "IfNotPresent"),
        ("me/app", Reference("docker.io/me/app"), "me/app:latest", "Always"),
        ("localhost/app", Reference("localhost/app"), "localhost/app:latest", "Always"),
        ("reg:5000/a/b:v1", Reference("reg:5000/a/b", "v1"), "reg:5000/a/b:v1", "IfNotPresent"),
        ("index.docker.io/x:1", Reference("docker.io/library/x", "1"), "index.docker.io/x:1", "IfNotPresent"),
        (f"a.b/c@{DIGEST}", Reference("a.b/c", "", DIGEST), f"a.b/c@{DIGEST}", "IfNotPresent"),
        (f"a.b/c:v1@{DIGEST}", Reference("a.b/c", "v1", DIGEST), f"a.b/c:v1@{DIGEST}", "IfNotPresent"),
        ("[fd00::1]:5000/x:1", Reference("[fd00::1]:5000/x", "1"), "[fd00::1]:5000/x:1", "IfNotPresent"),
        ("Reg/app:v1", Reference("Reg/app", "v1"), "Reg/app:v1", "IfNotPresent"),
        ("a__b/c---d:T_.-", Reference("docker.io/a__b/c---d", "T_.-"), "a__b/c---d:T_.-", "IfNotPresent"),
    ],
)
def test_good_names(image, expected, tagged, policy):
    assert parse(image) == expected
    assert with_default_tag(image) == tagged
    assert default_pull_policy(image) == policy


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (
            "docker.io/library/BusyBox:latest",
            "invalid reference format: repository name (library/BusyBox) must be lowercase",
        ),
        ("FOO", "invalid reference format: repository name (library/FOO) must be lowercase"),
        ("", "invalid reference format"),
        ("a:", "invalid reference format"),
        ("a b", "invalid reference format"),
        ("a//b", "invalid reference format"),
        ("-a", "invalid reference format"),
        ("a:" + "t" * 129, "invalid reference format"),
        ("a@sha256:abc", "invalid reference format"),
        ("a@sha256:" + "a" * 63, "invalid checksum digest length"),
        ("a@md5:" + "a" * 32, "unsupported digest algorithm"),
        ("a@sha256:" + "A" * 64, "invalid checksum digest format"),
        ("ab" * 32, f"invalid repository name ({'ab' * 32}), cannot specify 64-byte hexadecimal strings"),
        ("a.b/" + "x" * 256, "repository name must not be more than 255 characters"),
    ],
)
def test_bad_names(image, reason):
    with pytest.raises(InvalidImageName) as caught:
        with_default_tag(image)
    assert str(caught.value) == (
        f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": {reason}'
    )
    assert default_pull_policy(image) == "IfNotPresent"


@given(st.text(max_size=60) | st.text(alphabet="aA0:/@.-_", max_size=60))
def test_any_text_is_either_a_name_or_refused(image):
    try:
        tagged = with_default_tag(image)
    except InvalidImageName:
        return
    assert tagged.startswith(image)
    assert with_default_tag(tagged) == tagged
