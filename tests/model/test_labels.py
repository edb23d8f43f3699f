from typing import Any

import pytest

from kubelet_mp.model.labels import selects

LABELS = {"a": "1", "b": "2"}


@pytest.mark.parametrize(("selector", "fits"), [
    (None, False),
    ({}, True),
    ({"matchLabels": {"a": "1"}}, True),
    ({"matchLabels": {"a": "1", "c": ""}}, False),
    ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["0", "1"]}]}, True),
    ({"matchExpressions": [{"key": "c", "operator": "In", "values": ["1"]}]}, False),
    ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
    ({"matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["1"]}]}, True),
    ({"matchExpressions": [{"key": "b", "operator": "Exists"}]}, True),
    ({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}, False),
    ({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}, False),
])
def test_selectors(selector: dict[str, Any] | None, fits: bool):
    assert selects(selector, LABELS) is fits


def test_an_unknown_operator_is_refused():
    with pytest.raises(ValueError, match="'Near' is not a valid"):
        selects({"matchExpressions": [{"key": "a", "operator": "Near"}]}, LABELS)
