"""The small on-disk record of each pod, R/pods/UID/kubelet-mp.json: what the runtime may forget.

It keeps the manifest (so that a pod whose manifest is gone is stopped with its own grace), the admission, and
the last status (start time, restart counts, exit codes). Written only when it changed, whole or not at all.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kubelet_mp import log
from kubelet_mp.host import files
from kubelet_mp.model.clock import monotonic

NAME = "kubelet-mp.json"
LIMIT = 16 * 1024 * 1024  # bytes: a manifest may have 10 MB
VERSION = 1


@dataclass(slots=True)
class Record:
    """`stopped`: nothing of it runs and nothing will; `admitted`: it is never rejected any more.

    pod: with the resources that it was given. resize: what of a resize is not carried out (resizing.Resize.plain).
    """

    uid: str
    pod: dict[str, Any]
    source: str
    admitted: bool = False
    stopped: bool = False
    status: dict[str, Any] = field(default_factory=dict)
    resize: dict[str, Any] = field(default_factory=dict)

    def encode(self) -> bytes:
        value = {"version": VERSION, "uid": self.uid, "pod": self.pod, "source": self.source,
                 "admitted": self.admitted, "stopped": self.stopped, "status": self.status, "resize": self.resize}
        return json.dumps(value, separators=(",", ":")).encode()


def decode(data: bytes, uid: str) -> Record:
    """The record in `data`. Raises ValueError for what is none, or one of another pod."""
    value = json.loads(data)
    if not isinstance(value, dict) or value.get("version") != VERSION or value.get("uid") != uid:
        raise ValueError("not a pod record of this version and pod")
    pod, status, resize = value.get("pod"), value.get("status"), value.get("resize") or {}
    if not isinstance(pod, dict) or not isinstance(pod.get("metadata"), dict) or not isinstance(status, dict):
        raise ValueError("the record's pod or status is damaged")
    return Record(uid, pod, str(value.get("source", "")), bool(value.get("admitted")),
                  bool(value.get("stopped")), status, resize if isinstance(resize, dict) else {})


def load_all(pods_dir: str) -> tuple[list[Record], list[tuple[str, str]]]:
    """(all readable records, [(path, problem)] of the others). No directory: nothing."""
    records: list[Record] = []
    problems: list[tuple[str, str]] = []
    try:
        uids = sorted(os.listdir(pods_dir))
    except FileNotFoundError:
        return records, problems
    for uid in uids:
        path = os.path.join(pods_dir, uid, NAME)
        try:
            records.append(decode(files.read_limited(path, LIMIT), uid))
        except files.MissingFile:
            continue
        except (files.FileError, ValueError) as error:
            problems.append((path, str(error)))
    return records, problems


class Recorder:
    """Writes records from a thread of its own, the newest of each pod; the main thread waits for no disk.

    What is not urgent is written after `delay` s, so that the many changes of a pod that starts cost one write.
    """

    def __init__(self, pods_dir: str, failed: Callable[[str, str], None] = lambda uid, problem: None,
                 delay: float = 1.0) -> None:
        self._dir, self._failed, self._delay = pods_dir, failed, delay
        self._cond = threading.Condition()
        self._pending: dict[str, tuple[float, Record | None]] = {}
        self._newest: dict[str, Record] = {}
        self._busy = self._closing = False
        self._hurry = 0
        self._log = log.get("pods")
        threading.Thread(target=self._serve, name="records", daemon=True).start()

    def write(self, record: Record, urgent: bool = True) -> None:
        """Have the record written soon, if it is not the one given last. What it holds is not changed any more."""
        due = monotonic() + (0.0 if urgent else self._delay)
        with self._cond:
            if record == self._newest.get(record.uid):
                return
            self._newest[record.uid] = record
            before = self._pending.get(record.uid)
            self._pending[record.uid] = (min(due, before[0]) if before else due, record)
            self._cond.notify_all()

    def drop(self, uid: str) -> None:
        """Remove the record, at once if it is not being written; the directory stays."""
        with self._cond:
            self._newest.pop(uid, None)
            self._pending[uid] = (0.0, None)
            self._cond.notify_all()

    def flush(self, seconds: float) -> bool:
        """Have everything written now, and wait for it; False if it is not done after `seconds`."""
        with self._cond:
            self._hurry += 1
            self._cond.notify_all()
            try:
                return self._cond.wait_for(lambda: not self._pending and not self._busy, seconds)
            finally:
                self._hurry -= 1

    def settle(self, uid: str, seconds: float) -> bool:
        """Wait until nothing of this pod is to be written."""
        with self._cond:
            return self._cond.wait_for(lambda: uid not in self._pending and not self._busy, seconds)

    def close(self, seconds: float = 2.0) -> None:
        self.flush(seconds)
        with self._cond:
            self._closing = True
            self._cond.notify_all()

    def _serve(self) -> None:
        while True:
            with self._cond:
                uid = self._next()
                if uid is None:
                    return
                record = self._pending.pop(uid)[1]
                self._busy = True
            self._store(uid, record)
            with self._cond:
                self._busy = False
                self._cond.notify_all()

    def _next(self) -> str | None:
        """The pod whose record is due first, None at the end. Called and returns with the lock."""
        while True:
            if self._pending:
                uid = min(self._pending, key=lambda u: self._pending[u][0])
                left = self._pending[uid][0] - monotonic()
                if left <= 0 or self._hurry or self._closing:
                    return uid
                self._cond.wait(left)
            elif self._closing:
                return None
            else:
                self._cond.wait()

    def _store(self, uid: str, record: Record | None) -> None:
        path = os.path.join(self._dir, uid, NAME)
        try:
            if record is None:
                files.remove_file(path)
                return
            files.make_dirs(os.path.dirname(path), 0o750)
            # flushing cost 110 pods started at once a third of their time; after a power cut no container runs,
            # and what a lost record holds (restart counts) is read from the log directories
            files.write_atomic(path, record.encode(), durable=False)
        except files.FileError as error:
            self._newest.pop(uid, None)  # so that the next change, or the same again, is tried
            self._log.error("the pod's record is not up to date", uid=uid, err=str(error))
            self._failed(uid, str(error))
