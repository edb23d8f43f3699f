"""A folder outside the tree for what is slow to fetch or build, each part under the hash of its inputs."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
_DONE = ".complete"


def folder() -> Path:
    """The cache folder: `KUBELET_MP_CACHE`, or /var/cache/kubelet-mp."""
    return Path(os.environ.get("KUBELET_MP_CACHE") or "/var/cache/kubelet-mp")


def key(*inputs: str | bytes | Path) -> str:
    """Twelve hex digits that change when any input changes; a Path stands for the content of its file."""
    digest = hashlib.sha256()
    for item in inputs:
        if isinstance(item, Path):
            item = item.read_bytes()
        data = item.encode() if isinstance(item, str) else item
        digest.update(hashlib.sha256(data).digest())
    return digest.hexdigest()[:12]


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold an exclusive lock of the cache, so that two runs do not build one part at the same time."""
    folder().mkdir(parents=True, exist_ok=True)
    with open(folder() / f".{name}.lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def ensure(kind: str, digest: str, build: Callable[[Path], None]) -> Path:
    """Return the folder KIND-DIGEST, having `build` fill it when it is missing or was left half-made.

    Folders of the same kind with another digest are removed once the new one is complete.
    """
    target = folder() / f"{kind}-{digest}"
    if (target / _DONE).exists():
        return target
    with locked(kind):
        if not (target / _DONE).exists():
            shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            build(target)
            (target / _DONE).touch()
            for old in folder().glob(f"{kind}-*"):
                if old != target:
                    shutil.rmtree(old, ignore_errors=True)
    return target
