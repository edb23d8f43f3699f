"""In-place resize: what is compared, what a pod is made of meanwhile, and in which order resizes are tried."""

from typing import Any

import pytest

from kubelet_mp.model import resize
from kubelet_mp.model.qos import qos_class
from kubelet_mp.model.resources import pod_limits


def container(name: str = "c", policy: dict[str, str] | None = None, **resources: Any) -> dict[str, Any]:
    policies = [{"resourceName": k, "restartPolicy": v} for k, v in (policy or {}).items()]
    return {"name": name, "resources": resources, **({"resizePolicy": policies} if policies else {})}


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "generation": 3}, "spec": {"containers": list(containers), **spec}}


def amounts(cpu: str = "100m", memory: str = "64Mi") -> dict[str, str]:
    return {"cpu": cpu, "memory": memory}


def test_only_cpu_and_memory_count_and_as_quantities():
    old = resize.allocation(pod(container(requests={"cpu": "1", "memory": "1Gi"}), container("d")))
    same = resize.allocation(pod(container(requests={"cpu": "1000m", "memory": "1024Mi", "x/y": "1"}), container("d")))
    assert not resize.changed(old, same)
    more = resize.allocation(pod(container(requests={"cpu": "2", "memory": "1Gi"}), container("d"),
                                 resources={"limits": {"cpu": "3"}}))
    assert resize.changed(old, more) == {"c", resize.POD}


def test_a_pod_keeps_what_it_was_given():
    asked = pod(container(requests=amounts("2")), container("d", limits=amounts()), initContainers=[container("i")])
    given = resize.allocation(pod(container(requests=amounts("1")), container("d", limits=amounts())))
    kept = resize.allocated(asked, given)
    assert resize.allocation(kept)["c"] == {"requests": amounts("1")}
    assert resize.allocation(asked)["c"] == {"requests": amounts("2")}, "the object itself is as it came"


@pytest.mark.parametrize(("old", "new", "limits"), [
    (amounts("100m", "64Mi"), amounts("50m", "128Mi"), {"cpu": 100, "memory": 128 << 20}),
    ({"cpu": "1"}, {"cpu": "2", "memory": "1Gi"}, {"cpu": 2000}),
    ({}, {"cpu": "1"}, {}),
])
def test_meanwhile_each_limit_is_the_larger_of_the_two(old, new, limits):
    wide = resize.wider(pod(container(limits=new)), {"c": {"limits": old}})
    assert pod_limits(wide) == limits


def test_meanwhile_the_qos_class_stays():
    old = {"requests": {"cpu": "200m", "memory": "100Mi"}, "limits": {"cpu": "200m", "memory": "200Mi"}}
    new = pod(container(requests={"cpu": "100m", "memory": "200Mi"}, limits={"cpu": "200m", "memory": "200Mi"}))
    assert qos_class(resize.wider(new, {"c": old})) == qos_class(new) == "Burstable"


@pytest.mark.parametrize(("policy", "restart"), [
    ({}, False), ({"cpu": "RestartContainer"}, True), ({"memory": "RestartContainer", "cpu": "NotRequired"}, False)])
def test_the_policy_of_what_moves_decides_on_a_restart(policy, restart):
    one = container(policy=policy, limits=amounts("2"))
    assert resize.needs_restart(one, {"limits": amounts("1")}, one["resources"]) is restart


def test_the_order_of_pending_resizes():
    def rank(name: str, cpu: str, since: str = "", **spec: Any) -> tuple[Any, ...]:
        one = pod(container(requests={"cpu": cpu}), **spec)
        return (*resize.rank(one, {"c": {"requests": {"cpu": "1"}}}, since), name)

    ranks = [rank("late", "2"), rank("early", "2", "2026-01-01T00:00:00Z"), rank("important", "2", priority=5),
             rank("shrinks", "500m")]
    assert [entry[-1] for entry in sorted(ranks)] == ["shrinks", "important", "early", "late"]


def test_the_text_of_an_event():
    text = resize.summary("Pod resize started", pod(container(requests={"cpu": "1"})))
    told = '{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}],"generation":3}'
    assert text == f"Pod resize started: {told}"
