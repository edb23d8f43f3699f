"""The stories of pods: bounded lists of aggregated entries, for a bounded number of pods. Pure."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace

from kubelet_mp.wire.messages import TimelineEntry

MAX_ENTRIES = 50
MAX_PODS = 1000
SIMILAR = 10  # entries that differ in their message only, within SIMILAR_SPAN, before they become one
SIMILAR_SPAN = 600.0  # s
COMBINED = "(combined from similar events): "

Key = tuple[str, str, str, str]


@dataclass
class Story:
    """One pod's entries, in the order of their last occurrence."""

    uid: str
    namespace: str
    name: str
    gone: bool = False
    _entries: OrderedDict[Key, TimelineEntry] = field(default_factory=OrderedDict)

    def add(self, entry: TimelineEntry) -> None:
        """Equal entries are counted; many similar ones are combined; the oldest make room.

        An entry of the very same moment is the same one, told again.
        """
        key = self._key(entry)
        old = self._entries.pop(key, None)
        if old is not None and old.last == entry.last:
            entry = old
        elif old is not None:
            entry = replace(entry, first=min(old.first, entry.first), last=max(old.last, entry.last),
                            count=old.count + entry.count)
        elif key[3] == COMBINED:
            entry = self._combine(entry)
        self._entries[key] = entry
        while len(self._entries) > MAX_ENTRIES:
            self._entries.popitem(last=False)

    def _key(self, entry: TimelineEntry) -> Key:
        exact = (entry.type, entry.reason, entry.field_path, entry.message)
        combined = (*exact[:3], COMBINED)
        if exact in self._entries:
            return exact
        known = self._entries.get(combined)
        if known is not None and entry.first - known.last <= SIMILAR_SPAN:
            return combined
        return combined if len(self._similar(entry)) >= SIMILAR else exact

    def _similar(self, entry: TimelineEntry) -> list[Key]:
        want = (entry.type, entry.reason, entry.field_path)
        return [key for key, old in self._entries.items()
                if key[:3] == want and entry.first - old.last <= SIMILAR_SPAN]

    def _combine(self, entry: TimelineEntry) -> TimelineEntry:
        """The first of a combined entry: it takes the place of all that were similar."""
        olds = [self._entries.pop(key) for key in self._similar(entry)]
        return replace(entry, first=min(old.first for old in olds),
                       count=entry.count + sum(old.count for old in olds))

    @property
    def entries(self) -> tuple[TimelineEntry, ...]:
        """By their last occurrence; a combined entry shows its newest message."""
        shown = (replace(e, message=COMBINED + e.message) if key[3] == COMBINED else e
                 for key, e in self._entries.items())
        return tuple(sorted(shown, key=lambda entry: entry.last))


class Library:
    """All stories. When there are too many, those of pods that are gone end first, the oldest of them first."""

    def __init__(self, max_pods: int = MAX_PODS) -> None:
        self._max = max_pods
        self._stories: OrderedDict[str, Story] = OrderedDict()

    def add(self, uid: str, namespace: str, name: str, entry: TimelineEntry) -> list[str]:
        """Write an entry. Returns the UIDs of stories that had to end for it."""
        story = self._stories.pop(uid, None) or Story(uid, namespace, name)
        self._stories[uid] = story
        story.gone = False
        story.add(entry)
        return self._make_room()

    def _make_room(self) -> list[str]:
        ended = []
        while len(self._stories) > self._max:
            uid = next((s.uid for s in self._stories.values() if s.gone), next(iter(self._stories)))
            del self._stories[uid]
            ended.append(uid)
        return ended

    def forget(self, uid: str) -> None:
        """The pod is gone; its story stays as long as there is room."""
        if story := self._stories.get(uid):
            story.gone = True

    def get(self, uid: str) -> Story | None:
        return self._stories.get(uid)

    def uids(self) -> list[str]:
        return list(self._stories)
