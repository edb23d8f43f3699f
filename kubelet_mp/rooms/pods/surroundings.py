"""What this room was last told of runtime and node, and what it lacks to go on. No effects here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubelet_mp.config import Settings
from kubelet_mp.model.admission import NodeOffer
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.runtime import RuntimeState
from kubelet_mp.rooms.pods import node
from kubelet_mp.rooms.pods.worker import Worker
from kubelet_mp.wire import messages as m


@dataclass(slots=True)
class Surroundings:
    """`listed`: begin of the newest full listing of the runtime. `node`: the Node object of the API server."""

    settings: Settings
    listed: float | None = None
    list_problem: str = ""
    state: RuntimeState | None = None
    facts: m.NodeFacts | None = None
    node: dict[str, Any] | None = None

    def take_node(self, found: dict[str, Any]) -> bool:
        """Whether something changed that matters here."""
        before, self.node = self.node, found
        return before is None or node.relevant(before) != node.relevant(found)

    def take_relist(self, message: m.RelistDone) -> bool:
        """Whether it is the first one, or listings began or ceased to fail."""
        changed = self.listed is None or bool(message.problem) != bool(self.list_problem)
        self.listed = message.began
        self.list_problem = "" if message.healthy else (message.problem or "PLEG is not healthy")
        return changed

    def view(self) -> NodeView:
        """Raises FileError if the configured resolver file cannot be read."""
        return node.read_view(self.settings, self.facts, self.state, self.node)

    def offer(self) -> NodeOffer:
        """Only once nothing is missing for an admission."""
        assert self.facts is not None
        return node.offer_of(self.settings, self.facts, self.state, self.node)

    def runtime_name(self) -> str:
        """The scheme of container ids, "" while it is not known."""
        return self.state.name if self.state else ""

    # ---- what is missing, "" for nothing ----

    def runtime_problem(self) -> str:
        if self.state is not None and not self.state.ready:
            return self.state.message or "not ready"
        if self.listed is None:
            return "pods were not listed yet"
        return "its health is not known yet" if self.state is None else self.list_problem

    def node_problem(self) -> str:
        return "" if self.facts is not None else "the node's facts"

    def network_problem(self) -> str:
        state = self.state
        return "" if state is None or state.network_ready else (state.network_message or "not ready")

    def admission_problem(self, worker: Worker) -> str:
        """A static pod does not wait for an API server that is away."""
        if self.listed is None:
            return f"runtime: {self.runtime_problem()}"
        if self.facts is None:
            return "the node's facts"
        away = self.node is None and not worker.static and not self.settings.standalone
        return "the Node object" if away else ""
