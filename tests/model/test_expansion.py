from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.model.expansion import expand, expand_all, expand_from, missing_names

SCOPE = {"A": "one", "B": "$(A)", "EMPTY": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("$(A)", "one"),
        ("$(A)$(A)x", "oneonex"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$one"),
        ("$$$$(A)", "$$(A)"),
        ("$(B)", "$(A)"),
        ("$(EMPTY)|", "|"),
        ("$(NOPE)", "$(NOPE)"),
        ("$(A", "$(A"),
        ("$($(A)", "$($(A)"),
        ("$(a$$b", "$(a$b"),
        ("${A} $A $", "${A} $A $"),
        ("$()x$$y", "$()x$y"),
        ("a$$b", "a$b"),
        ("$A$$", "$A$"),
        ("$(A B)", "$(A B)"),
    ],
)
def test_rules(text, expected):
    assert expand_from(text, SCOPE) == expected


def reference(text, value_of):
    """The rules read one character at a time."""
    out, at = "", 0
    while at < len(text):
        end = text.find(")", at)
        if text.startswith("$$", at):
            out, at = out + "$", at + 2
        elif text.startswith("$(", at) and end > 0:
            value = value_of(text[at + 2 : end])
            out, at = out + (text[at : end + 1] if value is None else value), end + 1
        else:
            out, at = out + text[at], at + 1
    return out


@given(st.text(alphabet="$()AB \nx", max_size=40))
def test_agrees_with_a_plain_reading_of_the_rules(text):
    assert expand(text, SCOPE.get) == reference(text, SCOPE.get)


@given(st.text())
def test_any_text_without_dollar_signs_stays(text):
    assert expand_from(text.replace("$", ""), SCOPE) == text.replace("$", "")


def test_the_first_scope_that_has_the_name_wins():
    assert expand_from("$(A)$(Z)", {"A": "near"}, SCOPE, {"A": "far", "Z": "z"}) == "nearz"
    assert expand_all(["$(A)", "b"], SCOPE) == ["one", "b"]


def test_missing_names():
    assert missing_names("$(A)$(X)$$(Y)$(Z", SCOPE) == ["X"]
    assert missing_names("$(P)/$(Q)", SCOPE) == ["P", "Q"]
