from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.model.qos import is_critical, is_mirror, is_node_critical, is_static, priority, qos_class

FULL = {"cpu": "1", "memory": "1Gi"}


def pod(*resources, init=(), **spec):
    containers = [{"name": f"c{i}", "resources": r} for i, r in enumerate(resources)]
    inits = [{"name": f"i{i}", "resources": r} for i, r in enumerate(init)]
    return {"metadata": {"name": "p"}, "spec": {"containers": containers, "initContainers": inits, **spec}}


@pytest.mark.parametrize(
    ("given_pod", "expected"),
    [
        (pod({}), "BestEffort"),
        (pod({"limits": {"ephemeral-storage": "1Gi"}}), "BestEffort"),
        (pod({"requests": {"cpu": "0"}}), "BestEffort"),
        (pod({"limits": FULL}), "Guaranteed"),
        (pod({"limits": FULL, "requests": {"cpu": "1000m", "memory": "1024Mi"}}), "Guaranteed"),
        (pod({"limits": FULL, "requests": {"cpu": "500m", "memory": "1Gi"}}), "Burstable"),
        (pod({"limits": {"cpu": "1"}}), "Burstable"),
        (pod({"limits": FULL}, {}), "Burstable"),
        (pod({"limits": FULL}, init=[{}]), "Burstable"),
        (pod({"limits": FULL}, init=[{"limits": FULL}]), "Guaranteed"),
        (pod({"requests": {"memory": "1"}}), "Burstable"),
        (pod({}, resources={"limits": FULL}), "Guaranteed"),
        (pod({"requests": {"cpu": "100m"}}, resources={"limits": FULL}), "Burstable"),
        (pod({"limits": FULL}, resources={"requests": {"cpu": "1"}}), "Burstable"),
        (pod({"limits": FULL}, resources={"requests": FULL, "limits": FULL}), "Guaranteed"),
        (pod({"limits": FULL}, resources={"limits": {"hugepages-2Mi": "2Mi"}}), "BestEffort"),
    ],
)
def test_class_of_a_pod(given_pod, expected):
    assert qos_class(given_pod) == expected


CPU = st.sampled_from([None, "0", "100m", "0.1", "1"])
MEMORY = st.sampled_from([None, "0", "64Mi", "67108864", "1Gi"])


@st.composite
def resource_lists(draw):
    both = {"cpu": draw(CPU), "memory": draw(MEMORY)}
    return {name: value for name, value in both.items() if value is not None}


RESOURCES = st.fixed_dictionaries({}, optional={"requests": resource_lists(), "limits": resource_lists()})


@given(st.lists(RESOURCES, min_size=1, max_size=3), st.lists(RESOURCES, max_size=2))
def test_every_pod_has_one_class_which_the_order_of_containers_does_not_change(regular, init):
    one, other = pod(*regular, init=init), pod(*reversed(regular), init=list(reversed(init)))
    assert qos_class(one) == qos_class(other)
    limited = all(
        _positive(r.get("limits", {}), name) for r in [*regular, *init] for name in ("cpu", "memory")
    )
    asks = any(_positive(r.get(k, {}), n) for r in [*regular, *init] for k in r for n in ("cpu", "memory"))
    assert (qos_class(one) == "BestEffort") == (not asks)
    assert limited or qos_class(one) != "Guaranteed"


def _positive(amounts, name):
    return amounts.get(name, "0") != "0"


@pytest.mark.parametrize(
    ("annotations", "spec", "static", "critical"),
    [
        ({}, {}, False, False),
        ({"kubernetes.io/config.source": "api"}, {}, False, False),
        ({"kubernetes.io/config.source": "file"}, {}, True, True),
        ({"kubernetes.io/config.source": "http"}, {}, True, True),
        ({"kubernetes.io/config.source": "api"}, {"priority": 2_000_000_000}, False, True),
        ({}, {"priority": 1_999_999_999}, False, False),
        ({"kubernetes.io/config.mirror": "abc"}, {}, False, True),
    ],
)
def test_static_and_critical(annotations, spec, static, critical):
    found = {"metadata": {"annotations": annotations}, "spec": spec}
    assert (is_static(found), is_critical(found)) == (static, critical)
    assert is_mirror(found) == ("kubernetes.io/config.mirror" in annotations)
    assert priority(found) == spec.get("priority", 0)


def test_node_critical_needs_the_class_and_the_priority():
    spec = {"priority": 2_000_001_000, "priorityClassName": "system-node-critical"}
    assert is_node_critical({"spec": spec})
    assert not is_node_critical({"spec": spec | {"priority": 5}})
    assert not is_node_critical({"spec": spec | {"priorityClassName": "system-cluster-critical"}})
