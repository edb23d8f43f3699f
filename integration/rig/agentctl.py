"""One agent with the usual ports, root and node name, driven from a command line."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import yaml

from integration.rig import layout, sweep
from integration.rig.agent import ENVIRONMENT, command_line
from integration.rig.console import RigError, poll
from integration.rig.runtime import Runtime, start
from integration.rig.service import Service

_NODE = "node-1"


class Control:
    """The runtime, the agent and where they are kept."""

    def __init__(self) -> None:
        debian = os.environ.get("KUBELET_MP_RUNTIME") == "debian"
        place = layout.by_hand(debian)
        self.runtime = Runtime(place, layout.debian_binaries() if debian else layout.built_binaries())
        self.home = place.data / "agent"
        self.manifests, self.config = self.home / "manifests", self.home / "config.yaml"
        self.log = place.log / "kubelet-mp.log"
        self.agent = Service(
            "kubelet-mp", self._command(self.config, _NODE), place.run / "agent.pid", self.log, ENVIRONMENT
        )

    def _command(self, config: Path, node: str) -> list[str]:
        # as flags, because a configuration that is handed in knows nothing of this runtime
        flags = ("--container-runtime-endpoint", self.runtime.endpoint)
        return command_line(config, self.home, node, *flags, "--cgroup-root", self.runtime.layout.cgroup)

    def up(self) -> None:
        start(self.runtime.layout, self.runtime.bins)
        self.manifests.mkdir(parents=True, exist_ok=True)
        self.config.write_text(yaml.safe_dump(self._configuration(), sort_keys=False))
        self.start()
        self._wait_until_it_serves()
        self.info()

    def _configuration(self) -> dict[str, object]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "staticPodPath": str(self.manifests),
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "failCgroupV1": False,
            "failSwapOn": False,
            "readOnlyPort": 10255,
        }

    def _wait_until_it_serves(self, seconds: float = 30) -> None:
        """Wait for the HTTPS port. Raises RigError with the log's end when it does not answer."""
        poll(lambda: _listens(10250) or not self.agent.pid(), seconds)
        if not self.agent.pid() or not _listens(10250):
            raise RigError(f"kubelet-mp does not serve:\n{self.agent.tail()}")

    def start(self) -> None:
        sweep.make_cgroup(self.runtime.layout.cgroup)
        self.agent.start()

    def stop(self) -> None:
        self.agent.stop()

    def kill(self) -> None:
        self.agent.stop(number=signal.SIGKILL)

    def run(self, file: str, node: str = _NODE) -> None:
        """Become the agent."""
        sweep.make_cgroup(self.runtime.layout.cgroup)
        words = self._command(Path(file).resolve(), node)
        os.execvpe(words[0], words, {**os.environ, **ENVIRONMENT})

    def daemon(self, word: str) -> None:
        actions: dict[str, Callable[[], None]] = {
            "start": self.runtime.start_daemon,
            "stop": self.runtime.stop_daemon,
        }
        if word not in actions:
            raise RigError(f"runtime {word}: it is start or stop")
        actions[word]()

    def info(self) -> None:
        known = {
            "manifests": self.manifests,
            "root": self.home / "root",
            "cri": self.runtime.layout.socket,
            "node": _NODE,
            "pods_url": "https://127.0.0.1:10250/pods",
            "log": self.log,
        }
        for name, value in known.items():
            print(f"{name}={value}")

    def down(self) -> None:
        self.agent.stop()
        for line in self.runtime.stop(self.home):
            print(f"had to be removed by force: {line}", file=sys.stderr)
        shutil.rmtree(self.runtime.layout.log, ignore_errors=True)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def main(words: list[str]) -> int:
    control = Control()
    actions: dict[str, Callable[..., None]] = {
        "up": control.up,
        "start": control.start,
        "stop": control.stop,
        "kill": control.kill,
        "run": control.run,
        "runtime": control.daemon,
        "info": control.info,
        "down": control.down,
    }
    if words[0] not in actions:
        raise RigError(f"unknown word {words[0]}, there are: {' '.join(actions)}")
    actions[words[0]](*words[1:])
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except RigError as error:
        sys.exit(f"error: {error}")
