"""Stopping containers and sandboxes: preStop, grace period, order of sidecars.

Source: Kubernetes 1.37 pkg/kubelet/kuberuntime (killContainer, termination order).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubelet_mp.errors import KubeletError, RuntimeCallError, RuntimeNotFound
from kubelet_mp.model import runtime as names
from kubelet_mp.model.restartpolicy import is_sidecar
from kubelet_mp.model.runtime import Container, Sandbox, State
from kubelet_mp.rooms.pods import hooks
from kubelet_mp.rooms.pods.actions import Kill
from kubelet_mp.rooms.pods.env import Work, field_path
from kubelet_mp.rooms.pods.slots import Turn

MIN_GRACE = 2  # s left for SIGTERM whatever the hook has used
_LOOK = 0.25  # s between two looks at a shortened grace while a hook runs


def grace_of(pod: Mapping[str, Any], kill: Kill, override: int | None) -> int:
    """Seconds that a container gets, before the floor. Most specific first."""
    if override is not None:
        return override
    deletion = pod["metadata"].get("deletionGracePeriodSeconds")
    if deletion is not None:
        return int(deletion)
    spec = find_spec(pod, kill.container.name) or {}
    if kill.kind:
        own = (spec.get(f"{kill.kind}Probe") or {}).get("terminationGracePeriodSeconds")
        if own is not None:
            return int(own)
    grace = (pod.get("spec") or {}).get("terminationGracePeriodSeconds")
    if grace is None:
        grace = kill.container.annotations.get(names.POD_GRACE)
    return int(grace) if grace is not None else MIN_GRACE


def find_spec(pod: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    spec = pod.get("spec") or {}
    kinds = ("initContainers", "containers", "ephemeralContainers")
    return next((c for kind in kinds for c in spec.get(kind) or [] if c["name"] == name), None)


def _pre_stop(pod: Mapping[str, Any], container: Container) -> Mapping[str, Any] | None:
    """The hook from the spec, else from the annotation that was written at creation."""
    spec = find_spec(pod, container.name)
    if spec is not None:
        return (spec.get("lifecycle") or {}).get("preStop")
    try:
        hook = json.loads(container.annotations.get(names.PRE_STOP, "null"))
    except ValueError:
        return None
    return hook if isinstance(hook, dict) else None


@dataclass(slots=True)
class _Stopping:
    kill: Kill
    done: threading.Event
    after: list[threading.Event]  # what has to be down before it (sidecars)
    error: str = ""


class Killer:
    """Kills the containers of one pod side by side, each with its own grace."""

    def __init__(self, work: Work, override: int | None = None, ips: Sequence[str] = ()) -> None:
        self.work, self.override = work, override
        self._ip = ips[0] if ips else ""
        self._stopping: dict[str, int] = {}  # container id → grace given to the runtime
        self._lock = threading.Lock()

    def kill(self, kills: Sequence[Kill]) -> list[str]:
        """Kill them all and wait; returns the problems of those that could not be stopped."""
        items = self._ordered(kills)
        if items:
            self.work.env.pool.all([lambda item=item: self._one(item) for item in items])  # type: ignore[misc]
            self.work.acted()
        return [item.error for item in items if item.error]

    def shorten(self, grace: int) -> None:
        """Less time from now on, for those that are being stopped too."""
        self.override = grace if self.override is None else min(grace, self.override)
        with self._lock:
            late = [id_ for id_, given in self._stopping.items() if given > max(grace, MIN_GRACE)]
        for id_ in late:
            self.work.env.pool.run(lambda id_=id_: self._hasten(id_, max(grace, MIN_GRACE)))  # type: ignore[misc]

    def _hasten(self, container_id: str, grace: int) -> None:
        try:
            self.work.env.runtime.stop_container(container_id, grace)
        except RuntimeCallError:
            return  # the first call is still at it and reports

    def _ordered(self, kills: Sequence[Kill]) -> list[_Stopping]:
        """A sidecar goes after every regular container and every sidecar behind it in the spec."""
        items = [_Stopping(kill, threading.Event(), []) for kill in kills]
        spec = self.work.pod.get("spec") or {}
        rank = {c["name"]: i for i, c in enumerate(spec.get("initContainers") or []) if is_sidecar(c)}
        for item in items:
            mine = rank.get(item.kill.container.name)
            if mine is not None:
                item.after = [o.done for o in items if rank.get(o.kill.container.name, len(rank) + 1000) > mine]
        return items

    def _one(self, item: _Stopping) -> None:
        try:
            self._stop(item)
        except KubeletError as error:
            item.error = str(error)
        finally:
            item.done.set()

    def _stop(self, item: _Stopping) -> None:
        container = item.kill.container
        if container.state is not State.RUNNING:
            self._stop_container(container, MIN_GRACE)
            return
        message = item.kill.message or f"Stopping container {container.name}"
        self.work.event("Normal", "Killing", message, field_path(self.work.pod, container.name))
        clock = self.work.env.clock
        begun = clock.monotonic()
        grace = grace_of(self.work.pod, item.kill, self.override)
        if grace > 0:
            self._run_hook(container, begun, grace)
        for event in item.after:
            self._wait(event, begun, grace)
        left = self._capped(grace) - int(clock.monotonic() - begun)
        self._stop_container(container, max(left, MIN_GRACE))

    def _capped(self, grace: int) -> int:
        return grace if self.override is None else min(grace, self.override)

    def _wait(self, event: threading.Event, begun: float, grace: int) -> None:
        """Until the event or the end of the grace, which may be shortened meanwhile."""
        while True:
            left = begun + self._capped(grace) - self.work.env.clock.monotonic()
            if left <= 0 or event.wait(min(left, _LOOK)):
                return

    def _run_hook(self, container: Container, begun: float, grace: int) -> None:
        hook = _pre_stop(self.work.pod, container)
        if not hook:
            return
        done = threading.Event()
        spec = find_spec(self.work.pod, container.name) or {"name": container.name}

        def run() -> None:
            try:
                hooks.run(self.work, spec, container.id, hook, self._ip)
            except KubeletError:
                self.work.event("Warning", "FailedPreStopHook", "PreStopHook failed",
                                field_path(self.work.pod, container.name))
            finally:
                done.set()

        self.work.env.pool.run(run)
        self._wait(done, begun, grace)

    def _stop_container(self, container: Container, grace: int) -> None:
        with self._lock:
            self._stopping[container.id] = grace
        turn = Turn(self.work.env.stops, self.work.turn.order)
        turn.take()
        try:
            self.work.env.runtime.stop_container(container.id, grace)
        except RuntimeNotFound:
            return
        finally:
            turn.give_back()
            with self._lock:
                self._stopping.pop(container.id, None)


def stop_sandboxes(work: Work, sandboxes: Sequence[Sandbox]) -> None:
    """Stop every sandbox. Raises RuntimeCallError of the first that fails."""
    for sandbox in sandboxes:
        work.turn.take()
        try:
            with work.calling("StopPodSandbox", "stop its sandbox"):
                work.env.runtime.stop_sandbox(sandbox.id)
        except RuntimeNotFound:
            continue
        finally:
            work.acted()


def alive(containers: Sequence[Container]) -> list[Container]:
    return [c for c in containers if c.state in (State.RUNNING, State.UNKNOWN)]


def remove_container(work: Work, container: Container, *, logs: bool = True) -> None:
    """Remove one container and (unless another keeps them) its logs. Raises RuntimeCallError, FileError."""
    work.turn.take()
    if container.state is State.UNKNOWN:
        work.env.runtime.stop_container(container.id, MIN_GRACE)
    if logs:
        work.env.dirs.remove_container_logs(
            work.name, work.namespace, container.name, container.id, container.log_path)
    try:
        work.env.runtime.remove_container(container.id)
    finally:
        work.acted()
    work.env.dirs.remove_termination_log(work.uid, (mount.host_path for mount in container.mounts))


def remove_sandbox(work: Work, sandbox: Sandbox) -> None:
    """Remove a stopped sandbox and what is in it. Raises RuntimeCallError."""
    work.turn.take()
    try:
        work.env.runtime.remove_sandbox(sandbox.id)
    except RuntimeNotFound:
        return
    finally:
        work.acted()


def kills_of(containers: Sequence[Container], message: str = "") -> list[Kill]:
    """Kill orders for whatever of these is up."""
    return [Kill(c, {}, message) for c in alive(containers)]


