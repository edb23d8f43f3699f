"""From pleg: what the runtime has."""

from __future__ import annotations

from dataclasses import dataclass

from kubelet_mp.model.runtime import PodRuntime, RuntimeState
from kubelet_mp.wire.messages.base import Message, PodMessage


@dataclass(frozen=True, slots=True)
class PodRuntimeChanged(PodMessage):
    """The runtime's view of one pod changed, or was asked for (`PodRuntime.empty`: the pod is gone)."""

    runtime: PodRuntime


@dataclass(frozen=True, slots=True)
class RelistDone(Message):
    """A full listing, begun at monotonic `began`, saw these pod UIDs. `healthy`: it is not overdue.

    It follows the `PodRuntimeChanged` of every pod that the listing found changed, and is never sent before a
    listing has succeeded. While listings fail it is repeated with `problem` and the old `began`.
    """

    began: float
    uids: frozenset[str]
    healthy: bool = True
    problem: str = ""  # "PLEG is not healthy: …" text


@dataclass(frozen=True, slots=True)
class RuntimeStateChanged(Message):
    """Health and identity of the runtime (every 5 s where changed, and on replay)."""

    state: RuntimeState


@dataclass(frozen=True, slots=True)
class RelistPod(PodMessage):
    """Order to pleg: look at this pod now and send `PodRuntimeChanged` even if nothing changed."""
