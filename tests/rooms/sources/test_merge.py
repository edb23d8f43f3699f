"""The merge as a state machine: one pod a name, nothing lost, the newest state told once."""

from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.rooms.sources.merge import BY_NAME, Merger, full_name
from kubelet_mp.rooms.sources.source import Item, Reading
from kubelet_mp.wire.messages import DesiredPod, DesiredSet, SourceProblem


def pod(name, uid="", seen="T", **spec):
    return {"metadata": {"name": name, "namespace": "default", "uid": uid or f"uid-{name}",
                         "annotations": {"kubernetes.io/config.seen": seen}}, "spec": spec}


def reading(source="file", ready=True, **items):
    """items: origin → a list of pods, or a problem."""
    made = {
        origin: Item(origin, problem=value) if isinstance(value, str) else Item(origin, tuple(value))
        for origin, value in items.items()
    }
    return Reading(source, made, ready)


def told(messages):
    """The messages in short form."""
    short = []
    for message in messages:
        if isinstance(message, DesiredPod):
            short.append(("pod" if message.pod else "gone", message.uid))
        elif isinstance(message, DesiredSet):
            short.append(("set", *sorted(message.uids), message.ready))
        else:
            short.append(("problem" if message.problem else "healed", message.origin, message.other))
    return short


def test_a_pod_comes_changes_and_goes():
    merger = Merger(["file"])
    assert told(merger.apply(reading(a=[pod("x", "1")]))) == [("pod", "1"), ("set", "1", True)]
    assert merger.apply(reading(a=[pod("x", "1", seen="later")])) == []
    assert told(merger.apply(reading(a=[pod("x", "1", hostPID=True)]))) == [("pod", "1")]
    assert told(merger.apply(reading(a=[pod("x", "2")]))) == [("gone", "1"), ("pod", "2"), ("set", "2", True)]
    assert told(merger.apply(reading())) == [("gone", "2"), ("set", True)]


def test_nothing_is_ready_before_every_source_has_spoken():
    merger = Merger(["file", "http"])
    assert told(merger.apply(reading(a=[pod("x")]))) == [("pod", "uid-x"), ("set", "uid-x", False)]
    assert told(merger.apply(reading("http", ready=False))) == []
    assert told(merger.apply(reading("http"))) == [("set", "uid-x", True)]
    assert Merger([]).ready


def test_an_empty_source_is_told_too():
    assert told(Merger(["file"]).apply(reading())) == [("set", True)]


def test_the_incumbent_wins_and_the_duplicate_is_reported_with_both_names():
    merger = Merger(["file"])
    merger.apply(reading(b=[pod("x", "b")]))
    messages = merger.apply(reading(a=[pod("x", "a")], b=[pod("x", "b")]))
    assert told(messages) == [("problem", "a", "b")]
    assert messages[0].problem == \
        'pod "default/x" is defined by "b" already; "a" is not used (remove one of them)'
    assert messages[0].pod == "default/x"
    assert merger.apply(reading(a=[pod("x", "a")], b=[pod("x", "b")])) == []
    # an edit of the incumbent does not give the name away
    assert told(merger.apply(reading(a=[pod("x", "a")], b=[pod("x", "b2")]))) == [
        ("gone", "b"), ("pod", "b2"), ("set", "b2", True)]
    # when it goes, the other takes over
    assert told(merger.apply(reading(a=[pod("x", "a")]))) == [
        ("gone", "b2"), ("pod", "a"), ("set", "a", True), ("healed", "a", "")]


def test_among_newcomers_the_older_then_the_first_by_name_wins():
    def winner(**ages):
        merger = Merger(["file"])
        items = {origin: Item(origin, (pod("x", origin),), age=age) for origin, age in ages.items()}
        return told(merger.apply(Reading("file", items)))[0]

    assert winner(a=2.0, b=1.0) == ("pod", "b")
    assert winner(b=1.0, a=1.0) == ("pod", "a")


def test_files_go_before_urls_and_one_uid_is_used_once():
    merger = Merger(["file", "http"])
    merger.apply(reading("http", u=[pod("x", "h"), pod("y", "same")]))
    assert told(merger.apply(reading(a=[pod("x", "f"), pod("z", "same")]))) == [
        ("set", "h", "same", True), ("problem", "a", "u")]
    merger = Merger(["file", "http"])
    merger.apply(reading(a=[pod("x", "f")]))
    assert told(merger.apply(reading("http", u=[pod("x", "h")])))[-1] == ("problem", "u", "a")


def test_a_mirror_pod_of_the_api_server_may_have_the_name_of_its_static_pod():
    merger = Merger(["file", "api"])
    merger.apply(reading(a=[pod("x", "s")]))
    assert told(merger.apply(reading("api", **{"": [pod("x", "m")]}))) == [("pod", "m"), ("set", "m", "s", True)]


def test_problems_come_once_change_and_heal():
    merger = Merger(["file"])
    assert told(merger.apply(reading(a="bad"))) == [("set", True), ("problem", "a", "")]
    assert merger.apply(reading(a="bad")) == []
    assert told(merger.apply(reading(a="worse"))) == [("problem", "a", "")]
    assert told(merger.apply(reading(a=[]))) == [("healed", "a", "")]


def test_a_url_keeps_its_pods_while_it_has_a_problem():
    merger = Merger(["http"])
    merger.apply(reading("http", u=[pod("x")]))
    item = Item("u", (pod("x"),), problem="down")
    assert told(merger.apply(Reading("http", {"u": item}))) == [("problem", "u", "")]


def test_everything_is_the_pods_the_set_and_the_problems():
    merger = Merger(["file"])
    merger.apply(reading(a=[pod("x")], b=[pod("x", "2")], c="bad"))
    assert told(merger.everything()) == [
        ("pod", "uid-x"), ("set", "uid-x", True), ("problem", "c", ""), ("problem", "b", "a")]


names = st.sampled_from(["x", "y"])
pods = st.lists(st.builds(pod, names, st.sampled_from("123456"), st.just("T")), max_size=2)
items = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.one_of(pods, st.just("bad")), max_size=3)
readings = st.lists(st.tuples(st.sampled_from(["file", "http", "api"]), items), max_size=8)


@given(readings)
def test_whatever_the_sources_say(steps):
    merger, known, problems, last = Merger(["file", "http", "api"]), {}, {}, {}
    for source, said in steps:
        said = {f"{source}-{origin}": value for origin, value in said.items()}
        last[source] = said
        uids = None
        for message in merger.apply(reading(source, **said)):
            if isinstance(message, DesiredPod) and message.pod is None:
                assert known.pop(message.uid)
            elif isinstance(message, DesiredPod):
                known[message.uid] = message
            elif isinstance(message, DesiredSet):
                uids = message.uids
            elif isinstance(message, SourceProblem):
                problems[message.origin] = message.problem
        assert uids is None or uids == known.keys()
        _check(merger, known, problems, last)


@given(st.lists(st.sets(st.sampled_from("abc")), max_size=8))
def test_a_pod_stays_with_its_file_as_long_as_that_defines_it(steps):
    merger, holder = Merger(["file"]), None
    for origins in steps:
        merger.apply(reading(**{origin: [pod("x", f"uid-{origin}")] for origin in origins}))
        (desired,) = [m.uids for m in merger.everything() if isinstance(m, DesiredSet)]
        if holder not in origins:
            holder = min(origins, default=None)
        assert desired == ({f"uid-{holder}"} if holder else set())


def _check(merger, known, problems, last):
    static = [full_name(message.pod) for message in known.values() if message.source in BY_NAME]
    assert len(static) == len(set(static))
    claimed = {
        (source, p["metadata"]["name"], p["metadata"]["uid"])
        for source, said in last.items() for value in said.values() if isinstance(value, list) for p in value
    }
    now = {(m.source, m.pod["metadata"]["name"], m.uid) for m in known.values()}
    assert now <= claimed  # nothing is invented
    taken = {name for source, name, _ in now if source in BY_NAME}
    for source, name, uid in claimed - now:  # what is left out has a reason, and the reason is told
        assert uid in known or (source in BY_NAME and name in taken)
        assert any(problems.get(origin) for origin in last[source])
    replayed = merger.everything()
    assert {m.uid: m.pod for m in replayed if isinstance(m, DesiredPod)} == {m.uid: m.pod for m in known.values()}
    assert {m.origin for m in replayed if isinstance(m, SourceProblem)} == {o for o, p in problems.items() if p}
