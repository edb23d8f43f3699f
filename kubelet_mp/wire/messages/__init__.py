"""The messages between rooms: frozen, slotted, plain data.

A *fact* says what a room knows (`RelistDone`), an *order* what another room shall do (`EnsurePodCgroup`).
`key()` names what the message is about: of two messages of one type with the same key only the newest is
kept for a room that is busy. A room that starts is told nothing by memory of the supervisor: each producer
sees `RoomUp` and sends its facts again to that room alone (`Room.replay`).
"""

from kubelet_mp.wire.messages.base import Message, Pod, PodMessage
from kubelet_mp.wire.messages.desired import DesiredPod, DesiredSet, MirrorPod, MirrorSet, SourceProblem
from kubelet_mp.wire.messages.podwork import (
    AdmittedSet,
    PodAdmitted,
    PodFinished,
    PodForgotten,
    PodStatus,
    PodStopped,
    PodStopping,
    StatusSet,
)
from kubelet_mp.wire.messages.probing import ProbeNow, ProbeResult
from kubelet_mp.wire.messages.reports import Event, Metrics, Timeline, TimelineEntry
from kubelet_mp.wire.messages.runtime import PodRuntimeChanged, RelistDone, RelistPod, RuntimeStateChanged
from kubelet_mp.wire.messages.supervision import Health, RoomHealth, RoomUp
from kubelet_mp.wire.messages.surroundings import (
    NodeFacts,
    NodeImages,
    NodeObject,
    PodCgroupReady,
    PodFreed,
    PodVolumesReady,
)

__all__ = [
    "AdmittedSet",
    "DesiredPod",
    "DesiredSet",
    "Event",
    "Health",
    "Message",
    "Metrics",
    "MirrorPod",
    "MirrorSet",
    "NodeFacts",
    "NodeImages",
    "NodeObject",
    "Pod",
    "PodAdmitted",
    "PodCgroupReady",
    "PodFinished",
    "PodForgotten",
    "PodFreed",
    "PodMessage",
    "PodRuntimeChanged",
    "PodStatus",
    "PodStopped",
    "PodStopping",
    "PodVolumesReady",
    "ProbeNow",
    "ProbeResult",
    "RelistDone",
    "RelistPod",
    "RoomHealth",
    "RoomUp",
    "RuntimeStateChanged",
    "SourceProblem",
    "StatusSet",
    "Timeline",
    "TimelineEntry",
]
