"""When to try again to remove a cgroup that still holds processes, and when to say so and kill them. Pure.

Source: Kubernetes 1.37 pkg/kubelet/cm/pod_container_manager_linux.go, which kills them at once.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST, LONGEST = 0.02, 5.0  # s
PATIENCE = 2.0  # s after which the wait is reported, and the processes are killed


@dataclass(slots=True)
class Freeing:
    """One pod's cgroup on its way out, since the monotonic time `since`."""

    since: float
    delay: float = FIRST
    told: str = ""

    def next_delay(self) -> float:
        """Seconds to wait now; twice as long the next time."""
        delay, self.delay = self.delay, min(2 * self.delay, LONGEST)
        return delay

    def overdue(self, now: float) -> bool:
        """Whether what is still in it is there to stay: then the runtime has lost track of it."""
        return now - self.since >= PATIENCE

    def news(self, now: float, processes: set[int]) -> str:
        """What is to be reported now, "" when there is nothing new."""
        if not self.overdue(now):
            return ""
        shown = ", ".join(map(str, sorted(processes)[:5])) or "none that is visible"
        problem = f"the pod's cgroup still holds processes, which are killed: {shown}"
        if problem == self.told:
            return ""
        self.told = problem
        return problem
