"""What a newer object of a pod from the API server means: a change to act on, or an echo of our own writes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubelet_mp.model.conditions import OWNED
from kubelet_mp.model.phase import TERMINAL, kind, last_exit
from kubelet_mp.model.podspec import Pod

_BOOKKEEPING = ("resourceVersion", "managedFields", "selfLink")
FOREIGN = ("resourceClaimStatuses", "extendedResourceClaimStatus", "nominatedNodeName")
"""Status fields that others write and that are kept."""
Status = dict[str, Any]


def essence(pod: Pod) -> dict[str, Any]:
    """The object without its status and without what changes with each write."""
    meta = {name: value for name, value in (pod.get("metadata") or {}).items() if name not in _BOOKKEEPING}
    return {**{k: v for k, v in pod.items() if k != "status"}, "metadata": meta}


def changed(old: Pod, new: Pod) -> bool:
    """Whether spec, labels, annotations, deletion or the like differ."""
    return essence(old) != essence(new)


def was_admitted(status: Mapping[str, Any]) -> bool:
    """Whether the status tells of a pod that a kubelet took before."""
    if status.get("phase") == "Running":
        return True
    both = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return any(s.get("containerID") or kind(s) == "running" or last_exit(s) is not None for s in both)


def adopt(mine: Mapping[str, Any], told: Mapping[str, Any]) -> Status:
    """The status known of a pod, with what the API server says that only others can know.

    Without one of our own the API's is taken. A terminal phase there ends the pod here; conditions of other
    owners (readiness gates, disruption) are as in the API.
    """
    if not mine:
        return dict(told)
    own = [c for c in mine.get("conditions") or () if c["type"] in OWNED]
    names = {c["type"] for c in own}
    others = [dict(c) for c in told.get("conditions") or () if c["type"] not in names]
    result = {**mine, "conditions": own + others}
    if told.get("phase") in TERMINAL and mine.get("phase") not in TERMINAL:
        result = {k: v for k, v in result.items() if k not in ("reason", "message")}
        result.update({k: told[k] for k in ("phase", "reason", "message") if told.get(k)})
    return result


def foreign(told: Mapping[str, Any]) -> Status:
    """The status fields of other owners."""
    return {name: told[name] for name in FOREIGN if told.get(name)}
