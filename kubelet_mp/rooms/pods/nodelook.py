"""A look at the Node object itself before a pod is rejected for the node's labels or taints.

The scheduler may have seen a new label before word of it came here, and a rejection is for good.
Source: Kubernetes 1.37 pkg/kubelet/lifecycle (predicates: the node is fetched synchronously).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubelet_mp.errors import ApiError
from kubelet_mp.model.admission import Rejection
from kubelet_mp.rooms.pods.env import Env
from kubelet_mp.rooms.pods.gate import Verdict
from kubelet_mp.rooms.pods.worker import Worker

_BY_NODE = ("NodeAffinity", "TaintToleration")


class NodeLook:
    """`took` is called on the main thread (by `post`) with the Node, None if it could not be read."""

    def __init__(self, env: Env, post: Callable[[Callable[[], None]], None],
                 took: Callable[[Worker, dict[str, Any] | None], None]) -> None:
        self._env, self._post, self._took = env, post, took

    def confirm(self, worker: Worker, verdict: Verdict) -> Verdict:
        """The verdict, or what has to happen before it counts."""
        if self._env.api is None or not isinstance(verdict, Rejection) or verdict.reason not in _BY_NODE:
            return verdict
        if worker.node_look == "done":
            return verdict
        if not worker.node_look:
            worker.node_look = "asked"
            self._env.pool.run(lambda: self._look(worker))
        return "a fresh look at the Node object"

    def _look(self, worker: Worker) -> None:
        try:
            node = self._env.api.get(f"/api/v1/nodes/{self._env.settings.node_name}")
        except ApiError:
            node = None  # what was known of it decides
        self._post(lambda: self._done(worker, node))

    def _done(self, worker: Worker, node: dict[str, Any] | None) -> None:
        worker.node_look = "done"
        self._took(worker, node)
