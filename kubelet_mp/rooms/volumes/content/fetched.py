"""The strategies Get and Cache: an object is fetched when a volume is written, unless it was a while ago.

Source: Kubernetes 1.37 pkg/kubelet/util/manager (cache based manager).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from kubelet_mp.host.sharedgets import SharedGets
from kubelet_mp.rooms.volumes.content.keys import Json, Key, slim

BURST = 1.0  # s in which pods that start together share one GET, whatever the strategy
DEFAULT_TTL = 60.0  # s
TTL_ANNOTATION = "node.alpha.kubernetes.io/ttl"
_LONGEST = 3600.0


class Fetched:
    """`ttl`: s for which an object that a pod has read may be used again. `get` GETs a path, raises ApiError."""

    def __init__(self, get: Callable[[str], Mapping[str, Any]], now: Callable[[], float],
                 ttl: Callable[[], float]) -> None:
        self._now, self._ttl = now, ttl
        self._gets = SharedGets(get, now, keep=_LONGEST, slim=slim)
        self._lock = threading.Lock()
        self._held: dict[str, frozenset[Key]] = {}
        self._since: dict[Key, float] = {}  # when a pod last came to need it: it gets nothing older

    def hold(self, uid: str, keys: frozenset[Key]) -> None:
        with self._lock:
            new = keys - self._held.get(uid, frozenset())
            self._held[uid] = keys
            self._since.update(dict.fromkeys(new, self._now()))

    def drop(self, uid: str) -> None:
        with self._lock:
            self._held.pop(uid, None)
            needed = frozenset[Key]().union(*self._held.values())
            unused = [key for key in self._since if key not in needed]
            for key in unused:
                del self._since[key]
        self._gets.forget(key.path for key in unused)

    def get(self, key: Key) -> Json | None:
        with self._lock:
            young = self._now() - self._since.get(key, 0.0) + BURST
        return self._gets.get(key.path, max(min(self._ttl(), young), BURST))

    def close(self) -> None:
        """Nothing runs."""


def ttl_of(node: Mapping[str, Any]) -> float:
    """Seconds of the annotation of a Node object, else a minute."""
    text = ((node.get("metadata") or {}).get("annotations") or {}).get(TTL_ANNOTATION)
    return float(text) if text and text.isascii() and text.isdigit() else DEFAULT_TTL
