from __future__ import annotations

from dataclasses import replace

import pytest

from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.oomscore import oom_score_adj
from kubelet_mp.model.resources import (
    CgroupValues,
    kubepods_values,
    linux_resources,
    overhead_resources,
    pod_cgroup_values,
    qos_cgroup_values,
    sandbox_resources,
)

MI, GI = 1 << 20, 1 << 30
HUGE = ((2 * MI), GI)
V1 = NodeView(
    node_name="n",
    cgroup_version=1,
    capacity={"cpu": 4000, "memory": 4 * GI, "pid": 30000},
    allocatable={"cpu": 4000, "memory": 4 * GI},
)
V2 = replace(V1, cgroup_version=2)


def container(name="c", requests=None, limits=None, **extra):
    return {"name": name, "resources": {"requests": requests or {}, "limits": limits or {}}, **extra}


def pod(*containers, init=(), **spec):
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": list(containers), "initContainers": list(init), **spec},
    }


TINY = pod(
    container("x", limits={"cpu": "5m", "memory": "32Mi"}),
    container("y", limits={"cpu": "7m", "memory": "32Mi"}),
)
BURST = pod(container("a", {"cpu": "100m", "memory": "64Mi"}, {"memory": "128Mi"}))
BEST = pod(container("b"))
FULL = {"cpu": "1", "memory": "1Gi"}


# ---------------------------------------------------------------- pod, QoS and kubepods


def test_small_limits_keep_to_the_smallest_quota():
    x, y = TINY["spec"]["containers"]
    for one, shares in ((x, 5), (y, 7)):
        found = linux_resources(TINY, one, V1)
        assert (found["cpu_quota"], found["cpu_period"], found["cpu_shares"]) == (1000, 100_000, shares)
        assert found["memory_limit_in_bytes"] == 32 * MI
    assert pod_cgroup_values(TINY, V1) == CgroupValues(12, 1200, 100_000, 64 * MI)


@pytest.mark.parametrize(
    ("given_pod", "expected"),
    [
        (BEST, CgroupValues(cpu_shares=2)),
        (BURST, CgroupValues(cpu_shares=102, memory_max=128 * MI)),
        (pod(container(requests={"cpu": "1"})), CgroupValues(cpu_shares=1024)),
        (pod(container(limits={"cpu": "1"}), container("d", {"memory": "1"})), CgroupValues(cpu_shares=1024)),
        (pod(container(limits={"cpu": "1"})), CgroupValues(1024, 100_000, 100_000)),
        (pod(container(limits=FULL)), CgroupValues(1024, 100_000, 100_000, GI)),
        (
            pod(container(limits=FULL), overhead={"cpu": "1", "memory": "1Gi"}),
            CgroupValues(2048, 200_000, 100_000, 2 * GI),
        ),
        (
            pod(container(requests={"cpu": "1"}), resources={"limits": {"cpu": "2"}}),
            CgroupValues(1024, 200_000, 100_000),
        ),
        (
            pod(container(limits={"cpu": "1"}), init=[container("i", {"cpu": "2"})]),
            CgroupValues(cpu_shares=2048),
        ),
    ],
)
def test_pod_cgroup(given_pod, expected):
    assert pod_cgroup_values(given_pod, V1) == expected


def test_pod_cgroup_by_node_settings():
    node = replace(V1, cpu_cfs_quota=False, pod_pids_limit=100, hugepage_sizes=HUGE)
    found = pod_cgroup_values(pod(container(limits=FULL | {"hugepages-2Mi": "4Mi"})), node)
    assert (found.cpu_quota, found.pids_max) == (-1, 100)
    assert found.hugetlb == {"2MB": 4 * MI, "1GB": 0}
    assert (
        pod_cgroup_values(pod(container(limits=FULL)), replace(V1, cpu_period_us=10_000)).cpu_quota == 10_000
    )


def test_qos_cgroups_take_the_sum_of_burstable_requests():
    found = qos_cgroup_values(
        [BURST, BURST, BEST, pod(container(limits=FULL))], replace(V1, hugepage_sizes=HUGE)
    )
    unlimited = {"2MB": 1 << 62, "1GB": 1 << 62}
    assert found == {
        "Burstable": CgroupValues(cpu_shares=204, hugetlb=unlimited),
        "BestEffort": CgroupValues(cpu_shares=2, hugetlb=unlimited),
    }
    assert qos_cgroup_values([], V1)["Burstable"].cpu_shares == 2


def test_kubepods_is_capacity_less_reservations_without_eviction():
    node = replace(V1, reserved={"cpu": 500, "memory": GI, "pid": 1000}, hugepage_sizes=(2 * MI,))
    assert kubepods_values(node) == CgroupValues(
        cpu_shares=3584, memory_max=3 * GI, pids_max=29000, hugetlb={"2MB": 0}
    )
    assert kubepods_values(replace(node, pods_enforced=False)).memory_max == 4 * GI
    assert kubepods_values(replace(node, reserved={"memory": 9 * GI})).memory_max == 0


# ---------------------------------------------------------------- memory QoS


def test_memory_qos_without_reservation_only_clears():
    assert pod_cgroup_values(BURST, V2).unified == {}
    assert qos_cgroup_values([BURST], V2)["Burstable"].unified == {"memory.low": "0"}
    assert kubepods_values(V2, [BURST]).unified == {"memory.min": "0", "memory.low": "0"}
    unified = linux_resources(BURST, BURST["spec"]["containers"][0], V2)["unified"]
    assert unified == {"memory.oom.group": "1", "memory.min": "0", "memory.low": "0", "memory.swap.max": "0"}


def test_tiered_reservation():
    node, sure = replace(V2, memory_reservation="TieredReservation"), pod(container(limits=FULL))
    assert pod_cgroup_values(sure, node).unified == {"memory.min": str(GI)}
    assert pod_cgroup_values(BURST, node).unified == {"memory.low": str(64 * MI)}
    assert pod_cgroup_values(BEST, node).unified == {}
    assert qos_cgroup_values([BURST, sure], node)["Burstable"].unified == {"memory.low": str(64 * MI)}
    assert kubepods_values(node, [BURST, sure]).unified == {
        "memory.min": str(GI + 64 * MI),
        "memory.low": str(64 * MI),
    }
    assert kubepods_values(replace(node, memory_qos=False), [BURST]).unified == {}


@pytest.mark.parametrize(
    ("requests", "limits", "factor", "high"),
    [
        ({"memory": "64Mi"}, {"memory": "128Mi"}, 0.5, 96 * MI),
        ({"memory": "64Mi"}, {"memory": "128Mi"}, None, None),
        ({"memory": "64Mi"}, {"memory": "64Mi"}, 0.9, None),
        ({"memory": "1Gi"}, {}, 0.5, 2560 * MI),
        ({}, {}, 0.5, 2 * GI),
        ({"memory": "64Mi"}, {"memory": "65540Ki"}, 0.5, None),
        ({"memory": "100"}, {"memory": "10000"}, 0.9, 8192),
    ],
)
def test_memory_high(requests, limits, factor, high):
    one = container(requests=requests, limits=limits)
    unified = linux_resources(pod(one), one, replace(V2, memory_throttling_factor=factor))["unified"]
    assert unified.get("memory.high") == (str(high) if high else None)


def test_memory_high_is_lifted_with_the_feature_off():
    one = container(requests={"memory": "1Mi"})
    assert linux_resources(pod(one), one, replace(V2, memory_qos=False))["unified"]["memory.high"] == "max"


# ---------------------------------------------------------------- containers


def test_request_without_limit_is_not_limited():
    one = container(requests={"cpu": "100m", "memory": "64Mi"})
    found = linux_resources(pod(one), one, V1)
    assert "cpu_quota" not in found and "memory_limit_in_bytes" not in found
    assert (found["cpu_shares"], found["cpu_period"]) == (102, 100_000)


def test_pod_level_limits_hold_for_containers_without_their_own():
    own, none = container("own", limits={"cpu": "1"}), container("none")
    found = pod(own, none, resources={"limits": {"cpu": "2", "memory": "1Gi"}})
    assert linux_resources(found, own, V1)["cpu_quota"] == 100_000
    assert linux_resources(found, none, V1)["cpu_quota"] == 200_000
    assert linux_resources(found, none, V1)["memory_limit_in_bytes"] == GI


def test_quota_off_and_exclusive_cpus():
    one = container(limits=FULL)
    assert "cpu_quota" not in linux_resources(pod(one), one, replace(V1, cpu_cfs_quota=False))
    found = linux_resources(pod(one), one, V1, exclusive_cpus=True, cpuset_cpus="2-3", cpuset_mems="0")
    assert (found["cpu_quota"], found["cpuset_cpus"], found["cpuset_mems"]) == (-1, "2-3", "0")


def test_hugepage_limits_name_every_size_of_the_node():
    one = container(limits={"hugepages-1Gi": "2Gi"})
    found = linux_resources(pod(one), one, replace(V1, hugepage_sizes=HUGE))
    assert found["hugepage_limits"] == [
        {"page_size": "2MB", "limit": 0},
        {"page_size": "1GB", "limit": 2 * GI},
    ]


def test_a_single_process_may_be_killed_alone():
    one = container()
    unified = linux_resources(pod(one), one, replace(V2, single_process_oom_kill=True))["unified"]
    assert "memory.oom.group" not in unified
    assert "unified" not in linux_resources(pod(one), one, V1)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (V1, (128 * MI, None)),
        (replace(V1, swap_controller=False), (None, None)),
        (V2, (None, "0")),
        (replace(V2, swap_behavior="LimitedSwap", swap_total=2 * GI), (None, str(32 * MI))),
        (replace(V2, swap_behavior="LimitedSwap", swap_total=2 * GI, swap_controller=False), (None, None)),
    ],
)
def test_swap(node, expected):
    found = linux_resources(BURST, BURST["spec"]["containers"][0], node)
    swap_max = found.get("unified", {}).get("memory.swap.max")
    assert (found.get("memory_swap_limit_in_bytes"), swap_max) == expected


@pytest.mark.parametrize(
    "given_pod",
    [
        pod(container(limits=FULL)),
        BEST,
        pod(container(requests={"cpu": "1"})),
        pod(container(limits={"memory": "64Mi"})),
        {**BURST, "metadata": {"annotations": {"kubernetes.io/config.source": "file"}}},
    ],
)
def test_no_swap_for_all_but_ordinary_burstable_pods(given_pod):
    node = replace(V2, swap_behavior="LimitedSwap", swap_total=2 * GI)
    found = linux_resources(given_pod, given_pod["spec"]["containers"][0], node)
    assert found["unified"]["memory.swap.max"] == "0"


# ---------------------------------------------------------------- OOM score


def memory(amount):
    return {"memory": amount}


SIDE = container("s", memory("8Mi"), restartPolicy="Always")


@pytest.mark.parametrize(
    ("given_pod", "name", "capacity", "score"),
    [
        (pod(container(limits=FULL)), "c", 4 * GI, -997),
        (BEST, "b", 4 * GI, 1000),
        (BURST, "a", 4 * GI, 985),
        (pod(container(requests=memory("4Gi"))), "c", 4 * GI, 3),
        (pod(container(requests=memory("1"))), "c", 4 * GI, 999),
        (pod(container(requests={"cpu": "1"})), "c", 4 * GI, 999),
        (
            pod(container(requests=memory("2Gi")), container("d", memory("1Gi")), init=[SIDE]),
            "s",
            4 * GI,
            750,
        ),
        (pod(container(requests=memory("4Mi")), init=[SIDE]), "s", 8000 * MI, 999),
        (
            pod(container(), container("d", memory("1Gi")), resources={"requests": memory("3Gi")}),
            "c",
            4 * GI,
            750,
        ),
        (
            pod(container(), container("d", memory("1Gi")), resources={"requests": memory("3Gi")}),
            "d",
            4 * GI,
            500,
        ),
        (
            pod(
                container(requests={"cpu": "1"}),
                priority=2_000_001_000,
                priorityClassName="system-node-critical",
            ),
            "c",
            GI,
            -997,
        ),
    ],
)
def test_oom_score(given_pod, name, capacity, score):
    both = [*given_pod["spec"]["containers"], *given_pod["spec"]["initContainers"]]
    found = next(c for c in both if c["name"] == name)
    assert oom_score_adj(given_pod, found, capacity) == score


# ---------------------------------------------------------------- sandbox


def test_sandbox_resources_leave_overhead_apart():
    found = pod(container(limits=FULL), overhead={"cpu": "250m", "memory": "64Mi"})
    assert sandbox_resources(found, V1) == {
        "cpu_shares": 1024,
        "cpu_quota": 100_000,
        "cpu_period": 100_000,
        "memory_limit_in_bytes": GI,
    }
    assert overhead_resources(found, V1) == {
        "cpu_shares": 256,
        "cpu_quota": 25_000,
        "cpu_period": 100_000,
        "memory_limit_in_bytes": 64 * MI,
    }
    assert overhead_resources(BEST, V1) == {}
    assert sandbox_resources(BEST, V2) == {
        "cpu_shares": 2,
        "cpu_period": 100_000,
        "unified": {"memory.oom.group": "1"},
    }
