"""GETs of the API server that many threads want at once: one request is made, and all of them get its answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kubelet_mp.errors import ApiError

FAILED = 1.0  # s that an error, or that there is no such object, counts as an answer
PATIENCE = 30.0  # s that is waited for a request of another thread
_LATE = "the API server did not answer in time"

Json = dict[str, Any]


@dataclass(slots=True)
class _Answer:
    """Of a request that began at `asked`. Until `done` the error stands for a request that never ended."""

    asked: float
    done: threading.Event = field(default_factory=threading.Event)
    found: Json | None = None
    error: ApiError | None = field(default_factory=lambda: ApiError(_LATE))


class SharedGets:
    """`get` GETs a path and raises ApiError. Thread-safe. keep: s after which an answer is forgotten.

    slim: what of an object is kept.
    """

    def __init__(self, get: Callable[[str], Mapping[str, Any]], now: Callable[[], float], *, keep: float = 2.0,
                 slim: Callable[[Mapping[str, Any]], Json] = dict) -> None:
        self._get, self._now, self._keep, self._slim = get, now, keep, slim
        self._lock = threading.Lock()
        self._answers: dict[str, _Answer] = {}

    def get(self, path: str, max_age: float) -> Json | None:
        """The object as it was at most `max_age` s ago, None where there was none. Raises ApiError."""
        answer, mine = self._claim(path, max_age)
        if mine:
            self._ask(path, answer)
        else:
            answer.done.wait(PATIENCE)
        if answer.error is not None:
            raise answer.error
        return answer.found

    def forget(self, paths: Iterable[str]) -> None:
        """Drop the answers for these."""
        with self._lock:
            for path in paths:
                self._answers.pop(path, None)

    def _claim(self, path: str, max_age: float) -> tuple[_Answer, bool]:
        """An answer to use, and whether the caller has to get it."""
        now = self._now()
        with self._lock:
            known = self._answers.get(path)
            if known is not None and now - known.asked < _age(known, max_age):
                return known, False
            self._answers = {p: a for p, a in self._answers.items() if now - a.asked < self._keep}
            fresh = self._answers[path] = _Answer(now)
            return fresh, True

    def _ask(self, path: str, answer: _Answer) -> None:
        try:
            answer.found = self._slim(self._get(path))
            answer.error = None
        except ApiError as error:
            answer.error = None if error.not_found else error
        finally:
            answer.done.set()


def _age(answer: _Answer, max_age: float) -> float:
    good = not answer.done.is_set() or (answer.error is None and answer.found is not None)
    return max_age if good else min(max_age, FAILED)
