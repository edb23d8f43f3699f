"""What the API server last said of each pod's status, whichever way it came: an answer, or the watch. Pure.

Source: Kubernetes 1.37 resourceVersion: a later version of one resource is the greater number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Status = dict[str, Any]


@dataclass
class ApiView:
    """By the UID that a pod has in the API: that of the mirror for a static pod."""

    _seen: dict[str, tuple[int, Status]] = field(default_factory=dict)

    def take(self, pod: Mapping[str, Any]) -> bool:
        """Whether the object is newer than what was known: an answer may overtake the watch, and the other way."""
        meta = pod["metadata"]
        version, known = _number(meta.get("resourceVersion")), self._seen.get(meta["uid"])
        if known is not None and version <= known[0]:
            return False
        self._seen[meta["uid"]] = version, pod.get("status") or {}
        return True

    def status(self, uid: str) -> Status | None:
        """None: it has to be looked at first."""
        known = self._seen.get(uid)
        return None if known is None else known[1]

    def forget(self, uid: str) -> None:
        self._seen.pop(uid, None)

    def keep(self, uids: set[str]) -> None:
        """Forget all others."""
        self._seen = {uid: known for uid, known in self._seen.items() if uid in uids}


def _number(version: Any) -> int:
    """0 for what is no number: then the first that is told stays until it is forgotten."""
    text = str(version or "")
    return int(text) if text.isdecimal() else 0
