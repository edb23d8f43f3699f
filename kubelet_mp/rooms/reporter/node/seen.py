"""What was seen of the node so far, from the messages of the other rooms. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kubelet_mp.host.procfs import Identity
from kubelet_mp.model.runtime import Image, RuntimeState
from kubelet_mp.wire.messages import Message, NodeFacts, NodeImages, RelistDone, RuntimeStateChanged

NEVER_LISTED = "PLEG is not healthy: pleg has yet to be successful"


@dataclass(frozen=True, slots=True)
class Host:
    """What does not change while the agent runs; `swap` in bytes."""

    identity: Identity
    swap: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """None for what nobody has told yet. `pleg`: why the PLEG is not healthy, "" when it is."""

    facts: NodeFacts | None = None
    runtime: RuntimeState | None = None
    pleg: str = NEVER_LISTED
    images: tuple[Image, ...] | None = None

    @property
    def complete(self) -> bool:
        """Whether all that decides on Ready was told once."""
        return self.facts is not None and self.runtime is not None and self.pleg != NEVER_LISTED


def observe(seen: Seen, message: Message) -> Seen:
    """`seen` with what the message tells; the same object if that is nothing."""
    match message:
        case NodeFacts():
            return replace(seen, facts=message)
        case RuntimeStateChanged():
            return replace(seen, runtime=message.state)
        case NodeImages():
            return replace(seen, images=message.images)
        case RelistDone() if message.problem != seen.pleg:
            return replace(seen, pleg=message.problem)
    return seen
