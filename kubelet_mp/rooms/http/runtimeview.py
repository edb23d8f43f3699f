"""What the room asks the runtime itself, on demand: where a log is, and which pods really run.

The channel is opened by the first question: most nodes are never asked, and it costs memory.
"""

from __future__ import annotations

from typing import Any

from kubelet_mp.host.cri import Runtime
from kubelet_mp.model.runtime import State
from kubelet_mp.rooms.http.podlogs import Located


class RuntimeView:
    """Usable from any thread."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def locate(self, container_id: str) -> Located:
        """Raises RuntimeCallError."""
        found = self._runtime.container_status(container_id)
        return Located(found.log_path, found.state is State.RUNNING)

    def running(self) -> list[dict[str, Any]]:
        """Pods with at least one running container: names, uid, containers. Raises RuntimeCallError."""
        boxes = {box.id: box for box in self._runtime.list_sandboxes()}
        pods: dict[str, dict[str, Any]] = {}
        for container in self._runtime.list_containers():
            box = boxes.get(container.sandbox_id)
            if box is None or container.state is not State.RUNNING:
                continue
            pod = pods.setdefault(box.uid, {
                "metadata": {"name": box.name, "namespace": box.namespace, "uid": box.uid},
                "spec": {"containers": []},
                "status": {},
            })
            pod["spec"]["containers"].append({"name": container.name, "image": container.image, "resources": {}})
        return sorted(pods.values(), key=lambda pod: (pod["metadata"]["namespace"], pod["metadata"]["name"]))
