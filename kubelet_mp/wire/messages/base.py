"""The base of all messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kubelet_mp.model.plain import Plain

Pod = dict[str, Any]  # a decoded, defaulted core/v1 Pod


@dataclass(frozen=True, slots=True)
class Message(Plain):
    """Base of all messages; `key` is "" where only one of the type matters."""

    def key(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class PodMessage(Message):
    """A message about one pod."""

    uid: str

    def key(self) -> str:
        return self.uid
