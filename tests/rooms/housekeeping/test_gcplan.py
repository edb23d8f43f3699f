"""Which dead things may go, and when a pod counts as gone."""

from __future__ import annotations

import pytest

from kubelet_mp.model.clock import NS
from kubelet_mp.model.runtime import Container, PodRuntime, Sandbox, State
from kubelet_mp.rooms.housekeeping.gcplan import STARTING, Census, Limits, Standing, plan
from kubelet_mp.rooms.housekeeping.inventory import Inventory, PodStock

NOW = 10_000 * NS


def box(id_: str, made: int, ready: bool = False) -> Sandbox:
    return Sandbox(id_, "p", "ns", "u", 0, ready, made * NS)


def dead(id_: str, made: int, name: str = "c", sandbox: str = "s", state: State = State.EXITED) -> Container:
    return Container(id_, name, 0, state, sandbox, "u", made * NS, log_path=f"/logs/{id_}")


def stock(*things: Sandbox | Container) -> PodStock:
    return PodStock.of(PodRuntime(
        "u", "p", "ns", tuple(t for t in things if isinstance(t, Sandbox)),
        tuple(t for t in things if isinstance(t, Container)),
    ))


def removed(pod: PodStock, standing: Standing = Standing.GONE, limits: Limits | None = None) -> list[str]:
    found = plan(pod, standing, limits or Limits(), NOW)
    return [v.id for v in found.vessels] + [b.id for b in found.boxes]


@pytest.mark.parametrize("standing", [Standing.WANTED, Standing.UNCLEAR])
def test_of_a_pod_that_somebody_owns_or_may_own_nothing_goes(standing: Standing) -> None:
    pod = stock(box("s2", 5), box("s1", 1), dead("a2", 3), dead("a1", 2), dead("b1", 1, "b"))
    assert removed(pod, standing) == []


def test_young_dead_containers_stay_for_the_minimum_age() -> None:
    pod = stock(box("s", 1, True), dead("a3", 9990), dead("a2", 9980), dead("a1", 2))
    assert removed(pod, limits=Limits(min_age=60.0)) == ["a1"]


def test_a_container_that_may_be_about_to_be_started_stays() -> None:
    young = stock(box("s", 1, True), dead("new", 9999, state=State.CREATED), dead("old", 5))
    assert removed(young) == ["old"]
    stale = stock(box("s", 1, True), dead("new", int(9999 - STARTING), state=State.CREATED), dead("old", 5))
    assert removed(stale) == ["new", "old"]


def test_of_a_pod_that_is_gone_all_that_is_dead_goes() -> None:
    pod = stock(box("s2", 5), box("s1", 1), dead("a2", 3), dead("a1", 2))
    assert removed(pod) == ["a2", "a1", "s2", "s1"]


def test_what_runs_is_never_touched() -> None:
    one, other = dead("a", 3, state=State.RUNNING), dead("b", 3, "b", "t", State.RUNNING)
    pod = stock(box("s", 1, True), one, box("t", 1), other)
    for standing in Standing:
        assert removed(pod, standing) == []


def test_a_sandbox_stays_while_something_is_in_it() -> None:
    pod = stock(box("s2", 5), box("s1", 1), dead("a", 9990, sandbox="s1"))
    assert removed(pod, limits=Limits(min_age=60.0)) == ["s2"]


# ---- the census ----


def census_of(*admitted: str, ready: bool = True) -> Census:
    census = Census()
    census.shown(frozenset())
    census.admitted(frozenset(admitted), ready)
    return census


def test_nothing_is_gone_before_the_sources_are_ready() -> None:
    census = census_of("a", ready=False)
    census.pass_done({"b"})
    census.pass_done({"b"})
    assert [census.standing(uid) for uid in "ab"] == [Standing.UNCLEAR] * 2


def test_nothing_is_gone_before_the_pods_room_said_whom_it_owns() -> None:
    census = Census()
    census.admitted(frozenset({"a"}), True)
    census.pass_done({"b"})
    census.pass_done({"b"})
    assert census.standing("b") is Standing.UNCLEAR


def test_a_stranger_is_gone_after_two_passes_and_a_known_pod_at_once() -> None:
    census = census_of("a")
    assert census.standing("a") is Standing.WANTED
    census.pass_done({"a", "x"})
    assert census.standing("x") is Standing.UNCLEAR
    census.pass_done({"a", "x"})
    assert census.standing("x") is Standing.GONE
    census.admitted(frozenset(), True)
    assert census.standing("a") is Standing.GONE


def test_a_pod_that_comes_back_is_wanted_again() -> None:
    census = census_of("a")
    census.admitted(frozenset(), True)
    census.forgotten("a")
    census.admitted(frozenset({"a"}), True)
    census.forgotten("a")
    assert census.standing("a") is Standing.WANTED


def test_a_finished_pod_that_is_still_shown_is_not_ours() -> None:
    census = Census()
    census.admitted(frozenset({"a"}), True)
    census.shown(frozenset({"a"}))
    census.admitted(frozenset(), True)
    assert census.standing("a") is Standing.WANTED
    census.shown(frozenset())
    assert census.standing("a") is Standing.GONE


def test_the_census_forgets_who_left_no_traces() -> None:
    census = census_of("a")
    census.admitted(frozenset(), True)
    census.pass_done(set())
    assert census.standing("a") is Standing.UNCLEAR


# ---- the inventory ----


def test_the_inventory_follows_the_runtime() -> None:
    inventory = Inventory()
    pod = PodRuntime("u", "p", "ns", (box("s", 1, True),), (dead("a", 1, state=State.RUNNING), dead("b", 1)))
    assert inventory.update(pod) is not None and not inventory.complete
    assert [v.id for v in inventory.running()] == ["a"]
    assert inventory.update(PodRuntime("u", error="down")) is None
    assert "u" in inventory
    inventory.listed(frozenset({"u"}))
    assert inventory.complete and "u" in inventory
    inventory.update(PodRuntime("u"))
    assert "u" not in inventory


@pytest.mark.parametrize("seen", [frozenset[str](), frozenset({"x"})])
def test_pods_that_a_full_listing_did_not_see_are_dropped(seen: frozenset[str]) -> None:
    inventory = Inventory()
    inventory.update(PodRuntime("u", "p", "ns", (box("s", 1),)))
    inventory.listed(seen)
    assert list(inventory) == []
