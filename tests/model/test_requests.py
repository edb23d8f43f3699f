from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.model.requests import (
    aggregate_requests,
    all_limited,
    container_requests,
    has_pod_level,
    pod_level_requests,
    pod_limits,
    pod_requests,
)

MI = 1 << 20


def container(name="c", requests=None, limits=None, **extra):
    resources = {"requests": requests or {}, "limits": limits or {}}
    return {"name": name, "resources": resources, **extra}


def pod(*containers, init=(), **spec):
    return {"spec": {"containers": list(containers), "initContainers": list(init), **spec}}


def cpu_pod(regular, init):
    """init: [(millicores, sidecar)]."""
    inits = [
        container(f"i{n}", {"cpu": f"{m}m"}, **({"restartPolicy": "Always"} if sidecar else {}))
        for n, (m, sidecar) in enumerate(init)
    ]
    return pod(*(container(f"c{n}", {"cpu": f"{m}m"}) for n, m in enumerate(regular)), init=inits)


def test_a_limit_stands_for_a_missing_request():
    assert container_requests(container(limits={"cpu": "5m", "memory": "32Mi"})) == {
        "cpu": 5,
        "memory": 32 * MI,
    }
    assert container_requests(container(requests={"cpu": "1"}, limits={"cpu": "2"})) == {"cpu": 1000}


@pytest.mark.parametrize(
    ("regular", "init", "expected"),
    [
        ([100, 200], [], 300),
        ([100], [(500, False), (300, False)], 500),
        ([100], [(50, True)], 150),
        ([100], [(50, True), (500, False)], 550),
        ([100], [(500, False), (50, True)], 500),
        ([100], [(50, True), (200, False), (300, True)], 450),
        ([], [(7, True), (9, True)], 16),
    ],
)
def test_the_most_demanding_moment_counts(regular, init, expected):
    assert aggregate_requests(cpu_pod(regular, init))["cpu"] == expected


@given(
    st.lists(st.integers(0, 10**6), max_size=4),
    st.lists(st.tuples(st.integers(0, 10**6), st.booleans()), max_size=4),
)
def test_aggregate_is_the_maximum_over_all_moments(regular, init):
    moments = [sum(regular) + sum(m for m, sidecar in init if sidecar)]
    for position, (asked, _) in enumerate(init):
        moments.append(asked + sum(m for m, sidecar in init[:position] if sidecar))
    assert aggregate_requests(cpu_pod(regular, init)).get("cpu", 0) == max(moments)


def test_overhead_adds_to_requests_and_only_to_limits_that_exist():
    found = pod(
        container(requests={"cpu": "1", "memory": "1Mi"}, limits={"memory": "2Mi"}),
        overhead={"cpu": "250m", "memory": "1Mi"},
    )
    assert pod_requests(found) == {"cpu": 1250, "memory": 2 * MI}
    assert pod_requests(found, overhead=False) == {"cpu": 1000, "memory": MI}
    assert pod_limits(found) == {"memory": 3 * MI}
    assert pod_limits(found, overhead=False) == {"memory": 2 * MI}


def test_pod_level_replaces_the_sum_for_the_names_that_it_has():
    found = pod(
        container(requests={"cpu": "1", "memory": "1Mi"}),
        resources={"requests": {"cpu": "3"}, "limits": {"cpu": "4"}},
    )
    assert pod_requests(found) == {"cpu": 3000, "memory": MI}
    assert pod_limits(found) == {"cpu": 4000}
    assert has_pod_level(found)
    assert not has_pod_level(pod(container(requests={"cpu": "1"})))
    assert not has_pod_level(pod(resources={"requests": {"ephemeral-storage": "1Gi"}}))


def test_a_pod_level_limit_without_request_is_what_containers_ask_or_else_the_limit():
    found = pod(container(requests={"cpu": "1"}), resources={"limits": {"cpu": "4", "memory": "8Mi"}})
    assert pod_level_requests(found) == {"cpu": 1000, "memory": 8 * MI}


def test_all_limited_looks_at_init_containers_and_the_pod_level():
    limited, free = container(limits={"cpu": "1"}), container("x", {"cpu": "1"})
    assert all_limited(pod(limited), "cpu")
    assert not all_limited(pod(limited, init=[free]), "cpu")
    assert not all_limited(pod(limited, free), "cpu")
    assert all_limited(pod(limited, free, resources={"limits": {"cpu": "4"}}), "cpu")
    assert not all_limited(pod(limited), "memory")
