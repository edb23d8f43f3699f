"""The supervisor's loop: wait for a message, a death, a signal or a deadline; then do the one thing it asks for."""

from __future__ import annotations

import itertools
import os
import selectors
import signal
from collections.abc import Callable, Mapping

from kubelet_mp import log
from kubelet_mp.config import Settings
from kubelet_mp.errors import BootError
from kubelet_mp.model import clock
from kubelet_mp.rooms.base import EXIT_BOOT, Room, RoomContext
from kubelet_mp.supervisor import child as children
from kubelet_mp.supervisor import restart
from kubelet_mp.supervisor.beats import Beats
from kubelet_mp.supervisor.entry import Entry
from kubelet_mp.supervisor.reload import changes, refused
from kubelet_mp.supervisor.routes import receivers
from kubelet_mp.supervisor.systemd import Notifier
from kubelet_mp.wire.envelope import CREDIT, Envelope, seal
from kubelet_mp.wire.link import Link, LinkBroken, ParentEnd
from kubelet_mp.wire.messages import Health, Message, RoomUp

NAME = "supervisor"
TICK = 0.5  # s between looks at the heartbeats
LINK_PATIENCE = 1.0  # s from the end of a room's link to the end of the room
STOP_PATIENCE = 8.0  # s from SIGTERM to SIGKILL of the rooms

RoomFactory = Callable[[RoomContext], Room]
ReadAgain = Callable[[], Settings]  # raises BootError when the configuration cannot be used


class Supervisor:
    """Runs `rooms` (name → what makes it) until a signal or a boot failure. One use only."""

    def __init__(self, settings: Settings, rooms: Mapping[str, RoomFactory], notifier: Notifier | None = None,
                 hang_deadline: float = restart.HANG_DEADLINE, read_again: ReadAgain | None = None) -> None:
        self._settings = settings
        self._proven: Settings | None = None  # the settings before a reload, until every room is up with the new ones
        self._read_again = read_again
        self._hang_deadline = hang_deadline
        self._rooms = rooms
        self._notifier = notifier or Notifier()
        self._beats = Beats(list(rooms))
        self._entries = {name: Entry(name) for name in rooms}
        self._selector = selectors.PollSelector()
        self._seq = itertools.count(1)
        self._log = log.get(NAME)
        self._awake_since = self._last_tick = clock.monotonic()
        self._next_watchdog = self._awake_since
        self._announced = False
        self._exit: int | None = None

    def run(self) -> int:
        """Returns the exit code: 0 after SIGTERM or SIGINT, 1 after a boot failure of a room."""
        self._watch_signals()
        while self._exit is None:
            self._fork_due()
            for key, events in self._selector.select(self._patience()):
                key.data(events)
            self._tick()
        self._stop_rooms()
        return self._exit

    # ---- signals ----

    def _watch_signals(self) -> None:
        read, write = os.pipe()
        for fd in (read, write):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        self._selector.register(read, selectors.EVENT_READ, lambda events: self._take_signals(read))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda signum, frame: None)  # the wake-up fd carries it

    def _take_signals(self, fd: int) -> None:
        for number in os.read(fd, 64):
            if self._exit is not None:
                return  # ending already, and with what code is settled
            if number in (signal.SIGTERM, signal.SIGINT):
                self._log.info("stopping; pods go on running", signal=signal.Signals(number).name)
                self._exit = 0
            elif number == signal.SIGHUP:
                self._reload()

    # ---- reload ----

    def _reload(self) -> None:
        """Read the configuration again and fork the rooms anew with it; a bad one changes nothing."""
        if self._read_again is None:
            return
        self._notifier.reloading()
        try:
            new = self._read_again()
        except BootError as error:
            self._log.error("the configuration cannot be used; going on with the old one", err=str(error))
            self._notifier.ready()
            return
        lines, bound = changes(self._settings, new), refused(self._settings, new)
        if bound:
            self._log.error("not reloaded: this needs a restart", flags=", ".join(bound))
        elif not lines:
            self._log.info("reloaded: nothing has changed")
        else:
            for line in lines:
                self._log.info("reloading", change=line)
            self._proven = self._proven or self._settings
            self._renew(new)
            return
        self._notifier.ready()

    def _renew(self, settings: Settings) -> None:
        """End every room in order; each is forked again at once, with these settings."""
        self._settings, self._announced = settings, False
        log.set_verbosity(settings.kubelet.logging.verbosity)
        for entry in self._entries.values():
            entry.renewed = True
            if entry.child is not None:
                entry.child.signal(signal.SIGTERM)
                entry.kill_at = clock.monotonic() + STOP_PATIENCE

    def _boot_failed(self, entry: Entry) -> None:
        """After a reload the old settings come back; otherwise the agent ends."""
        if self._proven is None:
            self._log.error("a room cannot start; giving up", failed=entry.name)
            self._exit = 1
            return
        self._log.error("a room cannot start with the new configuration; going back to the old one",
                        failed=entry.name)
        old, self._proven = self._proven, None
        self._renew(old)

    # ---- rooms ----

    def _fork_due(self) -> None:
        now = clock.monotonic()
        for entry in self._entries.values():
            if entry.fork_at is not None and entry.fork_at <= now:
                self._fork(entry)

    def _fork(self, entry: Entry) -> None:
        link = Link()
        entry.incarnation += 1
        entry.renewed = False
        entry.fork_at, entry.kill_at, entry.credit, entry.up = None, None, False, False
        self._beats.set(entry.name, clock.monotonic() + restart.START_DEADLINE - self._hang_deadline)
        entry.child = children.fork(f"kubelet-mp: {entry.name}", lambda parent: self._live(entry, link, parent))
        entry.link = link.parent_side()
        self._selector.register(entry.link.read_fd, selectors.EVENT_READ, lambda events: self._receive(entry))
        self._selector.register(entry.child.pidfd, selectors.EVENT_READ, lambda events: self._bury(entry))

    def _live(self, entry: Entry, link: Link, parent: int) -> int:
        """In the child: drop what belongs to siblings, then be the room."""
        log.set_room(entry.name)
        self._selector.close()
        for other in self._entries.values():
            if other.link is not None:
                other.link.close()
        end = link.child_side()
        beat = self._beats.beater(entry.name, clock.monotonic)
        code = self._rooms[entry.name](RoomContext(self._settings, end, entry.incarnation, beat, parent)).run()
        end.close()
        return code

    def _bury(self, entry: Entry) -> None:
        assert entry.child is not None
        self._selector.unregister(entry.child.pidfd)
        how = entry.child.reap()
        if how is None:  # cannot be: its pidfd was readable
            self._selector.register(entry.child.pidfd, selectors.EVENT_READ, lambda events: self._bury(entry))
            return
        self._drain(entry)
        self._drop_link(entry)
        now = clock.monotonic()
        delay = 0.0
        if not entry.renewed:
            entry.record, delay = entry.record.died(now - entry.child.started)
        entry.last_exit, entry.child, entry.kill_at, entry.credit, entry.up = how, None, None, False, False
        entry.fork_at = now + delay
        if how == f"exit {EXIT_BOOT}":
            self._boot_failed(entry)
        elif self._exit is None and not entry.renewed:
            self._log.warning("a room died and is forked anew", died=entry.name, how=how, delay_s=round(delay, 2))

    def _drain(self, entry: Entry) -> None:
        """Take what the dead room had already sent."""
        try:
            while entry.link is not None and self._route_all(entry):
                pass
        except LinkBroken:
            return

    def _drop_link(self, entry: Entry) -> None:
        if entry.link is not None:
            for fd in (entry.link.read_fd, entry.link.write_fd):
                if fd in self._selector.get_map():
                    self._selector.unregister(fd)
            entry.link.close()
            entry.link = None

    # ---- messages ----

    def _receive(self, entry: Entry) -> None:
        try:
            self._route_all(entry)
        except LinkBroken as error:
            self._log.debug("a room's link ended", ended=entry.name, err=str(error))
            self._drop_link(entry)
            entry.kill_at = clock.monotonic() + LINK_PATIENCE  # a room without a link is of no use

    def _route_all(self, entry: Entry) -> bool:
        assert entry.link is not None
        envelopes = entry.link.receive()
        for envelope in envelopes:
            self._route(entry, envelope)
        return bool(envelopes)

    def _route(self, entry: Entry, envelope: Envelope) -> None:
        if envelope.kind == CREDIT:
            entry.credit = True
            if not entry.up:
                self._came_up(entry)
            self._deliver(entry)
            return
        try:
            rooms = receivers(envelope.kind, envelope.to, envelope.room)
        except KeyError:
            self._log.error("nobody gets this kind of message", kind=envelope.kind, sender=envelope.room)
            return
        for room in rooms:
            self._put(room, envelope)

    def _put(self, room: str, envelope: Envelope) -> None:
        entry = self._entries.get(room)
        if entry is not None:
            entry.mailbox.put(envelope)
            self._deliver(entry)

    def _deliver(self, entry: Entry) -> None:
        """Send the next batch, if the room asked for one and there is something to say."""
        if not entry.credit or entry.link is None or not entry.mailbox:
            return
        entry.credit = False
        self._write(entry, lambda link: link.send(entry.mailbox.take()))

    def _write(self, entry: Entry, action: Callable[[ParentEnd], None]) -> None:
        assert entry.link is not None
        try:
            action(entry.link)
        except LinkBroken as error:
            self._log.debug("a room takes no messages", room_name=entry.name, err=str(error))
            return  # its death is reported by the pidfd
        registered = entry.link.write_fd in self._selector.get_map()
        if entry.link.writing and not registered:
            self._selector.register(entry.link.write_fd, selectors.EVENT_WRITE,
                                    lambda events: self._write(entry, lambda link: link.flush()))
        elif not entry.link.writing and registered:
            self._selector.unregister(entry.link.write_fd)

    def _came_up(self, entry: Entry) -> None:
        """Everyone who feeds this room sends it all it knows again."""
        entry.up = True
        self._log.info("room is up", up=entry.name, incarnation=entry.incarnation)
        for other in self._entries.values():
            if other is not entry:
                self._say(RoomUp(entry.name, entry.incarnation), other.name)

    def _say(self, message: Message, to: str) -> None:
        self._put(to, seal(message, room=NAME, incarnation=0, seq=next(self._seq), sent=clock.monotonic(), to=to))

    # ---- time ----

    def _patience(self) -> float:
        now = clock.monotonic()
        dues = [self._last_tick + TICK]
        dues += [entry.fork_at for entry in self._entries.values() if entry.fork_at is not None]
        dues += [entry.kill_at for entry in self._entries.values() if entry.kill_at is not None]
        return max(0.0, min(dues) - now)

    def _tick(self) -> None:
        now = clock.monotonic()
        for entry in self._entries.values():
            if entry.kill_at is not None and entry.child is not None and entry.kill_at <= now:
                entry.kill_at = None
                self._beats.set(entry.name, now)  # the time it has to be gone, before it is killed once more
                entry.child.signal(signal.SIGKILL)
        if now - self._last_tick < TICK:
            return
        if now - self._last_tick > 4 * TICK:  # we were stopped ourselves: give the rooms time to beat again
            self._awake_since = now
        self._last_tick = now
        fresh = [self._check_beat(entry, now) for entry in self._entries.values()]
        self._tell_systemd(now, all(fresh))
        self._say(Health(tuple(e.health(now, self._beats.last(e.name)) for e in self._entries.values())), "http")

    def _check_beat(self, entry: Entry, now: float) -> bool:
        """True if the room is well. One past its deadline is asked for its stacks, then killed."""
        if entry.child is None:
            return False
        if not restart.hung(now, self._beats.last(entry.name), self._awake_since, self._hang_deadline):
            return entry.up
        if entry.kill_at is None:
            self._log.error("a room hangs and is killed", hangs=entry.name, pid=entry.child.pid,
                            silent_s=round(now - self._beats.last(entry.name), 1))
            entry.up = False
            entry.child.signal(signal.SIGABRT)
            entry.kill_at = now + restart.ABORT_PATIENCE
        return False

    def _tell_systemd(self, now: float, well: bool) -> None:
        down = [entry.name for entry in self._entries.values() if not entry.up]
        self._notifier.status(f"waiting for rooms: {', '.join(down)}" if down else "all rooms are up")
        if well and not self._announced:
            self._announced, self._proven = True, None
            self._log.info("ready", rooms=len(self._entries))
            self._notifier.ready()
        if well and self._notifier.watchdog and now >= self._next_watchdog:
            self._next_watchdog = now + self._notifier.watchdog / 2
            self._notifier.alive()

    # ---- the end ----

    def _stop_rooms(self) -> None:
        """SIGTERM to all, SIGKILL to those that do not end; containers are left alone."""
        self._notifier.stopping()
        deadline = clock.monotonic() + STOP_PATIENCE
        self._signal_all(signal.SIGTERM)
        while self._alive() and clock.monotonic() < deadline:
            for key, events in self._selector.select(0.2):
                key.data(events)
        for name in self._alive():
            self._log.warning("a room did not stop in time and is killed", stopped=name)
        self._signal_all(signal.SIGKILL)
        while self._alive():
            for key, events in self._selector.select(0.2):
                key.data(events)

    def _alive(self) -> list[str]:
        return [entry.name for entry in self._entries.values() if entry.child is not None]

    def _signal_all(self, number: int) -> None:
        for entry in self._entries.values():
            if entry.child is not None:
                entry.child.signal(number)
