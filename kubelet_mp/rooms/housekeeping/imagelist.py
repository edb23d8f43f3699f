"""The duty that tells the reporter which images there are, for the status of the Node."""

from __future__ import annotations

from collections.abc import Callable

from kubelet_mp import log
from kubelet_mp.errors import RuntimeCallError
from kubelet_mp.host.cri import Runtime
from kubelet_mp.model.runtime import Image
from kubelet_mp.rooms.housekeeping.crew import Crew
from kubelet_mp.rooms.timers import Timers
from kubelet_mp.wire.messages import NodeImages

RETRY = 1.0  # s, until the first answer
_log = log.get("housekeeping")

Send = Callable[[NodeImages, str], None]


class ImageList:
    """Lists the images each `period` s, in a thread, and sends them where they changed."""

    def __init__(
        self, runtime: Runtime, timers: Timers, post: Callable[[Callable[[], None]], None], send: Send, period: float
    ) -> None:
        self._runtime, self._timers, self._post, self._send, self._period = runtime, timers, post, send, period
        self._crew = Crew("images", 1)
        self._told: NodeImages | None = None

    def start(self) -> None:
        self._timers.every(self._period, self._look, jitter=0.1, first=0.0)

    def close(self) -> None:
        self._crew.close()

    def replay(self) -> None:
        """The reporter has started."""
        if self._told is not None:
            self._send(self._told, "reporter")

    def _look(self) -> None:
        if not self._crew.busy("images"):
            self._crew.do("images", self._ask)

    def _ask(self) -> None:
        """In the crew's thread."""
        try:
            found = self._runtime.list_images()
        except RuntimeCallError as error:
            _log.debug("cannot list the images", err=str(error))
            self._post(self._failed)
        else:
            self._post(lambda: self._take(found))

    def _failed(self) -> None:
        if self._told is None:
            self._timers.after(RETRY, self._look)

    def _take(self, found: list[Image]) -> None:
        images = NodeImages(tuple(sorted(found, key=lambda image: image.id)))
        if images != self._told:
            self._told = images
            self._send(images, "")
