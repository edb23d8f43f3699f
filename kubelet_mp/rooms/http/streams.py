"""exec, attach, port-forward and run: which container or sandbox is meant, and what the runtime says to it.

Source: Kubernetes 1.37 pkg/kubelet/server, pkg/kubelet/kubelet_pods.go; http-api.md §4.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from kubelet_mp.errors import RuntimeCallError, RuntimeNotFound
from kubelet_mp.host.cri import Runtime
from kubelet_mp.model import podspec
from kubelet_mp.model.runtime import State as RuntimeState
from kubelet_mp.rooms.http import streamquery
from kubelet_mp.rooms.http.state import PodView, State
from kubelet_mp.rooms.http.streamquery import Query, StreamRequestError

MAX_RUNS = 16  # commands of /run at a time, of the worker's threads
_BUSY = "RESOURCE_EXHAUSTED"
_RETRY_BUSY = 60  # s


class PodStreams:
    """Usable from any thread; asks the runtime for each request. stopping: set when the room ends."""

    def __init__(self, state: State, runtime: Runtime, stopping: threading.Event) -> None:
        self._state, self._runtime, self._stopping = state, runtime, stopping
        self._runs = threading.BoundedSemaphore(MAX_RUNS)

    def exec(self, namespace: str, pod: str, container: str, query: Query, uid: str = "") -> str:
        """The runtime's URL. Raises StreamRequestError."""
        asked = streamquery.streams(query)
        found = self._container(self._pod(namespace, pod), container, uid)
        try:
            return self._runtime.exec(found, query.get("command", ()), tty=asked.tty, stdin=asked.stdin,
                                      stdout=asked.stdout, stderr=asked.stderr)
        except RuntimeCallError as error:
            raise refusal(error) from error

    def attach(self, namespace: str, pod: str, container: str, query: Query, uid: str = "") -> str:
        """The runtime's URL; whether there is a terminal, the container's spec says. Raises StreamRequestError."""
        asked, view = streamquery.streams(query), self._pod(namespace, pod)
        found = self._container(view, container, uid)
        tty = any(one["name"] == container and one.get("tty") for one in podspec.all_containers(view.pod()))
        try:
            return self._runtime.attach(found, tty=tty, stdin=asked.stdin, stdout=asked.stdout,
                                        stderr=asked.stderr and not tty)
        except RuntimeCallError as error:
            raise refusal(error) from error

    def port_forward(self, namespace: str, pod: str, query: Query, uid: str = "") -> str:
        """The runtime's URL. Raises StreamRequestError."""
        wanted, view = streamquery.ports(query), self._pod(namespace, pod)
        if uid and uid != view.uid:
            raise StreamRequestError(404, "pod not found")
        try:
            boxes = self._runtime.list_sandboxes(view.uid)
            if not boxes:
                raise StreamRequestError(404, "pod not found")
            return self._runtime.port_forward(max(boxes, key=lambda box: box.created_at).id, wanted)
        except RuntimeCallError as error:
            raise refusal(error) from error

    def run(self, namespace: str, pod: str, container: str, command: Sequence[str], uid: str = "") -> bytes:
        """What a command prints, both streams together. Raises StreamRequestError."""
        found = self._container(self._pod(namespace, pod), container, uid)
        if not self._runs.acquire(blocking=False):
            raise StreamRequestError(429, f"{MAX_RUNS} commands run already; try again later", _RETRY_BUSY)
        try:
            done = self._runtime.exec_sync(found, command, 0, self._stopping)
        except RuntimeCallError as error:
            raise StreamRequestError(500, error.message) from error
        finally:
            self._runs.release()
        if done.exit_code:
            said = done.stderr.decode(errors="replace")
            raise StreamRequestError(500, f"command '{' '.join(command)}' exited with {done.exit_code}: {said}")
        return done.stdout + done.stderr

    def _pod(self, namespace: str, pod: str) -> PodView:
        view = self._state.pod(namespace, pod)
        if view is None:
            raise StreamRequestError(404, "pod does not exist")
        return view

    def _container(self, view: PodView, name: str, uid: str) -> str:
        """The id of the running container. A mirror's UID stands for its static pod, whose UID differs."""
        if uid and uid != view.uid and view.source == "api":
            raise StreamRequestError(500, f'container not found ("{name}")')
        try:
            listed = self._runtime.list_containers(view.uid)
        except RuntimeCallError as error:
            raise StreamRequestError(500, error.message) from error
        running = [one for one in listed if one.name == name and one.state is RuntimeState.RUNNING]
        if not running:
            raise StreamRequestError(500, f'container not found ("{name}")')
        return max(running, key=lambda one: one.created_at).id


def refusal(error: RuntimeCallError) -> StreamRequestError:
    """The answer for a call that the runtime refused."""
    if isinstance(error, RuntimeNotFound):
        return StreamRequestError(404, error.message)
    if error.code == _BUSY:
        return StreamRequestError(429, error.message, _RETRY_BUSY)
    return StreamRequestError(500, error.message)
