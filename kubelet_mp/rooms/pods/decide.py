"""What of a pod's needed actions may be done now: back-offs and holds taken out, dead instances found. Pure
but for the worker's own back-off state, which one thread uses at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kubelet_mp.model import podspec
from kubelet_mp.model.clock import format_duration
from kubelet_mp.model.restartpolicy import is_sidecar
from kubelet_mp.model.runtime import Container, PodRuntime, Sandbox, State
from kubelet_mp.rooms.pods.actions import PodActions
from kubelet_mp.rooms.pods.start import next_restarts
from kubelet_mp.rooms.pods.worker import Worker, backoff_key, crash_text

CrashTold = Callable[[Mapping[str, Any]], None]


def hold_back(worker: Worker, actions: PodActions, now: float, crashed: CrashTold) -> PodActions:
    """The actions without containers that are not to be started yet; the worker is woken when they are.

    `crashed` is told once of each restart that enters its back-off.
    """
    init = tuple(c for c in actions.init if not _held(worker, c, now, crashed))
    stuck = any(c not in init and not is_sidecar(c) for c in actions.init)
    if stuck:
        init = init[: _first_gap(actions.init, init)]
    containers = () if stuck else tuple(c for c in actions.containers if not _held(worker, c, now, crashed))
    ephemeral = tuple(c for c in actions.ephemeral if not _held(worker, c, now, crashed))
    return replace(actions, ephemeral=ephemeral, init=init, containers=containers)


def _first_gap(wanted: tuple[Any, ...], left: tuple[Any, ...]) -> int:
    return next((i for i, c in enumerate(wanted) if c not in left), len(wanted))


def _held(worker: Worker, container: dict[str, Any], now: float, crashed: CrashTold) -> bool:
    name = container["name"]
    until = worker.holds.get(name, 0.0)
    if until <= now:
        worker.holds.pop(name, None)
        until = _crash_until(worker, container, now, crashed)
    if until > now:
        worker.wake_by(until)
        return True
    return False


def _crash_until(worker: Worker, container: dict[str, Any], now: float, crashed: CrashTold) -> float:
    """When the container may follow its last exited instance."""
    name = container["name"]
    last = worker.last_exited(name)
    if last is None:
        return now
    key = backoff_key(worker.pod, container)
    ready = worker.backoff.ready_at(key, worker.ends.get(last.id, now))
    if ready > now:
        delay = format_duration(worker.backoff.delay(key))
        worker.reasons[name] = ("CrashLoopBackOff", crash_text(worker.pod, name, delay))
        worker.holds[name] = ready
        crashed(container)
    return ready


def note_starts(worker: Worker, actions: PodActions, now: float) -> None:
    """A pass is about to start these: each start after an exit lengthens the next delay."""
    for container in (*actions.init, *actions.containers):
        last = worker.last_exited(container["name"])
        if last is not None and not (_completed(worker, container, last)):
            worker.backoff.next(backoff_key(worker.pod, container), worker.ends.get(last.id, now), now)


def _completed(worker: Worker, container: dict[str, Any], last: Container) -> bool:
    """A regular init container that did its work, and runs again for a new sandbox."""
    regular_init = container in podspec.init_containers(worker.pod) and not is_sidecar(container)
    return regular_init and last.exit_code == 0 and last.reason != "OOMKilled"


def restart_counts(
    worker: Worker, actions: PodActions, highest_log: Callable[[str], int | None]
) -> dict[str, int]:
    """The restart count of each container that a pass may start."""
    names = [c["name"] for c in actions.starts]
    latest = {}
    known = {}
    for name in names:
        instance, status = worker.runtime.latest(name), worker.known_status(name)
        latest[name] = instance.restart_count if instance else None
        known[name] = int(status.get("restartCount", 0)) if status else None
    logs = {n: highest_log(n) for n in names if latest[n] is None and known[n] is None}
    return next_restarts(names, latest, known, logs)


def dead_containers(pod: Mapping[str, Any], runtime: PodRuntime, keep: int) -> tuple[Container, ...]:
    """Instances to remove: not the newest of their name, not up, beyond `keep` exited ones a name."""
    found: list[Container] = []
    for name in {c.name for c in runtime.containers}:
        instances = runtime.instances(name)
        exited = [c for c in instances if c.state is State.EXITED]
        created = [c for c in instances[1:] if c.state is State.CREATED]
        found += exited[max(keep, 1):] + created
    return tuple(found)


def dead_sandboxes(runtime: PodRuntime) -> tuple[Sandbox, ...]:
    """Older sandboxes that are stopped and empty."""
    used = {c.sandbox_id for c in runtime.containers}
    return tuple(s for s in runtime.sandboxes[1:] if not s.ready and s.id not in used)
