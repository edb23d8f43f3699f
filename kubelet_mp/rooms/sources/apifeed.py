"""Watches the pods of this node at the API server and brings what happened to the room's main thread.

Imported only where there is an API server: it needs the HTTP client.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from kubelet_mp.host.kubeapi import KubeApi, ListWatch
from kubelet_mp.rooms.sources.apipods import PATH, ApiPods, Pod, selector

Apply = Callable[[ApiPods], None]


class ApiFeed:
    """`changed` is called on the main thread (by `post`) after `pods` has taken in what came.

    What comes while the main thread is busy is kept by pod, the newest only, and taken in at one go. A fault in
    the watching thread is raised on the main thread: the room ends by it and starts anew.
    """

    def __init__(
        self, api: KubeApi, node: str, pods: ApiPods, post: Callable[[Callable[[], None]], None],
        changed: Callable[[], None], crashed: Callable[[BaseException], None],
    ) -> None:
        self._api, self._pods, self._post, self._changed = api, pods, post, changed
        self._lock = threading.Lock()
        self._waiting: dict[str, Apply] = {}
        self._watch = ListWatch(
            api, PATH, params=selector(node), on_list=self._on_list, on_event=self._on_event,
            on_problem=self._on_problem, name="pods", on_crash=crashed)

    def start(self) -> None:
        self._watch.start()

    def close(self) -> None:
        self._watch.stop()
        self._api.close()

    # ---- in the watching thread ----

    def _on_list(self, items: list[Pod]) -> None:
        self._put("", lambda pods: pods.take_list(items), alone=True)

    def _on_event(self, kind: str, pod: Pod) -> None:
        self._put(pod["metadata"]["uid"], lambda pods: pods.take_event(kind, pod))

    def _on_problem(self, text: str) -> None:
        self._put("problem", lambda pods: setattr(pods, "problem", text))

    def _put(self, key: str, apply: Apply, *, alone: bool = False) -> None:
        with self._lock:
            first = not self._waiting
            if alone:
                self._waiting = {name: kept for name, kept in self._waiting.items() if name == "problem"}
            self._waiting.pop(key, None)  # to the end: what came last is taken in last
            self._waiting[key] = apply
        if first:
            self._post(self._take)

    # ---- on the main thread ----

    def _take(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for apply in waiting.values():
            apply(self._pods)
        self._changed()
