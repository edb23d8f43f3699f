"""What the rig tells the person who started it, waiting, and external commands with time limits."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_START = time.monotonic()


class RigError(Exception):
    """A part could not be fetched, built or started; the text says which, and what to do."""


def say(text: str) -> None:
    """Print one line of progress on stderr, with the seconds since the start."""
    print(f"[{time.monotonic() - _START:4.0f}s] {text}", file=sys.stderr, flush=True)


def poll(probe: Callable[[], T], seconds: float, every: float = 0.05) -> T:
    """Call `probe` until its result is true or `seconds` are over; return the last result."""
    deadline = time.monotonic() + seconds
    while not (result := probe()) and time.monotonic() < deadline:
        time.sleep(every)
    return result


def run(
    command: Sequence[str | Path],
    *,
    timeout: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    text: str | None = None,
) -> str:
    """Run a command to its end and return its standard output.

    `env` is added to the environment, `text` is its standard input, `timeout` is in seconds.
    Raises RigError with the end of the command's output when it fails or takes too long.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            timeout=timeout,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            input=text or "",
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RigError(f"{' '.join(words[:4])} … did not end within {timeout:.0f} s") from error
    except OSError as error:
        raise RigError(f"{words[0]} cannot be run: {error}") from error
    if done.returncode:
        tail = (done.stdout + done.stderr)[-3000:]
        raise RigError(f"{' '.join(words)}\nended with {done.returncode}:\n{tail}")
    return done.stdout
