"""Which pods make room for a critical one."""

from typing import Any

import pytest

from kubelet_mp.model.admission import NodeOffer, Preemption, Rejection, judge
from kubelet_mp.model.preemption import NoVictims, choose_victims, preemptable


def pod(name: str = "p", priority: int | None = None, limits: bool = False, **requests: str) -> dict[str, Any]:
    resources: dict[str, Any] = {"requests": requests, **({"limits": requests} if limits else {})}
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i", "resources": resources}]}
    if priority is not None:
        spec["priority"] = priority
    return {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": spec}


CRITICAL = pod("critical", 2_000_000_000, cpu="1", memory="1Gi")
EFFORT = pod("effort")
SMALL, LARGE = pod("small", cpu="200m", memory="1Mi"), pod("large", cpu="900m", memory="1Mi")
DEAR = pod("dear", limits=True, cpu="1", memory="1Gi")


@pytest.mark.parametrize(("pods", "missing", "victims"), [
    ([SMALL, LARGE, DEAR], {"cpu": 100}, ["small"]),
    ([SMALL, LARGE, DEAR], {"cpu": 500}, ["large"]),
    ([SMALL, LARGE, DEAR], {"cpu": 1100}, ["large", "small"]),
    ([SMALL, LARGE, DEAR], {"cpu": 1500}, ["large", "dear"]),
    ([DEAR, SMALL], {"cpu": 900}, ["dear"]),
    ([EFFORT, SMALL, DEAR], {"pods": 1}, ["effort"]),
    ([EFFORT, SMALL, LARGE], {"pods": 1, "cpu": 100}, ["small"]),
    ([EFFORT, SMALL, DEAR], {"pods": 2, "cpu": 100}, ["effort", "small"]),
])  # fmt: skip
def test_victims(pods: Any, missing: dict[str, int], victims: list[str]) -> None:
    assert [v["metadata"]["name"] for v in choose_victims(CRITICAL, pods, missing)] == victims


def test_critical_pods_are_no_victims() -> None:
    with pytest.raises(NoVictims, match=r"reclaim resources: \[\(res: cpu, q: 100\), \]"):
        choose_victims(CRITICAL, [pod("other", 2_000_000_000, cpu="1")], {"cpu": 100})


@pytest.mark.parametrize(("mine", "theirs", "allowed"), [
    (2_000_000_000, None, True), (2_000_000_000, 2_000_000_000, False), (2_000_000_001, 2_000_000_000, True),
    (10, None, False), (10, 5, True),
])
def test_who_may_stop_whom(mine: int, theirs: int | None, allowed: bool) -> None:
    assert preemptable(pod(priority=mine), pod(priority=theirs)) is allowed


OFFER = NodeOffer(node_name="node", allocatable={"cpu": 1000, "memory": 2 << 30, "pods": 9})


def test_a_critical_pod_asks_for_room_instead_of_being_rejected() -> None:
    verdict = judge(CRITICAL, [SMALL, LARGE], OFFER)
    assert isinstance(verdict, Preemption)
    assert verdict.missing == {"cpu": 1100}
    assert [v["metadata"]["name"] for v in verdict.victims] == ["large", "small"]


def test_what_preemption_cannot_cure_is_told() -> None:
    elsewhere = {**CRITICAL, "spec": {**CRITICAL["spec"], "nodeSelector": {"a": "b"}}}
    verdict = judge(elsewhere, [LARGE], OFFER)
    assert isinstance(verdict, Rejection) and verdict.reason == "NodeAffinity"
    verdict = judge(pod("huge", 2_000_000_000, cpu="5"), [LARGE], OFFER)
    assert isinstance(verdict, Rejection) and verdict.reason == "UnexpectedAdmissionError"
    assert verdict.text == (
        "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of "
        "pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 4000), ]")
