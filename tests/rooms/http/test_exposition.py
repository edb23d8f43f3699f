"""Several rooms' metrics as one page, with counters that survive a restart."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from kubelet_mp.rooms.http.exposition import Ledger, parse, render


class Registry:
    """A room's registry, as each room has one."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.ops = Counter("kubelet_ops", "Operations.", ("kind",), registry=self.registry)
        self.pods = Gauge("kubelet_pods", "Pods.", registry=self.registry)
        self.seconds = Histogram("kubelet_seconds", "Durations.", registry=self.registry)

    def text(self) -> str:
        return generate_latest(self.registry).decode()


def samples(text: str) -> list[tuple[str, str, float]]:
    return [(s.name, str(s.labels), float(s.value)) for family in text_string_to_metric_families(text)
            for s in family.samples if not family.name.endswith("_created")]


def values(ledger: Ledger) -> dict[str, float]:
    page = render(ledger.families())
    return {f"{s.name}{sorted(s.labels.items())}": s.value
            for family in text_string_to_metric_families(page) for s in family.samples}


OPS = "kubelet_ops_total[('kind', 'a')]"


def test_a_page_of_one_room_says_what_the_room_said() -> None:
    room = Registry()
    room.ops.labels('odd "}{" \\ label').inc(2.5)
    room.seconds.observe(0.3)
    before, after = samples(room.text()), samples(render(parse(room.text())))
    assert after == before


def test_equal_counters_of_two_rooms_add_up_and_gauges_do_not() -> None:
    one, two, ledger = Registry(), Registry(), Ledger()
    for room, count in ((one, 2), (two, 3)):
        room.ops.labels("a").inc(count)
        room.pods.set(count)
        room.seconds.observe(1.0)
    ledger.update("one", one.text())
    ledger.update("two", two.text())
    found = values(ledger)
    assert (found[OPS], found["kubelet_pods[]"], found["kubelet_seconds_count[]"]) == (5, 3, 2)


def test_a_family_stands_once_with_its_head() -> None:
    ledger = Ledger()
    for name in ("one", "two"):
        ledger.update(name, Registry().text())
    assert render(ledger.families()).count("# TYPE kubelet_pods gauge") == 1


def test_counters_go_on_when_their_room_restarts_twice() -> None:
    ledger = Ledger()
    for count in (4, 5, 6):
        room = Registry()
        room.ops.labels("a").inc(count)
        room.pods.set(count)
        ledger.restarted("pods")
        ledger.update("pods", room.text())
    found = values(ledger)
    assert (found[OPS], found["kubelet_pods[]"]) == (15, 6)


def test_a_counter_is_shown_while_the_new_incarnation_has_not_counted_yet() -> None:
    ledger, room = Ledger(), Registry()
    room.ops.labels("a").inc(4)
    ledger.update("pods", room.text())
    ledger.restarted("pods")
    assert values(ledger)[OPS] == 4
    ledger.update("pods", Registry().text())
    assert values(ledger)[OPS] == 4


def test_the_start_of_a_room_that_never_reported_changes_nothing() -> None:
    ledger = Ledger()
    ledger.restarted("pods")
    assert values(ledger) == {}
