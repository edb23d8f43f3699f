"""At most one look per pod, and none forgotten."""

from __future__ import annotations

from kubelet_mp.model.runtime import ContainerBrief, ContainerEvent, State
from kubelet_mp.rooms.pleg.diff import NOTHING, PodBriefs
from kubelet_mp.rooms.pleg.looks import Look, Looks

STOPPED = ContainerEvent("c", "stopped", "u")
DEAD = PodBriefs(containers=(ContainerBrief("c", "u", "s", "web", 0, State.EXITED, 1),))


def test_an_order_during_a_look_is_answered_by_another() -> None:
    looks = Looks()
    assert looks.order("u") == Look("u", ordered=True)
    assert looks.order("u") is None
    assert looks.order("v") == Look("v", ordered=True)
    assert looks.finish("u", NOTHING) == Look("u", ordered=True)
    assert looks.finish("u", NOTHING) is None


def test_an_event_during_a_look_counts_only_if_the_look_missed_it() -> None:
    looks = Looks()
    looks.order("u")
    assert looks.note("u", STOPPED) is None
    assert looks.finish("u", DEAD) is None
    looks.order("u")
    looks.note("u", STOPPED)
    assert looks.finish("u", NOTHING) == Look("u")


def test_a_listing_during_a_look_leads_to_another() -> None:
    looks = Looks()
    assert looks.listed("u", DEAD, 3.0) == Look("u", listed=(DEAD, 3.0))
    assert looks.listed("u", DEAD, 4.0) is None
    assert looks.finish("u", DEAD) == Look("u")


def test_late_ones() -> None:
    looks = Looks()
    looks.mark_late("u")
    assert not looks.late("u")
    looks.order("u")
    looks.mark_late("u")
    assert looks.late("u")
    looks.finish("u", NOTHING)
    assert not looks.late("u")
