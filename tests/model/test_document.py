"""Documents read as the API's YAML reader reads them, and never at more cost than their length is worth."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.model.document import MAX_BYTES, DocumentError, load


@pytest.mark.parametrize(
    ("plain", "value"),
    [
        ("y", True), ("No", False), ("on", True), ("OFF", False), ("~", None), ("", None), ("Null", None),
        ("22:22", "22:22"), ("2020-01-01", "2020-01-01"), ("1:30:00", "1:30:00"),
        ("0o17", 15), ("017", 15), ("0x1F", 31), ("0b11", 3), ("-0x10", -16), ("+7", 7), ("1_000", 1000),
        ("08", 8.0), ("1e3", 1000.0), (".5", 0.5), ("1.", 1.0), ("1e999", "1e999"), ("._", "._"),
        ("9223372036854775808", 2**63), ("99999999999999999999", 1e20), ("5m", "5m"), ("0.5Gi", "0.5Gi"),
        ('"y"', "y"), ("'1'", "1"), ("!!str 1", "1"), ("!!int 1", 1), ("=", "="),
    ],
)
def test_scalars_mean_what_they_mean_to_the_api_server(plain, value):
    got = load(f"a: {plain}\n".encode()).value["a"]
    assert got == value and type(got) is type(value)


def test_keys_become_text():
    assert load(b"{1: a, true: b, 1.5: c, y: d}").value == {"1": "a", "true": "d", "1.5": "c"}


def test_json_and_yaml_give_the_same():
    value = {"a": [1, 2.5, True, None, "x"], "b": {"c": "é", "d": "😀"}}
    assert load(json.dumps(value).encode()).value == value
    text = json.dumps(value, ensure_ascii=False).encode()
    assert load(text).value == load(b"# yaml\n" + text).value == value


def test_a_byte_order_mark_and_leading_markers_are_fine():
    for data in (b"\xef\xbb\xbfa: 1", b"---\na: 1\n", b"--- \n---\na: 1\n---\n", b"# c\n%YAML 1.1\n---\na: 1\n...\n"):
        document = load(data)
        assert (document.value, document.warnings) == ({"a": 1}, [])


def test_a_second_document_is_not_used_and_that_is_said():
    document = load(b"a: 1\n---\nb: 2\n")
    assert document.value == {"a": 1}
    assert document.warnings == ["line 2, column 1: a second document begins here and is not used"]


def test_the_last_of_duplicate_keys_counts_and_is_named():
    document = load(b"spec:\n  containers:\n  - image: a\n    image: b\n")
    assert document.value == {"spec": {"containers": [{"image": "b"}]}}
    assert document.warnings == ["line 4, column 12: duplicate key spec.containers[0].image: the last one counts"]
    assert load(b'{"a": 1, "a": 2}').warnings == ["duplicate key 'a': the last one counts"]


def test_merge_keys_yield_to_what_is_written():
    text = b"base: &b {x: 1, w: 2}\nmore: &m {z: 3, x: 9}\nall: {w: 5, <<: [*b, *m]}\n"
    assert load(text).value["all"] == {"w": 5, "x": 1, "z": 3}
    assert load(b'a: {"<<": 1}').value == {"a": {"<<": 1}}


def test_an_alias_is_a_copy():
    value = load(b"a: &a {b: [1]}\nc: *a\n").value
    value["a"]["b"].append(2)
    assert value["c"] == {"b": [1]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"), (b" \n# only a comment\n", "is empty"), (b"---\n", "is empty"),
        (b"a: [b", "line [12], column [0-9]+: not valid YAML"), (b"a: b: c", "line 1, column 5: not valid YAML"),
        (b"a: 1\n\tb: 2", "line 2, column 1"), (b"ok: 1\nbad: \xff", "line 2: byte 0xff is not UTF-8"),
        (b"a: *x", "alias .*x refers to nothing"), (b"a: &a [*a]", "refers to nothing"),
        (b"a: !!python/object:os.system x", "not supported"), (b"a: !mine {}", "not supported"),
        (b"!!int x", "not supported"), (b"? [a]\n: b", "key must be text, not a list"),
        (b"? {a: b}\n: c", "key must be text"), (b"a: {<<: 3}", "takes a mapping"), (b"a: \x00", "not valid YAML"),
        (b"[" * 5000, "nested deeper"), (b"a: " + b"[" * 200 + b"]" * 200, "nested deeper"),
        (b'{"a":' * 5000 + b"1" + b"}" * 5000, "nested deeper"), (b"x" * (MAX_BYTES + 1), "larger than"),
    ],
)
def test_what_is_no_document_is_refused_with_its_place(data, message):
    with pytest.raises(DocumentError, match=message):
        load(data)


def test_aliases_cannot_multiply():
    lines = [b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [b"a%d: &a%d [%s]" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 12)]
    with pytest.raises(DocumentError, match="aliases repeat"):
        load(b"\n".join(lines))
    deep = [b"a0: &a0 " + b"[" * 60 + b"]" * 60, b"b: " + b"[" * 60 + b"*a0" + b"]" * 60]
    with pytest.raises(DocumentError, match="aliases repeat"):
        load(b"\n".join(deep))


def test_half_a_surrogate_pair_becomes_a_replacement_character():
    assert load(b'["\\ud800", "\\ud83d\\ude00", {"\\udfff": 1}]').value == ["�", "😀", {"�": 1}]


yamlish = st.lists(
    st.sampled_from(["a", ": ", "\n", "- ", "  ", "{", "}", "[", "]", ",", "&x ", "*x", "<<", "!!int ", "?", "|", ">",
                     "'", '"', "\\u", "d800", "---", "...", "%", "#", "\t", "1e9", "0x", "\x85", "é", "\x00", "~"]),
    max_size=40,
).map("".join)


@given(st.one_of(st.binary(max_size=200), yamlish.map(str.encode)))
def test_any_bytes_give_plain_values_or_a_document_error(data):
    try:
        value = load(data).value
    except DocumentError as error:
        assert str(error)
        return
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


@given(st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4), max_leaves=12,
).filter(lambda value: value is not None))
def test_json_round_trip(value):
    assert load(json.dumps({"v": value}).encode()).value == {"v": value}
