"""The calls of a listing and of a look at one pod. Run in threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kubelet_mp.errors import RuntimeCallError, RuntimeNotFound
from kubelet_mp.model.runtime import Container, ContainerBrief, PodRuntime, Sandbox, SandboxBrief
from kubelet_mp.rooms.pleg import diff
from kubelet_mp.rooms.pleg.diff import NOTHING, PodBriefs, Seen


def list_all(runtime: Any) -> dict[str, PodBriefs]:
    """Everything, by pod UID. Raises RuntimeCallError."""
    return diff.group(runtime.list_sandboxes(), runtime.list_containers())


def look(
    runtime: Any, known: PodRuntime, now: Callable[[], float], listed: tuple[PodBriefs, float] | None, fresh: bool
) -> Seen:
    """The state of the pod `known`. `listed`: what a listing just told, and when that began; else one is made.

    fresh: ask for the status of what runs even if its state is the same. A failure is told in `Seen`.
    """
    began = listed[1] if listed else now()
    try:
        briefs = listed[0] if listed else _list_one(runtime, known.uid)
        boxes = [box for brief in briefs.sandboxes if (box := _sandbox(runtime, brief, known))]
        containers = [one for brief in briefs.containers if (one := _container(runtime, brief, known, fresh))]
    except RuntimeCallError as error:
        text = f"{error.method}: {error.message}" if error.method else error.message
        return Seen(NOTHING, replace(known, observed=began, error=text))
    return Seen(_without_gone(briefs, boxes, containers),
                diff.assemble(known.uid, boxes, containers, known, began))


def _list_one(runtime: Any, uid: str) -> PodBriefs:
    found = diff.group(runtime.list_sandboxes(uid), runtime.list_containers(uid))
    return found.get(uid, NOTHING)


def _sandbox(runtime: Any, brief: SandboxBrief, known: PodRuntime) -> Sandbox | None:
    try:
        return diff.known_sandbox(brief, known) or runtime.sandbox_status(brief.id)
    except RuntimeNotFound:
        return None  # it vanished since the listing


def _container(runtime: Any, brief: ContainerBrief, known: PodRuntime, fresh: bool) -> Container | None:
    try:
        return diff.known_container(brief, known, fresh) or runtime.container_status(brief.id, brief.sandbox_id)
    except RuntimeNotFound:
        return None


def _without_gone(briefs: PodBriefs, boxes: list[Sandbox], containers: list[Container]) -> PodBriefs:
    """The briefs in the states that the statuses told, so that a change in between is not taken for news."""
    ready = {box.id: box.ready for box in boxes}
    states = {container.id: container.state for container in containers}
    return PodBriefs(
        tuple(b._replace(ready=ready[b.id]) for b in briefs.sandboxes if b.id in ready),
        tuple(c._replace(state=states[c.id]) for c in briefs.containers if c.id in states))
