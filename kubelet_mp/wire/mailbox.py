"""What a busy room will get next: the newest message of each kind and key, in the order of arrival.

A newer message goes to the end: where "admitted" follows "stopped" for the same pod, it must arrive after it.
"""

from __future__ import annotations

from kubelet_mp.wire.envelope import LOSSY, Envelope

BATCH_BYTES = 512 * 1024
BATCH_COUNT = 256


class Mailbox:
    """Bounded by what the messages are about, and for lossy kinds (events) by number."""

    def __init__(self, max_lossy: int = 2000) -> None:
        self._kept: dict[tuple[str, str, str], Envelope] = {}
        self._lossy = 0
        self._max_lossy = max_lossy
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, envelope: Envelope) -> None:
        slot = (envelope.kind, envelope.key, envelope.room)
        older = self._kept.pop(slot, None)
        if envelope.kind in LOSSY and older is None:
            if self._lossy >= self._max_lossy:
                self._drop_oldest_lossy()
            self._lossy += 1
        self._kept[slot] = envelope

    def take(self, max_bytes: int = BATCH_BYTES, max_count: int = BATCH_COUNT) -> list[Envelope]:
        """The next batch, oldest first; at least one message if there is any, however large."""
        batch: list[Envelope] = []
        size = 0
        for envelope in self._kept.values():
            size += len(envelope.payload)
            if batch and (size > max_bytes or len(batch) >= max_count):
                break
            batch.append(envelope)
        for envelope in batch:
            del self._kept[(envelope.kind, envelope.key, envelope.room)]
            self._lossy -= envelope.kind in LOSSY
        return batch

    def _drop_oldest_lossy(self) -> None:
        oldest = next(slot for slot, envelope in self._kept.items() if envelope.kind in LOSSY)
        del self._kept[oldest]
        self._lossy -= 1
        self.dropped += 1
