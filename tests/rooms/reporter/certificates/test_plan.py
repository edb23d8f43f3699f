"""What is asked for, when, and what an answer means."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.rooms.reporter.certificates import plan


def csr(*kinds: str, certificate: bytes = b"", status: str = "True") -> dict[str, Any]:
    found: dict[str, Any] = {"conditions": [{"type": kind, "status": status, "reason": "R", "message": "m"}
                                            for kind in kinds]}
    if certificate:
        found["certificate"] = base64.b64encode(certificate).decode()
    return {"status": found}


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ({}, plan.Verdict()),
        (csr(), plan.Verdict()),
        (csr("Approved"), plan.Verdict()),
        (csr(certificate=b"PEM"), plan.Verdict()),
        (csr("Approved", certificate=b"PEM"), plan.Verdict(certificate=b"PEM")),
        (csr("Denied"), plan.Verdict(refused="denied (R: m)", denied=True)),
        (csr("Approved", "Failed"), plan.Verdict(refused="failed (R: m)")),
        (csr("Denied", status="False"), plan.Verdict()),
    ],
)
def test_verdict(found: dict[str, Any], verdict: plan.Verdict) -> None:
    assert plan.verdict(found) == verdict


def test_the_request_object() -> None:
    made = plan.request_object("PEM", plan.CLIENT_SIGNER, plan.CLIENT_USAGES, "node-csr-x")
    assert made["metadata"] == {"name": "node-csr-x"}
    assert made["spec"] == {
        "request": base64.b64encode(b"PEM").decode(), "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
        "usages": ["digital signature", "client auth"],
    }
    assert plan.request_object("", plan.SERVING_SIGNER, ())["metadata"] == {"generateName": "csr-"}


def test_the_name_of_the_first_request_follows_from_its_content() -> None:
    name = plan.request_name(b"key", "n")
    assert name == plan.request_name(b"key", "n")
    assert len({name, plan.request_name(b"yek", "n"), plan.request_name(b"key", "m"),
                plan.request_name(b"key", "n", plan.SERVING_USAGES)}) == 4
    assert name.startswith("node-csr-")
    assert len(name) == len("node-csr-") + 43  # 256 bits, six a character


@given(st.floats(0, 1e9), st.floats(1, 1e9), st.floats(0, 1))
def test_renewal_is_due_in_the_last_third_but_not_at_the_end(start: float, life: float, chance: float) -> None:
    due = plan.due(start, start + life, chance)
    assert start + 0.69 * life <= due <= start + 0.91 * life


def test_failures_are_tried_again_ever_later() -> None:
    assert [plan.retry_after(n, 0.0) for n in range(1, 8)] == [2, 4, 8, 16, 32, 32, 32]
    assert plan.retry_after(9, 1.0) == pytest.approx(35.2)


def test_a_request_is_looked_at_soon_and_then_less_often() -> None:
    pauses = [plan.poll_after(waited) for waited in (0, 1, 10, 1000)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.2, 10.0)


def test_a_certificate_that_is_of_no_use() -> None:
    assert plan.unusable(100.0, True, 99.0) == ""
    assert "expired, at 1970-01-01T00:01:40Z" in plan.unusable(100.0, True, 100.0)
    assert "private key" in plan.unusable(100.0, False, 1.0)


def test_serving_names() -> None:
    def node(*addresses: tuple[str, str]) -> dict[str, Any]:
        return {"status": {"addresses": [{"type": kind, "address": value} for kind, value in addresses]}}

    assert plan.serving_names({}) == plan.serving_names(node(("Hostname", "n"))) == ()
    assert plan.serving_names(node(
        ("InternalIP", "192.0.2.9"), ("Hostname", "n"), ("InternalIP", "192.0.2.1"), ("ExternalDNS", "a.example"),
        ("ExternalIP", ""), ("InternalIP", "192.0.2.9"))) == ("a.example", "n", "192.0.2.1", "192.0.2.9")
    assert plan.serving_names(node(("Hostname", "192.0.2.1"))) == ("192.0.2.1",)


def test_a_certificate_for_more_names_will_do() -> None:
    assert plan.satisfies(("a", "b"), ("a",))
    assert not plan.satisfies(("a",), ("a", "b"))
