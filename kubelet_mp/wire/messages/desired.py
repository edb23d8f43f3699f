"""From sources: what is wanted."""

from __future__ import annotations

from dataclasses import dataclass

from kubelet_mp.wire.messages.base import Message, Pod, PodMessage


@dataclass(frozen=True, slots=True)
class DesiredPod(PodMessage):
    """The newest desired state of a pod; `pod` None: no source wants it any more."""

    pod: Pod | None
    source: str  # file, http, api


@dataclass(frozen=True, slots=True)
class DesiredSet(Message):
    """All desired pod UIDs. `ready`: every configured source has reported at least once.

    It follows the `DesiredPod`s that it counts; a pod that is not in it is not wanted. Nothing may be
    cleaned up before `ready`.
    """

    uids: frozenset[str]
    ready: bool


@dataclass(frozen=True, slots=True)
class SourceProblem(Message):
    """A manifest that cannot be used, or (with `problem` "") can be used again.

    `origin` is the file path or URL; `other` names the second file of a duplicate.
    """

    origin: str
    problem: str
    other: str = ""
    pod: str = ""  # namespace/name where known

    def key(self) -> str:
        return self.origin


@dataclass(frozen=True, slots=True)
class MirrorPod(PodMessage):
    """The API server's copy of a static pod, as it is there; `mirror` None: it is gone.

    `uid` is the mirror's own, `name` the full name namespace/name, which is that of the static pod. A mirror is
    never a desired pod.
    """

    name: str
    mirror: Pod | None

    def key(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class MirrorSet(Message):
    """Full names of all mirror pods that the API server has of this node, after the `MirrorPod`s it counts.

    Sent only once the API server has been listed: before the first one, nobody knows which mirrors there are.
    """

    names: frozenset[str]
