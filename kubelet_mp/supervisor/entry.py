"""A supervised room: its child process, its link, its mailbox and its record."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubelet_mp.supervisor.child import Child
from kubelet_mp.supervisor.restart import Record
from kubelet_mp.wire.link import ParentEnd
from kubelet_mp.wire.mailbox import Mailbox
from kubelet_mp.wire.messages import RoomHealth


@dataclass(slots=True)
class Entry:
    """`fork_at`: when to fork it next (monotonic), None while it runs. `kill_at`: when SIGKILL follows."""

    name: str
    mailbox: Mailbox = field(default_factory=Mailbox)
    record: Record = field(default_factory=Record)
    child: Child | None = None
    link: ParentEnd | None = None
    incarnation: int = 0
    credit: bool = False
    up: bool = False
    fork_at: float | None = 0.0
    kill_at: float | None = None
    last_exit: str = ""
    renewed: bool = False  # it ends because a reload forks it anew: no death to count

    @property
    def restarts(self) -> int:
        return max(0, self.incarnation - 1)

    def health(self, now: float, last_beat: float) -> RoomHealth:
        child = self.child
        return RoomHealth(
            room=self.name,
            pid=child.pid if child else 0,
            incarnation=self.incarnation,
            restarts=self.restarts,
            beat_age=max(0.0, now - last_beat),
            up=now - child.started if child else 0.0,
            waiting=len(self.mailbox),
            last_exit=self.last_exit,
        )
