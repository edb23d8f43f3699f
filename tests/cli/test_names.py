"""Which pod a person means."""

from __future__ import annotations

from typing import Any

import pytest

from kubelet_mp.cli.names import NoSuchPod, pick


def answer(*pods: tuple[str, str], gone: tuple[tuple[str, str], ...] = (),
           problems: tuple[str, ...] = ()) -> dict[str, Any]:
    def rows(names: Any) -> list[dict[str, str]]:
        return [{"namespace": namespace, "name": name} for namespace, name in names]

    return {"node": "n1", "pods": rows(pods), "gone": rows(gone), "problems": [{"pod": p} for p in problems]}


PODS = answer(("default", "web-n1"), ("kube-system", "dns-n1"), ("default", "api"))


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("web-n1", ("default", "web-n1")),
        ("web", ("default", "web-n1")),
        ("default/web", ("default", "web-n1")),
        ("kube-system/dns", ("kube-system", "dns-n1")),
        ("api", ("default", "api")),
    ],
)
def test_pods_are_found_with_and_without_the_nodes_name(wanted: str, expected: tuple[str, str]) -> None:
    assert pick(PODS, wanted) == expected


def test_near_names_are_suggested() -> None:
    with pytest.raises(NoSuchPod) as caught:
        pick(PODS, "wep")
    assert str(caught.value) == 'there is no pod "wep" on this node (fix: did you mean default/web-n1?)'
    with pytest.raises(NoSuchPod, match="kubelet-mp pods"):
        pick(PODS, "zzzzzz")


def test_a_namespace_must_fit() -> None:
    with pytest.raises(NoSuchPod):
        pick(PODS, "kube-system/web")


def test_a_name_in_two_namespaces_must_be_told_apart() -> None:
    with pytest.raises(NoSuchPod, match="a/web-n1, b/web-n1") as caught:
        pick(answer(("a", "web-n1"), ("b", "web-n1")), "web")
    assert caught.value.fix == "name it as NAMESPACE/POD"


def test_a_pod_that_is_there_comes_before_one_that_is_gone() -> None:
    gone = (("default", "web"), ("default", "old-n1"))
    found = answer(("default", "web-n1"), gone=gone, problems=("ns/broken-n1", ""))
    assert pick(found, "web") == ("default", "web-n1")
    assert pick(found, "old") == ("default", "old-n1")
    assert pick(found, "broken") == ("ns", "broken-n1")
