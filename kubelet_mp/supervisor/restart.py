"""When a dead room is forked anew. Pure: times are monotonic seconds that the caller passes in."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

FIRST_DELAY = 0.25  # s, after the second death in a row; the first is followed at once
MAX_DELAY = 15.0  # s
GOOD_LIFE = 30.0  # s; a room that lived so long starts with a clean record
HANG_DEADLINE = 5.0  # s without a heartbeat
ABORT_PATIENCE = 0.5  # s between SIGABRT (for the stack dump) and SIGKILL
START_DEADLINE = 60.0  # s from fork to the first message asked for


@dataclass(frozen=True, slots=True)
class Record:
    """How often in a row a room died young."""

    deaths: int = 0

    def died(self, lived: float, jitter: Callable[[], float] = random.random) -> tuple[Record, float]:
        """The new record, and after how many seconds the room is forked again."""
        deaths = 1 if lived >= GOOD_LIFE else self.deaths + 1
        if deaths == 1:
            return Record(deaths), 0.0
        delay: float = min(MAX_DELAY, FIRST_DELAY * 2.0 ** min(deaths - 2, 16))
        return Record(deaths), delay * (1 + 0.2 * jitter())


def hung(now: float, last_beat: float, supervisor_awake_since: float, deadline: float) -> bool:
    """Is a room past its deadline? Time in which the supervisor itself slept (SIGSTOP) does not count."""
    return now - max(last_beat, supervisor_awake_since) > deadline
