"""What the command line is told over the local socket: plain JSON rows, made from what the room knows."""

from __future__ import annotations

import json
from typing import Any

from kubelet_mp.model import clock
from kubelet_mp.rooms.http.state import PodView, State

Json = dict[str, Any]


def pods(state: State, node: str, monotonic: float, wall: float) -> Json:
    """All pods, the manifests that cannot be used, names of pods that are gone, and what hinders everything."""
    views = state.pods()
    known = {(view.namespace, view.name) for view in views}
    gone = {(t.namespace, t.name) for t in state.timelines()} - known
    return {
        "node": node,
        "pods": [row(view, monotonic, wall) for view in views],
        "gone": [{"namespace": namespace, "name": name} for namespace, name in sorted(gone)],
        "problems": problems(state),
        "obstacles": obstacles(state),
    }


def why(state: State, namespace: str, name: str, monotonic: float, wall: float) -> Json | None:
    """Everything about one pod; None if nothing is known of that name."""
    view = state.pod(namespace, name)
    stories = state.timelines(namespace, name)
    mine = [p for p in problems(state) if p["pod"] == f"{namespace}/{name}"]
    if view is None and not stories and not mine:
        return None
    return {
        "namespace": namespace,
        "name": name,
        "pod": row(view, monotonic, wall) if view else None,
        "status": view.pod().get("status", {}) if view else {},
        "timeline": [entry for story in stories for entry in json.loads(story.body)],
        "problems": mine,
        "obstacles": obstacles(state),
    }


def rooms(state: State) -> Json:
    """The process table; `age`: seconds since the supervisor told it."""
    table, age = state.rooms()
    fields = ("room", "pid", "incarnation", "restarts", "beat_age", "up", "waiting", "last_exit")
    return {"age": age, "rooms": [{name: getattr(room, name) for name in fields} for room in table]}


def problems(state: State) -> list[Json]:
    return [{"origin": p.origin, "problem": p.problem, "other": p.other, "pod": p.pod} for p in state.problems()]


def obstacles(state: State) -> list[str]:
    """What keeps the whole node from working, one sentence each."""
    found = []
    runtime, relist = state.runtime, state.relist
    if (runtime.observed or runtime.message) and not runtime.ready:
        found.append(f"the container runtime is not ready: {runtime.message}")
    elif runtime.observed and not runtime.network_ready:
        found.append(f"the pod network is not ready: {runtime.network_message}")
    if relist is not None and not relist.healthy:
        found.append(relist.problem)
    return found


def row(view: PodView, monotonic: float, wall: float) -> Json:
    """One line of `kubelet-mp pods`; `age` and `waiting_seconds` in seconds, None where unknown."""
    pod = view.pod()
    status = pod.get("status", {})
    ready, total, restarts = _counts(pod)
    return {
        "uid": view.uid,
        "namespace": view.namespace,
        "name": view.name,
        "phase": status.get("phase", ""),
        "state": pod_state(pod),
        "ready": f"{ready}/{total}",
        "restarts": restarts,
        "age": _age(pod, wall),
        "ip": status.get("podIP", ""),
        "source": view.source,
        "waiting_for": view.waiting_for,
        "waiting_seconds": max(0.0, monotonic - view.since) if view.waiting_for and view.since else None,
    }


def _counts(pod: Json) -> tuple[int, int, int]:
    """(ready, all, restarts) of the containers that serve: regular ones and sidecars."""
    spec, status = pod.get("spec", {}), pod.get("status", {})
    sidecars = {c["name"] for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
    states = list(status.get("containerStatuses") or ())
    states += [s for s in status.get("initContainerStatuses") or () if s["name"] in sidecars]
    ready = sum(bool(s.get("ready")) for s in states)
    return ready, len(spec.get("containers") or ()) + len(sidecars), sum(s.get("restartCount", 0) for s in states)


def pod_state(pod: Json) -> str:
    """The one word that says most: a container's trouble, else the pod's reason, else its phase."""
    status = pod.get("status", {})
    for kind, prefix in (("initContainerStatuses", "Init:"), ("containerStatuses", "")):
        for container in status.get(kind) or ():
            if word := _trouble(container.get("state") or {}):
                return prefix + word
    return status.get("reason") or status.get("phase", "")


def _trouble(state: Json) -> str:
    waiting, ended = state.get("waiting"), state.get("terminated")
    if waiting and waiting.get("reason") not in (None, "", "PodInitializing", "ContainerCreating"):
        return str(waiting["reason"])
    if ended and ended.get("exitCode"):
        return ended.get("reason") or f"ExitCode:{ended['exitCode']}"
    return ""


def _age(pod: Json, wall: float) -> float | None:
    meta = pod.get("metadata", {})
    seen = (meta.get("annotations") or {}).get("kubernetes.io/config.seen", "")
    for text in (meta.get("creationTimestamp"), seen, pod.get("status", {}).get("startTime")):
        if text:
            try:
                return max(0.0, wall - clock.parse_rfc3339(text) / clock.NS)
            except ValueError:
                continue
    return None
