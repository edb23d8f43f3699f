"""A program that outlives the command that started it, found again by a file with its process id."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from integration.rig.console import RigError, poll


@dataclass(frozen=True)
class Service:
    """A program, where it writes its log, and where its process id is kept."""

    name: str
    command: Sequence[str | Path]
    pid_file: Path
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def pid(self) -> int:
        """The process id, 0 when it does not run."""
        try:
            pid, born = (int(word) for word in self.pid_file.read_text().split())
        except (OSError, ValueError):
            return 0
        _reap(pid)
        return pid if born and _born(pid) == born else 0

    def start(self) -> None:
        """Start the program in a session of its own; harmless when it runs."""
        if self.pid():
            return
        for file in (self.pid_file, self.log):
            file.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, "ab") as log:
            child = subprocess.Popen(
                [str(word) for word in self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )
        self.pid_file.write_text(f"{child.pid} {_born(child.pid)}\n")

    def send(self, number: int) -> None:
        """Send a signal; nothing happens when the program does not run."""
        pid = self.pid()
        if pid:
            os.kill(pid, number)

    def stop(self, seconds: float = 30, number: int = signal.SIGTERM) -> None:
        """Send `number` and wait for the end. Raises RigError when that takes longer than `seconds`."""
        self.send(number)
        if not poll(lambda: not self.pid(), seconds):
            raise RigError(f"{self.name} does not stop within {seconds:.0f} s:\n{self.tail()}")
        self.pid_file.unlink(missing_ok=True)

    def tail(self, size: int = 2000) -> str:
        """The end of the program's log."""
        try:
            return self.log.read_text(errors="replace")[-size:]
        except OSError as error:
            return f"no log: {error}"


def _born(pid: int) -> int:
    """Start time of a process in clock ticks since boot, which tells it from a later one with its number."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if words[0] == "Z" else int(words[19])


def _reap(pid: int) -> None:
    """Collect the exit status when the program is a child of this process."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass  # started by another process, which is not ours to reap
