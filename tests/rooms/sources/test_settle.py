"""What still counts while a file is being replaced."""

from kubelet_mp.rooms.sources.settle import BROKEN_HOLD, GONE_HOLD, settle
from kubelet_mp.rooms.sources.source import Item

GOOD, BETTER = Item("f", ({"n": 1},)), Item("f", ({"n": 2},))
BROKEN = Item("f", problem="not YAML")


def history(*steps):
    """steps: (monotonic, items found) → the items that count after each, and the last recheck."""
    kept, counted, recheck = {}, [], None
    for now, found in steps:
        result = settle(kept, found, now)
        kept, recheck = result.kept, result.recheck
        counted.append(list(result.items.values()))
    return counted, recheck


def test_good_content_counts_at_once():
    assert history((0, [GOOD]), (0.001, [BETTER])) == ([[GOOD], [BETTER]], None)


def test_a_file_that_is_moved_away_and_back_never_leaves():
    counted, _ = history((0, [GOOD]), (10, []), (10 + GONE_HOLD / 2, [GOOD]))
    assert counted == [[GOOD]] * 3


def test_a_removed_file_leaves_after_a_blink():
    counted, recheck = history((0, [GOOD]), (10, []))
    assert counted[-1] == [GOOD] and 0 < recheck < 2 * GONE_HOLD
    counted, recheck = history((0, [GOOD]), (10, []), (10 + GONE_HOLD, []))
    assert (counted[-1], recheck) == ([], None)


def test_a_broken_file_keeps_its_last_good_content_for_a_moment_then_shows_its_problem():
    start = [(0, [GOOD]), (10, [BROKEN])]
    counted, recheck = history(*start)
    assert counted[-1] == [GOOD] and recheck == BROKEN_HOLD
    assert history(*start, (10.5, [BETTER])) == ([[GOOD], [GOOD], [BETTER]], None)
    assert history(*start, (10.5, [BROKEN]), (10 + BROKEN_HOLD, [BROKEN])) == ([[GOOD]] * 3 + [[BROKEN]], None)


def test_a_broken_file_that_goes_or_heals_later():
    start = [(0, [GOOD]), (10, [BROKEN]), (12, [BROKEN])]
    assert history(*start, (13, [])) == ([[GOOD], [GOOD], [BROKEN], []], None)
    assert history(*start, (13, [GOOD]), (14, [BROKEN]))[0][-1] == [GOOD]  # a new hold


def test_a_new_file_may_take_a_moment_to_become_whole():
    assert history((0, [BROKEN]), (0.2, [GOOD]))[0] == [[], [GOOD]]
    assert history((0, [BROKEN]), (BROKEN_HOLD, [BROKEN]))[0] == [[], [BROKEN]]
