"""Whether the API server, the agent and the runtime tell the same about every pod of a node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from integration.rig.agent import Agent
from integration.rig.cluster import Cluster
from integration.rig.console import RigError, poll

Pod = Mapping[str, Any]
_MIRROR = "kubernetes.io/config.mirror"
_UID = "io.kubernetes.pod.uid"
_NAME = "io.kubernetes.container.name"


def wait(cluster: Cluster, agent: Agent, seconds: float = 60) -> None:
    """Wait until all three agree. Raises RigError with what they disagree about otherwise."""
    if not poll(lambda: not disagreements(cluster, agent), seconds, every=0.5):
        lines = disagreements(cluster, agent)
        raise RigError(f"API server, agent and runtime disagree after {seconds:.0f} s:\n" + "\n".join(lines))


def disagreements(cluster: Cluster, agent: Agent) -> list[str]:
    """A line for each thing of this node's pods that one of the three tells differently, none when they agree."""
    path = f"/api/v1/pods?fieldSelector=spec.nodeName={agent.node}"
    running = [(one.labels[_UID], one.labels[_NAME], one.id) for one in agent.cri.containers(running=True)]
    return compare(cluster.get(path)["items"], agent.pods(), running)


def compare(api: Iterable[Pod], agent: Iterable[Pod], running: Iterable[tuple[str, str, str]]) -> list[str]:
    """`running` gives pod UID, container name and id of every running container of the runtime."""
    told, known = ({_identity(pod): pod for pod in pods} for pods in (api, agent))
    found = [f"{_title(told[uid])}: the agent does not know it" for uid in told.keys() - known.keys()]
    found += [f"{_title(known[uid])}: the API server does not know it" for uid in known.keys() - told.keys()]
    for uid in told.keys() & known.keys():
        found += [f"{_title(told[uid])}: {text}" for text in _differences(told[uid], known[uid])]
    return sorted(found + _containers(told, list(running)))


def _identity(pod: Pod) -> str:
    """The UID by which agent and runtime know a pod: of a mirror pod that of its manifest."""
    metadata = pod["metadata"]
    return str(metadata.get("annotations", {}).get(_MIRROR) or metadata["uid"])


def _title(pod: Pod) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _differences(api: Pod, agent: Pod) -> list[str]:
    pairs = [(field, api["status"].get(field), agent["status"].get(field)) for field in ("phase", "podIP")]
    return [f"{field} is {one!r} in the API and {two!r} in the agent" for field, one, two in pairs if one != two]


def _containers(told: Mapping[str, Pod], running: list[tuple[str, str, str]]) -> list[str]:
    shown = {(uid, *entry) for uid, pod in told.items() for entry in _shown_running(pod)}

    def words(key: tuple[str, str, str]) -> str:
        return f"{_title(told[key[0]]) if key[0] in told else key[0]}: {key[1]} ({key[2][:12]})"

    found = [f"{words(key)} does not run" for key in shown - {*running}]
    found += [f"{words(key)} runs, and the API does not say so" for key in {*running} - shown]
    times = Counter((uid, name) for uid, name, _ in running)
    return found + [f"{uid}: {name} runs {count} times" for (uid, name), count in times.items() if count > 1]


def _shown_running(pod: Pod) -> list[tuple[str, str]]:
    """Name and id of the containers that run by a pod's status."""
    status = pod["status"]
    listed = (status.get("initContainerStatuses") or []) + (status.get("containerStatuses") or [])
    running = [one for one in listed if "running" in one.get("state", {})]
    return [(one["name"], one["containerID"].partition("://")[2]) for one in running]
