"""The conditions of the Node and the events about their changes. Pure.

Source: Kubernetes 1.37 pkg/kubelet/nodestatus/setters.go and pkg/kubelet/runtime.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kubelet_mp.rooms.reporter.node.seen import Seen

Condition = dict[str, Any]
NOT_YET = "container runtime status check may not have completed yet"
DOWN = "container runtime is down"
_SILENT = "unknown"  # how the network's message begins when the runtime does not tell
_PRESSURES = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_EVENTS = {"MemoryPressure": "NodeHasSufficientMemory", "DiskPressure": "NodeHasNoDiskPressure",
           "PIDPressure": "NodeHasSufficientPID"}


def conditions(seen: Seen, storage: bool) -> list[Condition]:
    """All that a kubelet reports, Ready last, without times. `storage`: ephemeral storage belongs to the capacity.

    Nothing here evicts pods, so no pressure is reported.
    """
    found = [_condition(kind, False, reason, message) for kind, reason, message in _PRESSURES]
    return [*found, ready(seen, storage)]


def ready(seen: Seen, storage: bool) -> Condition:
    """True, or False with all that is wrong."""
    wrong = list(dict.fromkeys(problems(seen, storage)))
    if not wrong:
        return _condition("Ready", True, "KubeletReady", "kubelet is posting ready status")
    text = wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]"
    return _condition("Ready", False, "KubeletNotReady", text)


def problems(seen: Seen, storage: bool) -> Iterator[str]:
    """Why the node cannot run pods, in upstream's order."""
    state = seen.runtime
    if state is None:
        yield NOT_YET
    elif not state.ready:
        yield _runtime(state.message)
    if seen.pleg:
        yield seen.pleg
    if state is not None and not state.network_ready and not state.network_message.startswith(_SILENT):
        yield f"container runtime network not ready: {state.network_message}"
    capacity = seen.facts.capacity if seen.facts else {}
    missing = [name for name in ("cpu", "memory", "pods", *(["ephemeral-storage"] if storage else ()))
               if name not in capacity]
    if missing:
        yield f"missing node capacity for resources: {', '.join(missing)}"


def _runtime(message: str) -> str:
    """The fixed texts stand alone: what the call failed with changes from one to the next and is in the log."""
    known = next((text for text in (NOT_YET, DOWN) if message.startswith(text)), "")
    return known or f"container runtime not ready: {message}"


def _condition(kind: str, holds: bool, reason: str, message: str) -> Condition:
    return {"type": kind, "status": "True" if holds else "False", "reason": reason, "message": message}


def stamp(found: Iterable[Condition], old: Iterable[Mapping[str, Any]], now: str) -> list[Condition]:
    """With times: a condition whose status is the old one keeps its transition. `now`: RFC 3339."""
    before = by_type(old)
    return [{**one, "lastHeartbeatTime": now, "lastTransitionTime": _transition(one, before.get(one["type"]), now)}
            for one in found]


def _transition(new: Condition, old: Mapping[str, Any] | None, now: str) -> str:
    kept = old is not None and old.get("status") == new["status"] and old.get("lastTransitionTime")
    return str(kept) if kept else now


def by_type(found: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    return {one["type"]: one for one in found}


def news(new: Sequence[Condition], old: Iterable[Mapping[str, Any]]) -> list[str]:
    """Reasons of the events about what changed; a first Ready is news only when it is True."""
    before = by_type(old)
    found = []
    for one in new:
        known = before.get(one["type"])
        if known is not None and known.get("status") == one["status"]:
            continue
        if one["type"] != "Ready":
            found.append(_EVENTS[one["type"]])
        elif one["status"] == "True":
            found.append("NodeReady")
        elif known is not None:
            found.append("NodeNotReady")
    return found
