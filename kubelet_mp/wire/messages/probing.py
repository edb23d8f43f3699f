"""From and to probes."""

from __future__ import annotations

from dataclasses import dataclass

from kubelet_mp.wire.messages.base import PodMessage


@dataclass(frozen=True, slots=True)
class ProbeResult(PodMessage):
    """A changed probe verdict. `kind`: liveness, readiness, startup; `result`: success, failure, unknown."""

    container: str
    container_id: str
    kind: str
    result: str
    message: str = ""

    def key(self) -> str:
        return f"{self.uid}/{self.container}/{self.kind}"


@dataclass(frozen=True, slots=True)
class ProbeNow(PodMessage):
    """Order to probes: run the readiness probe of this container at once."""

    container: str

    def key(self) -> str:
        return f"{self.uid}/{self.container}"
