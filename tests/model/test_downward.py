from __future__ import annotations

import pytest

from kubelet_mp.model.downward import format_map, metadata_value
from kubelet_mp.model.gotext import go_json, go_quote

POD = {"metadata": {"name": "p", "labels": {"b": "2", "a": "x\ny"}, "annotations": {"k": 'say "hi"'}}}


def test_whole_maps_are_sorted_and_quoted():
    assert metadata_value("metadata.labels", POD) == 'a="x\\ny"\nb="2"'
    assert metadata_value("metadata.annotations", POD) == 'k="say \\"hi\\""'
    assert format_map({}) == ""


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a", '"a"'),
        ("\t\\", '"\\t\\\\"'),
        ("é", '"é"'),
        ("\x00\x7f", '"\\x00\\x7f"'),
        ("\u200b", '"\\u200b"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_go_quote(text, quoted):
    assert go_quote(text) == quoted


def test_go_json():
    assert go_json({"b": "<a&b>", "a": ["é\u2028"]}) == '{"b":"\\u003ca\\u0026b\\u003e","a":["é\\u2028"]}'
