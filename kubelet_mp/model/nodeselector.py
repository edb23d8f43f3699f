"""Does a node match what a pod requires of it: nodeSelector, required node affinity, tolerations. Pure.

Source: Kubernetes 1.37 component-helpers/scheduling/corev1 (nodeaffinity, ToleratesTaint).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def selected(spec: Mapping[str, Any], labels: Mapping[str, str], node_name: str) -> bool:
    """Whether a pod with this spec accepts a node with these labels."""
    for key, value in (spec.get("nodeSelector") or {}).items():
        if labels.get(key) != value:
            return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(_term_matches(term, labels, node_name) for term in required.get("nodeSelectorTerms") or [])


def _term_matches(term: Mapping[str, Any], labels: Mapping[str, str], node_name: str) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False  # an empty term matches no node
    own = {"metadata.name": node_name}
    return all(_matches(e, labels) for e in expressions) and all(_matches(f, own) for f in fields)


def _matches(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement["key"])
    values = requirement.get("values") or []
    operator = requirement.get("operator")
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) == (operator == "Exists")
    if operator == "NotIn":
        return value not in values
    if value is None:
        return False
    if operator == "In":
        return value in values
    return _compares(str(operator), value, values)


def _compares(operator: str, value: str, values: Sequence[str]) -> bool:
    try:
        left, right = int(value), int(values[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right if operator == "Lt" else False


def untolerated(
    taints: Iterable[Mapping[str, Any]], tolerations: Sequence[Mapping[str, Any]], effect: str
) -> Mapping[str, Any] | None:
    """The first taint of that effect which none of the tolerations covers."""
    for taint in taints:
        if taint.get("effect") == effect and not any(_tolerates(one, taint) for one in tolerations):
            return taint
    return None


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """An empty effect or key of a toleration stands for all."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and (toleration.get("value") or "") == (taint.get("value") or "")
