import pytest

from kubelet_mp.config import Settings
from kubelet_mp.config.model import KubeletConfiguration
from kubelet_mp.errors import HostError, StartError
from kubelet_mp.host.procfs import Machine
from kubelet_mp.model.resources import kubepods_values
from kubelet_mp.rooms.cgroups import addresses, facts
from kubelet_mp.rooms.cgroups.driver import decide
from kubelet_mp.rooms.cgroups.freeing import PATIENCE, Freeing

GI, MI = 1 << 30, 1 << 20
MACHINE = Machine(cpus=4, memory=8 * GI, swap=0, max_pids=1000, huge_pages={2 * MI: 512 * MI, GI: 0})


def with_config(**fields: object) -> Settings:
    return Settings(node_name="n", kubelet=KubeletConfiguration(**fields))  # type: ignore[arg-type]


def have(settings: Settings) -> dict[str, int]:
    return facts.capacity(MACHINE, 100 * GI, settings)


def test_capacity_in_base_units():
    assert have(with_config()) == {
        "cpu": 4000, "memory": 8 * GI, "pods": 110, "pid": 1000, "ephemeral-storage": 100 * GI,
        "hugepages-2Mi": 512 * MI, "hugepages-1Gi": 0,
    }  # fmt: skip
    assert "pid" not in facts.public(have(with_config()))


def test_pods_per_core_lowers_the_number_of_pods():
    assert have(with_config(pods_per_core=10))["pods"] == 40
    assert have(with_config(pods_per_core=100))["pods"] == 110


def test_allocatable_loses_reservations_eviction_and_huge_pages():
    settings = with_config(
        system_reserved={"cpu": "500m", "memory": "1Gi"}, kube_reserved={"memory": "512Mi", "pid": "100"},
        eviction_hard={"memory.available": "100Mi", "nodefs.available": "10%", "imagefs.available": "15%"},
    )  # fmt: skip
    left = facts.allocatable(have(settings), settings)
    assert left["cpu"] == 3500 and left["pods"] == 110 and left["pid"] == 900
    assert left["memory"] == 8 * GI - GI - 512 * MI - 100 * MI - 512 * MI
    assert left["ephemeral-storage"] == 90 * GI
    assert left["hugepages-2Mi"] == 512 * MI


def test_kubepods_does_not_lose_the_eviction_amount():
    settings = with_config(system_reserved={"memory": "1Gi"}, eviction_hard={"memory.available": "1Gi"})
    view = facts.node_view(settings, MACHINE, have(settings), version=1, driver="cgroupfs")
    values = kubepods_values(view)
    assert (values.memory_max, values.pids_max, values.cpu_shares) == (7 * GI, 1000, 4096)


@pytest.mark.parametrize("fields", [
    {"system_reserved": {"cpu": "5"}},
    {"kube_reserved": {"memory": "9Gi"}},
    {"eviction_hard": {"memory.available": "9Gi"}},
])  # fmt: skip
def test_more_reserved_than_there_is_cannot_start(fields: dict[str, object]):
    settings = with_config(**fields)
    with pytest.raises(StartError, match=r"has a reservation of .* but capacity of"):
        facts.allocatable(have(settings), settings)


def test_thresholds_of_0_and_100_percent_are_off():
    assert facts.eviction_reserved({"memory": 1000}, {"memory.available": "100%"}) == {"memory": 0}
    assert facts.eviction_reserved({"memory": 1000}, {"memory.available": "0%"}) == {"memory": 0}
    assert facts.eviction_reserved({"memory": 1000}, {"memory.available": "2.5%"}) == {"memory": 25}


def test_reserved_cpus_replace_reserved_cpu():
    settings = with_config(reserved_system_cpus="0,2-3", system_reserved={"cpu": "100m"},
                           kube_reserved={"cpu": "1", "memory": "1Mi"})
    assert facts.reserved(settings) == {"cpu": 3000, "memory": MI}
    with pytest.raises(StartError, match="reservedSystemCPUs: 'x'"):
        facts.cpu_count("0,x")


def test_compressible_only_sets_cpu():
    taken = {"cpu": 500, "memory": GI, "pid": 10}
    whole = facts.reserved_values(taken, True, [2 * MI])
    assert (whole.cpu_shares, whole.memory_max, whole.pids_max, whole.hugetlb) == (512, GI, 10, {"2MB": 0})
    only = facts.reserved_values(taken, False, [2 * MI])
    assert (only.cpu_shares, only.memory_max, only.hugetlb) == (512, None, {})


# ---- addresses ----


def choose(ips: tuple[str, ...] = (), name: str = "host", names: list[str] | None = None) -> tuple[str, ...]:
    return addresses.choose(ips, name, ["192.0.2.5", "2001:db8::5"], lambda _: names or [],
                            lambda: ["192.0.2.5", "2001:db8::5"])


def test_the_default_route_decides_where_nothing_else_does():
    assert choose() == ("192.0.2.5",)
    assert choose(names=["127.0.1.1"]) == ("192.0.2.5",)


def test_the_given_address_must_be_one_of_the_host():
    assert choose(("2001:db8::5", "192.0.2.5")) == ("2001:db8::5", "192.0.2.5")
    with pytest.raises(HostError, match=r"192\.0\.2\.77"):
        choose(("192.0.2.77",))
    with pytest.raises(HostError, match="cannot be reached"):
        choose(("127.0.0.1",))


def test_an_unspecified_address_prefers_its_family():
    assert choose(("::",)) == ("2001:db8::5",)
    assert choose(("0.0.0.0",), names=["2001:db8::1", "192.0.2.6"]) == ("192.0.2.6",)


def test_the_host_name_may_be_or_have_an_address():
    assert choose(name="198.51.100.7") == ("198.51.100.7",)
    assert choose(names=["2001:db8::9", "192.0.2.6"]) == ("192.0.2.6",)


# ---- driver ----


def test_an_explicit_driver_that_differs_names_both_sides_and_the_fix():
    settings = with_config(cgroup_driver="cgroupfs")
    with pytest.raises(StartError) as caught:
        decide(settings, "systemd")
    text = str(caught.value)
    assert '"systemd"' in text and "cgroupDriver: cgroupfs" in text and "set cgroupDriver: systemd" in text


def test_a_driver_not_set_explicitly_gives_way():
    assert decide(with_config(), "cgroupfs") == "cgroupfs"
    assert decide(with_config(), "") == "cgroupfs"
    with pytest.raises(StartError, match=r'"systemd" is not implemented.*SystemdCgroup = false'):
        decide(with_config(), "systemd")
    with pytest.raises(StartError, match="not implemented"):
        decide(with_config(cgroup_driver="systemd"), "")


# ---- freeing ----


def test_waits_grow_and_the_problem_is_told_once_after_a_while():
    freeing = Freeing(since=100.0)
    assert [freeing.next_delay() for _ in range(10)][-1] == 5.0
    assert freeing.news(100.0 + PATIENCE / 2, {7}) == ""
    assert "killed: 7" in freeing.news(100.0 + PATIENCE, {7})
    assert freeing.news(101.0 + PATIENCE, {7}) == ""
    assert "8" in freeing.news(102.0 + PATIENCE, {8})
