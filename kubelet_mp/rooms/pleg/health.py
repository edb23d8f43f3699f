"""When the PLEG, and when the runtime, counts as unhealthy. Pure.

Source: Kubernetes 1.37 pkg/kubelet/pleg/generic.go, pkg/kubelet/runtime.go.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kubelet_mp.model.clock import format_duration
from kubelet_mp.model.runtime import RuntimeState

PLEG_LIMIT = 180.0  # s since the last successful listing
RUNTIME_LIMIT = 30.0  # s since the last good status


@dataclass(frozen=True, slots=True)
class Pace:
    """All periods of the room, in seconds.

    relist: after the end of the previous listing; relist_events: the same while the event stream is healthy.
    settle: a stream that has lived so long is healthy. patience: how long one pod may keep the others waiting.
    retry: first pause after a failed status, doubled up to `status`.
    """

    relist: float = 1.0
    relist_events: float = 10.0
    status: float = 5.0
    retry: float = 0.25
    settle: float = 1.0
    patience: float = 10.0
    health: float = 5.0
    stream_retry: float = 0.1
    stream_retry_max: float = 10.0


def pleg_problem(last: float | None, now: float) -> str:
    """Why the PLEG is unhealthy, "" if it is not; `last`: when the last successful listing began."""
    if last is None:
        return "PLEG is not healthy: pleg has yet to be successful"
    age = now - last
    if age <= PLEG_LIMIT:
        return ""
    limit = format_duration(PLEG_LIMIT)
    return f"PLEG is not healthy: pleg was last seen active {format_duration(round(age))} ago; threshold is {limit}"


def after_failure(state: RuntimeState, error: str, now: float) -> RuntimeState:
    """The state while Status brings nothing: for a time the last good one stands, for runtimes do restart."""
    if state.ready and now - state.observed < RUNTIME_LIMIT:
        return state
    reason = "container runtime is down" if state.name else (
        "container runtime status check may not have completed yet")
    return replace(state, ready=False, network_ready=False, message=f"{reason}: {error}",
                   network_message="unknown, for the runtime does not tell")


def pause(failures: int, pace: Pace) -> float:
    """Seconds until the status is asked for again after so many failures in a row."""
    return pace.status if failures == 0 else min(pace.status, pace.retry * 2.0 ** min(failures - 1, 20))
