"""Who may ask: what is implemented, and that the rest is refused at start."""

from __future__ import annotations

import pytest

from kubelet_mp.config import KubeletConfiguration
from kubelet_mp.config.model import (
    AnonymousAuthentication,
    Authentication,
    Authorization,
    WebhookAuthentication,
    X509Authentication,
)
from kubelet_mp.errors import StartError
from kubelet_mp.rooms.http.auth import (
    ANONYMOUS,
    Attributes,
    Gate,
    User,
    attributes,
    certificate_user,
    forbidden_text,
)


def kubelet(anonymous: bool = True, webhook: bool = False, ca: str = "",
            mode: str = "AlwaysAllow") -> KubeletConfiguration:
    return KubeletConfiguration(
        authentication=Authentication(
            x509=X509Authentication(client_ca_file=ca),
            webhook=WebhookAuthentication(enabled=webhook),
            anonymous=AnonymousAuthentication(enabled=anonymous),
        ),
        authorization=Authorization(mode=mode),
    )


@pytest.mark.parametrize(
    ("configuration", "fix"),
    [
        (KubeletConfiguration(), "authentication.webhook.enabled: false"),
        (kubelet(webhook=True), "authentication.webhook.enabled: false"),
        (kubelet(mode="Webhook"), "authorization.mode: AlwaysAllow"),
    ],
)
def test_what_is_not_implemented_is_refused_with_the_fix(configuration: KubeletConfiguration, fix: str) -> None:
    with pytest.raises(StartError) as caught:
        Gate(configuration)
    assert fix in (caught.value.fix or "")


def test_anonymous_requests() -> None:
    assert Gate(kubelet()).user(None) == ANONYMOUS
    assert Gate(kubelet(anonymous=False, ca="/ca")).user(None) is None
    assert Gate(kubelet(anonymous=False)).user(None) is None  # everybody is answered 401, as upstream


def test_the_user_of_a_certificate() -> None:
    subject = ((("organizationName", "system:masters"),), (("organizationName", "ops"),), (("commonName", "admin"),))
    assert certificate_user({"subject": subject}) == User("admin", ("system:masters", "ops"))
    assert certificate_user({"subject": ((("organizationName", "x"),),)}) is None
    assert certificate_user(None) is None


@pytest.mark.parametrize(
    ("method", "path", "verb", "subresources"),
    [
        ("GET", "/pods", "get", ("pods", "proxy")),
        ("GET", "/runningpods/", "get", ("pods", "proxy")),
        ("POST", "/exec/ns/p/c", "create", ("proxy",)),
        ("GET", "/containerLogs/ns/p/c", "get", ("proxy",)),
        ("GET", "/healthz/ping", "get", ("healthz", "proxy")),
        ("PUT", "/debug/flags/v", "update", ("proxy",)),
        ("GET", "/metrics/resource", "get", ("metrics",)),
        ("POST", "/stats/summary", "create", ("stats",)),
        ("DELETE", "/logs/", "delete", ("log",)),
        ("PATCH", "/configz", "patch", ("configz", "proxy")),
    ],
)
def test_attributes(method: str, path: str, verb: str, subresources: tuple[str, ...]) -> None:
    assert attributes(method, path) == Attributes(verb, subresources)


def test_the_text_of_a_refusal() -> None:
    text = forbidden_text(User("bob"), attributes("GET", "/pods"))
    assert text == "Forbidden (user=bob, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"
