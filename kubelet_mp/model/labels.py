"""Label selectors (Kubernetes 1.37 apimachinery/pkg/apis/meta/v1, LabelSelectorAsSelector)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector selects an object with these labels; none selects nothing, an empty one everything.

    Raises ValueError for an operator that there is none of.
    """
    if selector is None:
        return False
    wanted = (selector.get("matchLabels") or {}).items()
    return (all(labels.get(key) == value for key, value in wanted)
            and all(_fits(one, labels) for one in selector.get("matchExpressions") or ()))


def _fits(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, operator, values = requirement["key"], requirement.get("operator"), requirement.get("values") or ()
    if operator == "In":
        return key in labels and labels[key] in values
    if operator == "NotIn":
        return labels.get(key) not in values
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    raise ValueError(f"{operator!r} is not a valid label selector operator")
