"""The sources room: reads its sources when they change and at intervals, and sends what is desired."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kubelet_mp.config import Settings
from kubelet_mp.errors import ApiError
from kubelet_mp.model import clock
from kubelet_mp.rooms.base import Room, RoomContext
from kubelet_mp.rooms.sources.apipods import ORIGIN, ApiPods
from kubelet_mp.rooms.sources.feed import Feed
from kubelet_mp.rooms.sources.file import FileSource
from kubelet_mp.rooms.sources.merge import Clash, Merger
from kubelet_mp.rooms.sources.source import Item, Reading, Source
from kubelet_mp.rooms.sources.url import UrlSource
from kubelet_mp.wire.messages import DesiredPod, DesiredSet, Message, NodeObject, SourceProblem

if TYPE_CHECKING:
    from kubelet_mp.rooms.sources.apifeed import ApiFeed

CREDENTIALS_PERIOD = 1.0  # s between two looks for the credentials that a bootstrap has yet to bring
COALESCE = 0.003  # s from an inotify event to the reading, so that a burst of files is read in one go


def configured(settings: Settings) -> tuple[str, ...]:
    """The names of the sources that must have spoken before anything may be cleaned up."""
    kubelet = settings.kubelet
    wanted = {"file": kubelet.static_pod_path, "http": kubelet.static_pod_url, "api": not settings.standalone}
    return tuple(name for name, value in wanted.items() if value)


class SourcesRoom(Room):
    name: ClassVar[str] = "sources"

    def __init__(self, context: RoomContext, clock: clock.Clock = clock.SYSTEM) -> None:
        super().__init__(context)
        self._clock = clock
        self._merger = Merger(configured(self.settings))
        self._feeds: dict[str, Feed] = {}
        self._notes: dict[str, str] = {}
        self._warnings: dict[str, tuple[str, ...]] = {}
        self._soon = False
        self._told: set[str] = set()  # uids of which the log says that they are desired
        self._api_pods = ApiPods(clock)
        self._api_wanted = False
        self._api_feed: ApiFeed | None = None

    # ---- the room ----

    def start(self) -> None:
        for source in self._sources():
            feed = self._feeds[source.name] = Feed(source, self.post, self._deliver)
            self.timers.every(source.period, feed.kick, first=0.0)
        if not self.settings.kubelet.register_node:
            self._want_api()
        if not self._merger.sources:
            self.log.warning("no source of pods is configured (fix: set staticPodPath or staticPodURL)")
            self.send(DesiredSet(frozenset(), self._merger.ready))

    def handle(self, message: Message) -> None:
        if isinstance(message, NodeObject):  # the node is registered: pods can be bound to it
            self._want_api()

    def replay(self, room: str) -> None:
        whole = room in ("pods", "reporter")
        known = [m for m in self._merger.everything() if whole or isinstance(m, SourceProblem)]
        for message in [*known, *(self._api_pods.everything() if room == "reporter" else ())]:
            self.send(message, to=room)

    def close(self) -> None:
        if self._api_feed is not None:
            self._api_feed.close()
        for feed in self._feeds.values():
            feed.close()

    # ---- reading ----

    def _sources(self) -> list[Source]:
        kubelet, node = self.settings.kubelet, self.settings.node_name
        sources: list[Source] = []
        if kubelet.static_pod_path:
            period = kubelet.file_check_frequency
            sources.append(FileSource(kubelet.static_pod_path, node, period, self._notified, self._clock))
        if kubelet.static_pod_url:
            headers, period = kubelet.static_pod_url_header, kubelet.http_check_frequency
            sources.append(UrlSource(kubelet.static_pod_url, headers, node, period, clock=self._clock))
        return sources

    def _notified(self) -> None:
        """From the watching thread: something changed in the manifest directory."""
        self.post(self._read_files_soon)

    def _read_files_soon(self) -> None:
        if not self._soon:
            self._soon = True
            self.timers.after(COALESCE, self._read_files)

    def _read_files(self) -> None:
        self._soon = False
        self._feeds["file"].kick()

    def _deliver(self, reading: Reading) -> None:
        before = self._merger.clashes
        for message in self._merger.apply(reading):
            self._tell(message)
            self.send(message)
        self._report_clashes(before)
        self._say_once(reading)
        if reading.recheck is not None:
            self.timers.after(reading.recheck, self._feeds[reading.source].kick)

    # ---- the API server ----

    def _want_api(self) -> None:
        if "api" in self._merger.sources and not self._api_wanted:
            self._api_wanted = True
            self._watch_api()

    def _watch_api(self) -> None:
        """Start, if need be again and again until there are credentials."""
        from kubelet_mp.host.kubeapi import api_for
        from kubelet_mp.rooms.sources.apifeed import ApiFeed

        try:
            api = api_for(self.settings, self.name)
        except ApiError as error:
            self.log.v(4).info("the pods of the API server are not watched yet", err=str(error))
            self.timers.after(CREDENTIALS_PERIOD, self._watch_api)
            return
        self._api_feed = ApiFeed(api, self.settings.node_name, self._api_pods, self.post, self._api_changed,
                                 self.fail)
        self._api_feed.start()

    def _api_changed(self) -> None:
        self._deliver(self._api_pods.reading())
        for message in self._api_pods.news():
            self.send(message)

    # ---- saying what happened ----

    def _tell(self, message: Message) -> None:
        if isinstance(message, SourceProblem) and message.origin == ORIGIN:
            self._tell_of_api(message.problem)
        elif isinstance(message, SourceProblem) and message.problem:
            self.log.error("cannot process manifest", path=message.origin, pod=message.pod, err=message.problem)
        elif isinstance(message, SourceProblem):
            self.log.info("the manifest is in order again or gone", path=message.origin)
        elif isinstance(message, DesiredPod) and message.pod is not None:
            meta = message.pod["metadata"]
            name = f"{meta['namespace']}/{meta['name']}"
            detail = self.log.v(4) if message.uid in self._told else self.log  # the API's pods change all the time
            detail.info("pod desired", pod=name, uid=message.uid, source=message.source)
            self._told.add(message.uid)
        elif isinstance(message, DesiredPod):
            self._told.discard(message.uid)
            self.log.info("pod no longer desired", uid=message.uid, source=message.source)

    def _tell_of_api(self, problem: str) -> None:
        if problem:
            self.log.error("cannot watch the pods of the API server: pods go on as they are", err=problem)
        else:
            self.log.info("the pods of the API server are watched again")

    def _report_clashes(self, before: list[Clash]) -> None:
        """An event on the pod that runs, so that its timeline shows that something else claims its name."""
        known = {(clash.loser.item.origin, clash.loser.name) for clash in before}
        for clash in self._merger.clashes:
            if (clash.loser.item.origin, clash.loser.name) not in known:
                text = f'Error validating pod {clash.loser.name} from {clash.loser.source} ' \
                       f'"{clash.loser.item.origin}" due to duplicate pod name, ignoring'
                self.pod_event(clash.winner.pod, "Warning", "FailedValidation", text)

    def _say_once(self, reading: Reading) -> None:
        """Remarks and warnings, when they are new."""
        if reading.note and reading.note != self._notes.get(reading.source):
            self.log.warning(reading.note, source=reading.source)
        self._notes[reading.source] = reading.note
        for item in reading.items.values():
            self._warn(item)
        self._warnings = {origin: texts for origin, texts in self._warnings.items() if texts}

    def _warn(self, item: Item) -> None:
        if item.warnings != self._warnings.get(item.origin, ()):
            for text in item.warnings:
                self.log.warning(text, path=item.origin)
        self._warnings[item.origin] = item.warnings
