"""The pleg room: events and listings in, `PodRuntimeChanged`, `RelistDone` and `RuntimeStateChanged` out.

The main thread holds the records. Listings and status calls run in two threads, looks at single pods in a pool
of their own, at most one per pod: a call that hangs for one pod holds up only that pod.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from kubelet_mp.errors import RuntimeCallError
from kubelet_mp.host.cri import NotCRI, Runtime
from kubelet_mp.model import clock
from kubelet_mp.model.runtime import ContainerEvent, PodRuntime, RuntimeState
from kubelet_mp.rooms.base import Room, RoomContext
from kubelet_mp.rooms.pleg import diff, health, looking
from kubelet_mp.rooms.pleg.diff import Ledger, PodBriefs, Seen
from kubelet_mp.rooms.pleg.health import Pace
from kubelet_mp.rooms.pleg.looks import Look, Looks
from kubelet_mp.rooms.pleg.metrics import PlegMetrics
from kubelet_mp.rooms.pleg.stream import EventReader, Hears
from kubelet_mp.rooms.timers import Timer
from kubelet_mp.wire.messages import Message, PodRuntimeChanged, RelistDone, RelistPod, RuntimeStateChanged

LOOKERS = 16  # pods looked at at once


class PlegRoom(Room):
    """`runtime`: what is asked, by default the configured one; `time`: whose monotonic time is stamped."""

    name = "pleg"

    def __init__(self, context: RoomContext, runtime: Any = None, pace: Pace | None = None,
                 time: clock.Clock = clock.SYSTEM) -> None:
        super().__init__(context)
        self._metrics, self._pace, self._now = PlegMetrics(), pace or Pace(), time.monotonic
        self._wall = time.wall_time
        kubelet = self.settings.kubelet
        self._runtime: Any = runtime or Runtime(
            kubelet.container_runtime_endpoint, timeout=kubelet.runtime_request_timeout,
            observe=self._metrics.runtime.observe)
        self._ledger, self._looks = Ledger(), Looks()
        self._pool = ThreadPoolExecutor(LOOKERS, thread_name_prefix="pleg-look")
        self._node_pool = ThreadPoolExecutor(2, thread_name_prefix="pleg-node")
        # listings
        self._listing = False  # one is under way
        self._list_again = False
        self._list_timer: Timer | None = None
        self._list_asked = 0.0  # when the last listing was begun
        self._last_list: float | None = None  # when the last one that succeeded was begun
        self._awaited: set[str] = set()  # pods whose looks the listing waits for
        self._done: RelistDone | None = None  # as sent last
        # the runtime
        self._state = RuntimeState()
        self._told: RuntimeState | None = None
        self._failures = 0
        self._reader: EventReader | None = None
        self._stream = 0  # the attempt that is open, 0 for none
        self._events = False  # the stream is healthy

    # ---- life ----

    def start(self) -> None:
        self._ask_state()
        self._list()
        self._read_events()
        self.timers.every(self._pace.health, self._check_health)

    def close(self) -> None:
        if self._reader is not None:
            self._reader.stop()
        self._runtime.close()
        for pool in (self._pool, self._node_pool):
            pool.shutdown(wait=False, cancel_futures=True)

    def metrics_text(self) -> str:
        return self._metrics.text()

    def replay(self, room: str) -> None:
        for record in self._ledger.records.values():
            self.send(PodRuntimeChanged(record.runtime.uid, record.runtime), to=room)
        if self._done is not None:
            self.send(self._done, to=room)
        if self._told is not None:
            self.send(RuntimeStateChanged(self._told), to=room)

    def handle(self, message: Message) -> None:
        if isinstance(message, RelistPod):
            self._look(self._looks.order(message.uid))

    # ---- health of the runtime ----

    def _ask_state(self) -> None:
        self._node_pool.submit(self._state_job)

    def _state_job(self) -> None:
        driver = self._state.driver
        try:
            state = self._runtime.status()
            if driver is None:
                driver = self._runtime.runtime_config() or ""
        except RuntimeCallError as error:
            failure = error  # the name of an except clause ends with it
            self.post(lambda: self._state_failed(failure))
        else:
            known = replace(state, driver=driver)
            self.post(lambda: self._state_came(known))

    def _state_came(self, state: RuntimeState) -> None:
        if not self._state.name or self._failures:
            self.log.info("container runtime answers", endpoint=self._runtime.endpoint, name=state.name,
                          version=state.version, ready=state.ready, network=state.network_ready)
        changed = (state.name, state.version) != (self._state.name, self._state.version)
        if self._reader is None and self._state.name and changed:
            self._read_events()  # another version may have what the old one lacked
        self._failures, self._state = 0, state
        self._tell_state()
        self.timers.after(self._pace.status, self._ask_state)

    def _state_failed(self, error: RuntimeCallError) -> None:
        """Raises NotCRI (a StartError) where the endpoint was never a runtime."""
        if isinstance(error, NotCRI) and not self._state.name:
            raise error
        if self._failures == 0:
            self.log.error("container runtime does not answer; trying on", endpoint=self._runtime.endpoint,
                           err=str(error))
        self._failures += 1
        self._state = health.after_failure(self._state, error.message, self._now())
        self._tell_state()
        self.timers.after(health.pause(self._failures, self._pace), self._ask_state)

    def _tell_state(self) -> None:
        state = replace(self._state, events=self._events)
        if self._told is None or replace(state, observed=self._told.observed) != self._told:
            self._told = state
            self.send(RuntimeStateChanged(state))

    # ---- the event stream ----

    def _read_events(self) -> None:
        def later(call: Callable[..., None]) -> Callable[..., None]:
            return lambda *values: self.post(lambda: call(*values))

        hears = Hears(later(self._stream_opened), later(self._stream_event), later(self._stream_broken),
                      later(self._stream_absent))
        self._reader = EventReader(self._runtime, hears, self._pace)
        self._reader.start()

    def _stream_opened(self, attempt: int) -> None:
        self._stream = attempt
        self.timers.after(self._pace.settle, lambda: self._stream_lives(attempt))

    def _stream_lives(self, attempt: int) -> None:
        """The stream proved healthy: what happened while it was not is found by a listing."""
        if attempt != self._stream or self._events:
            return
        self.log.v(2).info("event stream is open; listing less often", period=self._pace.relist_events)
        self._events = True
        self._tell_state()
        self._list()

    def _stream_broken(self, attempt: int, why: str) -> None:
        self._stream = 0
        if self._events:
            self._events = False
            self.log.warning("event stream broke; listing often until it is back", err=why)
            self._tell_state()
            self._list()

    def _stream_absent(self, why: str) -> None:
        self._reader, self._stream, self._events = None, 0, False
        self.log.info("no events from this runtime; listing every second instead", reason=why)
        self._tell_state()
        self._list_soon()

    def _stream_event(self, attempt: int, event: ContainerEvent) -> None:
        self._stream_lives(attempt)
        uid = event.uid or self._ledger.owner(event.container_id)
        if not uid:
            if event.kind in ("started", "stopped"):
                self._list()
        elif not diff.covers(self._ledger.briefs(uid), event):
            self._look(self._looks.note(uid, event))

    # ---- one pod ----

    def _look(self, look: Look | None) -> None:
        """Begin it in the pool; None: one is under way and will be followed by another."""
        if look is not None:
            self._pool.submit(self._look_job, look, self._ledger.runtime(look.uid))

    def _look_job(self, look: Look, known: PodRuntime) -> None:
        begun = self._now()
        seen = looking.look(self._runtime, known, self._now, look.listed, look.ordered)
        self._metrics.pod_relist.observe(self._now() - begun)
        self.post(lambda: self._looked(look, seen))

    def _looked(self, look: Look, seen: Seen) -> None:
        uid, old = seen.runtime.uid, self._ledger.briefs(seen.runtime.uid)
        first_failure = bool(seen.runtime.error) and not self._ledger.flagged
        self._enter(seen, owed=look.ordered)
        if first_failure:
            self._list_soon()  # the next listing looks again
        self._log_changes(uid, old)
        self._look(self._looks.finish(uid, self._ledger.briefs(uid)))
        self._settle_listing()

    def _enter(self, seen: Seen, owed: bool) -> None:
        """Record what was seen; tell it if it is news or `owed` to somebody who asked."""
        uid, news = seen.runtime.uid, self._ledger.take(seen)
        if seen.runtime.error and news:
            self.log.warning("cannot see the state of a pod; trying on", pod=uid, err=seen.runtime.error)
        if news is None and owed:
            known = self._ledger.runtime(uid)
            news = known if known.observed > seen.runtime.observed else seen.runtime
        if news is not None:
            self.send(PodRuntimeChanged(uid, news))
        if seen.runtime.observed >= self._list_asked:
            self._awaited.discard(uid)

    def _log_changes(self, uid: str, old: PodBriefs) -> None:
        detail = self.log.v(4)
        if detail.enabled():
            for change in diff.changes(old, self._ledger.briefs(uid)):
                detail.info(change.kind, pod=uid, id=change.id)

    # ---- all pods ----

    def _list_soon(self) -> None:
        """Set the timer of the next listing."""
        if self._listing:
            return
        if self._list_timer is not None:
            self._list_timer.cancel()
        rare = self._events and not self._ledger.flagged
        self._list_timer = self.timers.after(self._pace.relist_events if rare else self._pace.relist, self._list)

    def _list(self) -> None:
        """List now, or once more after the listing that is under way."""
        if self._listing:
            self._list_again = True
            return
        if self._list_timer is not None:
            self._list_timer.cancel()
        self._listing, began = True, self._now()
        if self._list_asked:
            self._metrics.interval.observe(began - self._list_asked)
        self._list_asked = began
        self._node_pool.submit(self._list_job, began)

    def _list_job(self, began: float) -> None:
        try:
            listing = looking.list_all(self._runtime)
        except RuntimeCallError as error:
            text = str(error)
            self.post(lambda: self._list_failed(text))
        else:
            self.post(lambda: self._listed(listing, began))

    def _list_failed(self, why: str) -> None:
        self.log.debug("listing failed", err=why)
        self._end_listing()

    def _listed(self, listing: dict[str, PodBriefs], began: float) -> None:
        self._last_list = began
        self._metrics.last_seen.set(self._wall())
        news = self._ledger.news(listing, began)
        self._awaited = {uid for uid in news if listing.get(uid) and not self._looks.late(uid)}
        for uid in news:
            if briefs := listing.get(uid):
                self._look(self._looks.listed(uid, briefs, began))
            else:
                self._enter(Seen(diff.NOTHING, PodRuntime(uid, observed=began)), owed=False)
        self._settle_listing()
        if self._listing:
            self.timers.after(self._pace.patience, lambda: self._give_up(began))

    def _settle_listing(self) -> None:
        """Announce the listing once all looks that it caused have come back."""
        if self._listing and self._last_list == self._list_asked and not self._awaited:
            self._metrics.relist.observe(self._now() - self._list_asked)
            self._announce("")
            self._end_listing()

    def _give_up(self, began: float) -> None:
        """Some pods do not answer: they become errors, the listing of the others stands."""
        if not self._listing or self._list_asked != began:
            return
        wait = clock.format_duration(self._pace.patience)
        for uid in sorted(self._awaited):
            self._looks.mark_late(uid)
            text = f"the runtime has not told the pod's state within {wait}"
            self._enter(Seen(diff.NOTHING, replace(self._ledger.runtime(uid), observed=began, error=text)), False)
        self._awaited.clear()
        self._settle_listing()

    def _end_listing(self) -> None:
        self._listing = False
        again, self._list_again = self._list_again, False
        if again and self._last_list == self._list_asked:
            self._list()
        else:
            self._list_soon()

    def _announce(self, problem: str) -> None:
        self._done = RelistDone(self._last_list or 0.0, frozenset(self._ledger.records), not problem, problem)
        self.send(self._done)

    def _check_health(self) -> None:
        """Before the first listing nothing is announced: that nothing was listed says nothing of any pod."""
        now = self._now()
        problem = health.pleg_problem(self._last_list, now)
        if problem:
            self.log.error(problem)
        if problem and self._last_list is not None:
            self._announce(problem)
        if self._state.ready and now - self._state.observed > health.RUNTIME_LIMIT:
            self._state = health.after_failure(self._state, "Status has not been answered", now)
            self._tell_state()
