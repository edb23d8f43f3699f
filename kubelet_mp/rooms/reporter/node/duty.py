"""The duty that keeps the Node object, and tells the other rooms what it says."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from kubelet_mp.host import procfs
from kubelet_mp.rooms.reporter.duty import Api, DutyContext
from kubelet_mp.rooms.reporter.node import conditions
from kubelet_mp.rooms.reporter.node.lease import LeaseKeeper
from kubelet_mp.rooms.reporter.node.seen import Host, Seen, observe
from kubelet_mp.rooms.reporter.node.worker import PATIENCE, Node, StatusWorker
from kubelet_mp.wire.messages import Message, NodeObject


def read_host() -> Host:
    """Raises FileError if /proc cannot be read."""
    return Host(procfs.identity(), procfs.machine().swap)


class NodeKeeper:
    """Three threads: the status, the lease, and a watch of the Node.

    patience: s that the first pass waits for what the other rooms have to tell.
    """

    def __init__(
        self, context: DutyContext, host: Callable[[], Host] = read_host, patience: float = PATIENCE
    ) -> None:
        self._context, self._name = context, context.settings.node_name
        self._seen, self._ready = Seen(), False
        self._lock = threading.Lock()
        self._node: Node | None = None
        self._watch: Any = None
        self._lease = LeaseKeeper(context, context.fail)
        self._worker = StatusWorker(
            context, host(), took=self._take, connected=self._start_watch, crashed=context.fail,
            patience=patience)

    # ---- on the main thread ----

    def start(self) -> None:
        self._context.node_event("Normal", "Starting", "Starting kubelet.")
        self._lease.start()
        self._worker.start()

    def close(self) -> None:
        self._lease.close()
        self._worker.close()
        if self._watch is not None:
            self._watch.stop()

    def handle(self, message: Message) -> None:
        seen = observe(self._seen, message)
        if seen is self._seen:
            return
        storage = self._context.settings.kubelet.local_storage_capacity_isolation
        before, self._seen = self._seen, seen
        was, self._ready = self._ready, not any(conditions.problems(seen, storage))
        urgent = seen.facts is not before.facts or seen.complete != before.complete or was != self._ready
        self._worker.give(seen, now=urgent)

    def replay(self, room: str) -> None:
        node = self._node
        if node is not None:
            self._context.send(NodeObject(_told(node)), to=room)

    # ---- from the threads ----

    def _start_watch(self, api: Api) -> None:
        from kubelet_mp.host.kubeapi import KubeApi, ListWatch

        assert isinstance(api, KubeApi)
        self._watch = ListWatch(
            api, "/api/v1/nodes", params={"fieldSelector": f"metadata.name={self._name}"}, on_list=self._listed,
            on_event=self._changed, on_problem=self._problem, name="node", on_crash=self._watch_crashed)
        self._watch.start()

    def _listed(self, nodes: list[Node]) -> None:
        if nodes:
            self._take(nodes[0])
        elif self._node is not None:
            self._gone()

    def _changed(self, kind: str, node: Node) -> None:
        if kind == "DELETED":
            self._gone()
        else:
            self._take(node)

    def _take(self, node: Node) -> None:
        """Keep and tell a Node that is newer than the one known."""
        with self._lock:
            if self._node is not None and not _newer(node, self._node):
                return
            self._node = node
            self._worker.know(node)
            self._lease.know(node["metadata"]["uid"])
            self._context.send(NodeObject(_told(node)))

    def _gone(self) -> None:
        """The other rooms go on with the Node as it was."""
        self._context.log.warning("the Node was deleted", node=self._name)
        self._worker.know(None)

    def _problem(self, text: str) -> None:
        if text:
            self._context.log.warning("cannot watch the Node; trying on", node=self._name, err=text)

    def _watch_crashed(self, error: BaseException) -> None:
        self._context.fail(error)


def _newer(node: Node, known: Node) -> bool:
    """By resourceVersion, which is a number that grows; another one that is none is taken for newer."""
    versions = [str(one["metadata"].get("resourceVersion", "")) for one in (node, known)]
    if all(version.isdigit() for version in versions):
        return int(versions[0]) > int(versions[1])
    return versions[0] != versions[1]


def _told(node: Node) -> Node:
    """Without what is long and concerns no other room."""
    meta = {name: value for name, value in node["metadata"].items() if name != "managedFields"}
    status = {name: value for name, value in (node.get("status") or {}).items() if name != "images"}
    return {**node, "metadata": meta, "status": status}
