"""Reads one source on a thread of its own, so that a hanging file system or server stops nobody."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future

from kubelet_mp.rooms.sources.source import Reading, Source


class Feed:
    """`kick` has the source read; `deliver` gets each reading. Both on the thread that runs what is `post`ed.

    An exception of the source is raised there too: the room ends by it and starts anew.
    """

    def __init__(
        self, source: Source, post: Callable[[Callable[[], None]], None], deliver: Callable[[Reading], None]
    ) -> None:
        self.source, self._post, self._deliver = source, post, deliver
        self._orders: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._busy = self._again = False
        self._thread = threading.Thread(target=self._work, name=f"source-{source.name}", daemon=True)
        self._thread.start()

    def kick(self) -> None:
        """Read now, or once more after the reading that is under way."""
        if self._busy:
            self._again = True
            return
        self._busy = True
        self._orders.put(True)

    def close(self) -> None:
        """Let the thread end after what it is doing; a thread that hangs is left behind."""
        self._orders.put(False)
        self._thread.join(timeout=0.5)
        if not self._thread.is_alive():
            self.source.close()

    def _work(self) -> None:
        while self._orders.get():
            outcome: Future[Reading] = Future()
            try:
                outcome.set_result(self.source.read())
            except BaseException as error:  # noqa: BLE001 - raised again where the room has its edge
                outcome.set_exception(error)
            self._post(lambda outcome=outcome: self._done(outcome))  # type: ignore[misc]

    def _done(self, outcome: Future[Reading]) -> None:
        self._busy = False
        reading = outcome.result()
        if self._again:
            self._again = False
            self.kick()
        self._deliver(reading)
