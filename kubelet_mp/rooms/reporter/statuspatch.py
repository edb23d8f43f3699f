"""What has to be written so that the API server has a pod's status. Pure.

Source: Kubernetes 1.37 pkg/kubelet/status (status_manager.go), pkg/util/pod; the merge keys of core/v1 PodStatus.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubelet_mp.model.phase import TERMINAL
from kubelet_mp.model.podupdate import FOREIGN

Status = Mapping[str, Any]

OWNED = frozenset({
    "PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready", "PodResizePending",
    "PodResizeInProgress", "AllContainersRestarting",
})
"""Conditions that nobody else writes: one that is no longer computed is taken away."""
_MERGED = ("podIPs", "hostIPs")  # lists that a strategic patch would merge by ip
_DROPPED = ("message", "reason", "containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses", "resize")
"""Fields of the kubelet's that may go away again."""
_SHARED = "DisruptionTarget"
"""A condition that others write as well: ours goes out with the terminal phase, and is nobody's to take away."""


def told(want: Status, have: Status, terminal: bool, *, static: bool = False) -> dict[str, Any]:
    """The status to show: a terminal phase waits until no container runs, and never goes back.

    Of the rest, only what is ours to write: what others wrote may be newer than what was known when `want` was
    computed. want: as computed; have: as the API server has it; terminal: no container runs and none will.
    static: it is a mirror's, whose pod, once rejected, may be admitted after all.
    """
    shown = {name: value for name, value in want.items() if name not in FOREIGN}
    phase, before = want.get("phase"), have.get("phase")
    ends = phase in TERMINAL and before not in TERMINAL
    if (before in TERMINAL and phase != before and not static) or (ends and not terminal):
        shown |= {name: have.get(name) for name in ("phase", "reason", "message")}
        shown["phase"] = before or "Pending"
    ours = OWNED | {_SHARED} if ends and terminal else OWNED
    if "conditions" in want:
        shown["conditions"] = [one for one in _conditions(want) if one["type"] in ours]
    for name in ("initContainerStatuses", "containerStatuses"):
        if want.get(name):
            shown[name] = _not_back(want[name], have.get(name) or ())
    generation = max(int(want.get("observedGeneration") or 0), int(have.get("observedGeneration") or 0))
    shown["observedGeneration"] = generation or None
    return {name: value for name, value in shown.items() if value is not None}


def _not_back(want: Iterable[Status], have: Iterable[Status]) -> list[Status]:
    """An instance that has ended does not run again: whoever shows it so has seen less than was told."""
    ended = {one.get("containerID"): one for one in have if (one.get("state") or {}).get("terminated")}
    return [ended[one["containerID"]] if "running" in (one.get("state") or {}) and one.get("containerID") in ended
            else one for one in want]


def patch(want: Status, have: Status) -> dict[str, Any]:
    """The strategic merge patch of `status`, empty if there is nothing to write."""
    changed: dict[str, Any] = {}
    for name, value in want.items():
        if name == "conditions" or _plain(value) == _plain(have.get(name)):
            continue
        changed[name] = [{"$patch": "replace"}, *value] if name in _MERGED and have.get(name) else value
    changed |= {name: None for name in _DROPPED if have.get(name) is not None and want.get(name) is None}
    conditions = _condition_changes(_conditions(want), _conditions(have))
    return changed | ({"conditions": conditions} if conditions else {})


def _condition_changes(want: Iterable[Status], have: Iterable[Status]) -> list[dict[str, Any]]:
    """An entry for each condition that differs; a transition that was told already keeps its time."""
    known = {one["type"]: _plain(one) for one in have}
    wanted = {one["type"]: one for one in want}
    found = []
    for kind, one in wanted.items():
        old = known.get(kind)
        new = dict(one)
        if old is not None and old.get("status") == one.get("status") and "lastTransitionTime" in old:
            new["lastTransitionTime"] = old["lastTransitionTime"]
        if old != _plain(new):
            gone = {name: None for name in (old or {}) if name not in _plain(new)}
            found.append(new | gone)
    lost = sorted((known.keys() & OWNED) - wanted.keys())
    return found + [{"$patch": "delete", "type": kind} for kind in lost]


def _conditions(status: Status) -> list[dict[str, Any]]:
    return list(status.get("conditions") or [])


def _plain(value: Any) -> Any:
    """Without what says nothing: nulls and empty collections inside objects, as the API server drops them."""
    if isinstance(value, Mapping):
        inner = {name: _plain(one) for name, one in value.items()}
        return {name: one for name, one in inner.items() if one not in (None, {}, [], "")}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
