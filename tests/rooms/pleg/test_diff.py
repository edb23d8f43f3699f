"""What counts as a change, and what is kept of the old state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kubelet_mp.model.runtime import Container, ContainerBrief, ContainerEvent, PodRuntime, Sandbox, SandboxBrief, State
from kubelet_mp.rooms.pleg import diff
from kubelet_mp.rooms.pleg.diff import NOTHING, Change, Kind, Ledger, PodBriefs, Seen

R, X, C, U = State.RUNNING, State.EXITED, State.CREATED, State.UNKNOWN


def brief(state: State, id_: str = "c", uid: str = "u") -> ContainerBrief:
    return ContainerBrief(id_, uid, "s", "web", 0, state, 1)


def box_brief(ready: bool = True, id_: str = "s", uid: str = "u") -> SandboxBrief:
    return SandboxBrief(id_, uid, "pod", "ns", 0, ready, 1)


def container(state: State, id_: str = "c", created: int = 1) -> Container:
    return Container(id_, "web", 0, state, "s", "u", created)


def sandbox(ready: bool = True, id_: str = "s", created: int = 1, ips: tuple[str, ...] = ("10.0.0.2",)) -> Sandbox:
    return Sandbox(id_, "pod", "ns", "u", 0, ready, created, ips if ready else ())


def briefs(state: State | None) -> PodBriefs:
    return PodBriefs(containers=(brief(state),)) if state else NOTHING


@pytest.mark.parametrize(("old", "new", "kinds"), [
    (R, R, []), (X, X, []), (None, R, [Kind.STARTED]), (C, R, [Kind.STARTED]), (None, C, [Kind.CHANGED]),
    (R, U, [Kind.CHANGED]), (R, X, [Kind.DIED]), (None, X, [Kind.DIED]), (X, None, [Kind.REMOVED]),
    (R, None, [Kind.DIED, Kind.REMOVED]), (U, None, [Kind.DIED, Kind.REMOVED]),
])
def test_changes_of_a_container(old: State | None, new: State | None, kinds: list[Kind]) -> None:
    assert diff.changes(briefs(old), briefs(new)) == [Change("c", kind) for kind in kinds]


def test_a_sandbox_is_a_container() -> None:
    up, down = PodBriefs((box_brief(),)), PodBriefs((box_brief(ready=False),))
    assert diff.changes(NOTHING, up) == [Change("s", Kind.STARTED)]
    assert diff.changes(up, down) == [Change("s", Kind.DIED)]
    assert diff.changes(down, NOTHING) == [Change("s", Kind.REMOVED)]


def test_group_orders_by_id_and_leaves_strangers_out() -> None:
    one = diff.group([box_brief()], [brief(R, "b"), brief(R, "a"), brief(R, "z", uid="")])
    assert one == {"u": PodBriefs((box_brief(),), (brief(R, "a"), brief(R, "b")))}


@pytest.mark.parametrize(("known", "kind", "covered"), [
    (None, "created", True), (None, "started", False), (C, "started", False), (R, "started", True),
    (X, "started", True), (R, "stopped", False), (X, "stopped", True), (None, "stopped", False),
    (X, "deleted", False), (None, "deleted", True), (R, "", False),
])
def test_events_that_tell_nothing_new(known: State | None, kind: str, covered: bool) -> None:
    assert diff.covers(briefs(known), ContainerEvent("c", kind, "u")) is covered


def test_newest_first_and_the_ips_of_the_newest_ready_sandbox() -> None:
    boxes = [sandbox(id_="a", created=1, ips=("1",)), sandbox(id_="c", created=3, ready=False),
             sandbox(id_="b", created=2, ips=("2", "3"))]
    got = diff.assemble("u", boxes, [container(X, "x", 1), container(R, "y", 2)], PodRuntime("u"), 5.0)
    assert [box.id for box in got.sandboxes] == ["c", "b", "a"]
    assert [one.id for one in got.containers] == ["y", "x"]
    assert (got.ips, got.name, got.namespace, got.observed) == (("2", "3"), "pod", "ns", 5.0)


def test_ips_are_kept_only_while_no_sandbox_is_ready() -> None:
    known = PodRuntime("u", ips=("1",))
    assert diff.assemble("u", [sandbox(ready=False)], [], known, 1.0).ips == ("1",)
    assert diff.assemble("u", [sandbox(ips=())], [], known, 1.0).ips == ()


def test_which_statuses_need_no_call() -> None:
    known = PodRuntime("u", sandboxes=(sandbox(),), containers=(container(X, "x"), container(R, "r")))
    assert diff.known_sandbox(box_brief(), known) == sandbox()
    stopped = diff.known_sandbox(box_brief(ready=False), known)
    assert stopped is not None and not stopped.ready and stopped.ips == ()
    assert diff.known_sandbox(box_brief(id_="other"), known) is None
    assert diff.known_container(brief(X, "x"), known, fresh=True) == container(X, "x")
    assert diff.known_container(brief(R, "r"), known, fresh=False) == container(R, "r")
    assert diff.known_container(brief(R, "r"), known, fresh=True) is None
    assert diff.known_container(brief(X, "r"), known, fresh=False) is None


def test_a_sandbox_without_its_ip_yet_is_asked_again() -> None:
    assert diff.known_sandbox(box_brief(), PodRuntime("u", sandboxes=(sandbox(ips=()),))) is None
    assert diff.known_sandbox(box_brief(), PodRuntime("u", sandboxes=(sandbox(ready=False),))) is None
    own = replace(sandbox(ips=()), host_network=True)
    assert diff.known_sandbox(box_brief(), PodRuntime("u", sandboxes=(own,))) == own


# ---- the ledger ----


def seen(state: State, observed: float, error: str = "") -> Seen:
    runtime = PodRuntime("u", containers=(container(state),), observed=observed, error=error)
    return Seen(briefs(state), runtime)


def test_only_news_is_told() -> None:
    ledger = Ledger()
    assert ledger.take(seen(R, 1.0)) is not None
    assert ledger.take(seen(R, 2.0)) is None
    assert ledger.runtime("u").observed == 2.0
    told = ledger.take(seen(X, 3.0))
    assert told is not None and told.containers[0].state is X


def test_an_older_look_changes_nothing() -> None:
    ledger = Ledger()
    ledger.take(seen(X, 5.0))
    assert ledger.take(seen(R, 4.0)) is None
    assert ledger.briefs("u") == briefs(X)


def test_a_failure_flags_the_pod_and_keeps_the_record() -> None:
    ledger = Ledger()
    ledger.take(seen(R, 1.0))
    told = ledger.take(seen(X, 2.0, error="boom"))
    assert told is not None and told.error == "boom"
    assert ledger.briefs("u") == briefs(R) and ledger.flagged
    assert ledger.news({"u": briefs(R)}, 3.0) == ["u"]
    assert ledger.take(seen(R, 3.0)) is not None
    assert not ledger.flagged


def test_what_a_listing_makes_look_at() -> None:
    ledger = Ledger()
    ledger.take(seen(R, 1.0))
    assert ledger.news({"u": briefs(R)}, 2.0) == []
    assert ledger.news({"u": briefs(X)}, 2.0) == ["u"]
    assert ledger.news({}, 2.0) == ["u"]
    assert set(ledger.news({"u": briefs(R), "v": briefs(R)}, 2.0)) == {"v"}
    assert ledger.news({"u": briefs(X)}, 0.5) == []  # looked at since


def test_the_last_object_gone_ends_the_record() -> None:
    ledger = Ledger()
    ledger.take(seen(R, 1.0))
    told = ledger.take(Seen(NOTHING, PodRuntime("u", observed=2.0)))
    assert told is not None and told.empty
    assert not ledger.records and ledger.owner("c") == ""
