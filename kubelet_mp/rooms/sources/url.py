"""Pods from a URL (--manifest-url, staticPodURL): a Pod or a PodList, taken whole or not at all.

An error, be it of the network or of the content, leaves the last good pods as they are. It is asked at the
same pace while it fails: its pods shall be there soon after the server is.
Source: Kubernetes 1.37 pkg/kubelet/config/http.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubelet_mp.host.fetch import Fetcher, FetchError, shown_url
from kubelet_mp.model.clock import SYSTEM, Clock, rfc3339_nano
from kubelet_mp.model.document import MAX_BYTES
from kubelet_mp.model.manifest import InvalidManifest, static_pods
from kubelet_mp.model.staticpod import Origin
from kubelet_mp.rooms.sources.source import Item, Pod, Reading, Source

TIMEOUT = 10.0  # s


class UrlSource(Source):
    """`headers`: name → values, sent with each request; `period` in seconds."""

    name = "http"

    def __init__(
        self, url: str, headers: Mapping[str, Sequence[str]], node: str, period: float,
        *, clock: Clock = SYSTEM, timeout: float = TIMEOUT, limit: int = MAX_BYTES,
    ) -> None:
        self.period = period
        self._origin, self._shown, self._clock = Origin("http", url, node), shown_url(url), clock
        joined = {name: ", ".join(values) for name, values in headers.items()}
        self._fetcher = Fetcher(url, joined, timeout=timeout, limit=limit)
        self._data: bytes | None = None
        self._pods: tuple[Pod, ...] = ()
        self._warnings: tuple[str, ...] = ()
        self._problem, self._pod = "", ""
        self._ready = False

    def read(self) -> Reading:
        problem, pod = "", ""
        try:
            self._take(self._fetcher.get())
            problem, pod = self._problem, self._pod
        except FetchError as error:
            problem = str(error)
        item = Item(self._shown, self._pods, problem, pod, warnings=self._warnings)
        return Reading(self.name, {self._shown: item}, self._ready)

    def close(self) -> None:
        self._fetcher.close()

    def _take(self, data: bytes) -> None:
        """Decode what was not seen just before; a bad document keeps the pods of the last good one."""
        if data == self._data:
            return
        self._data, self._problem, self._pod = data, "", ""
        if not data:
            self._pods, self._ready = (), True
            self._problem = "the answer is empty: no pods from this URL"
            return
        seen = rfc3339_nano(self._clock.wall_time_ns())
        try:
            decoded = static_pods(data, self._origin, seen, lists=True)
        except InvalidManifest as error:
            self._problem, self._pod = error.reason, error.pod
            return
        self._pods, self._warnings, self._ready = tuple(decoded.pods), tuple(decoded.warnings), True
