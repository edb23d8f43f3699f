"""The quickstart: a private containerd and kubelet-mp on a folder of manifests, and a page from a pod."""

from __future__ import annotations

import json
import shlex
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from integration.rig import cache, layout, sweep
from integration.rig.agent import ENVIRONMENT, command_line
from integration.rig.console import RigError, poll, say
from integration.rig.ports import free_port, may_listen
from integration.rig.runtime import Runtime, start
from integration.rig.service import Service

_SAMPLES = cache.TREE / "integration" / "quickstart.d"
_PORTS = {"port": 10250, "readOnlyPort": 10255, "healthzPort": 10248}
_POD = "web"
_TELL_EVERY = 5.0  # seconds


class Quickstart:
    """All parts of the quickstart and where they are kept."""

    def __init__(self) -> None:
        place = layout.quickstart()
        self.runtime = Runtime(place, layout.debian_binaries())
        self.home = place.data / "kubelet"
        self.manifests = Path(f"/etc/kubelet-mp-{place.name}/manifests")
        self.config = self.home / "config.yaml"
        self.node = socket.gethostname().lower()
        self.program = place.data / "bin" / "kubelet-mp"
        self.agent = Service(
            "kubelet-mp",
            command_line(self.config, self.home, self.node),
            place.run / "kubelet-mp.pid",
            place.log / "kubelet-mp.log",
            ENVIRONMENT,
        )

    # -- start

    def start(self) -> None:
        start(self.runtime.layout, self.runtime.bins)
        self._write_files()
        if self.agent.pid():
            say("kubelet-mp runs already")
        else:
            sweep.make_cgroup(self.runtime.layout.cgroup)
            self.agent.start()
            say(f"kubelet-mp started on {self.manifests}, log in {self.agent.log}")
        address = self._wait_for_pod()
        say(f"pod {_POD} runs at {address}")
        page = self._wait(lambda: _fetch(f"http://{address}/"), 20, f"http://{address}/ answers")
        print(f"\n$ curl http://{address}/\n{page}")
        self._show("pods")
        print(self._how_to_go_on())

    def _write_files(self) -> None:
        """Write configuration, sample manifest and command, each only when it is not there."""
        if not self.manifests.exists():
            shutil.copytree(_SAMPLES, self.manifests)
        self.home.mkdir(parents=True, exist_ok=True)
        if not self.agent.pid():
            self.config.write_text(yaml.safe_dump(self._configuration(), sort_keys=False))
        self.program.parent.mkdir(parents=True, exist_ok=True)
        self.program.write_text(self._program_text())
        self.program.chmod(0o755)

    def _configuration(self) -> dict[str, Any]:
        ports = {name: port if may_listen(port) else free_port() for name, port in _PORTS.items()}
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "staticPodPath": str(self.manifests),
            "podLogsDir": str(self.runtime.layout.log / "pods"),
            "containerRuntimeEndpoint": self.runtime.endpoint,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self.runtime.layout.cgroup,
            # standalone: there is no API server that could check who asks, so only this machine may ask
            "address": "127.0.0.1",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            # a trial must run on any machine
            "failCgroupV1": False,
            "failSwapOn": False,
            **ports,
        }

    def _program_text(self) -> str:
        python, tree = shlex.quote(sys.executable), shlex.quote(str(cache.TREE))
        return (
            "#!/bin/sh\n"
            "# kubelet-mp's commands for the agent of the quickstart: pods, logs POD, why POD\n"
            f"command=${{1:?pods, logs POD or why POD}}; shift\n"
            f"PYTHONPATH={tree} exec {python} -m kubelet_mp"
            f' "$command" --root-dir {shlex.quote(str(self.home / "root"))} "$@"\n'
        )

    def _wait_for_pod(self) -> str:
        try:
            return str(self._wait(self._pod_address, 90, f"pod {_POD} runs"))
        except RigError as error:
            if self.agent.pid():
                self._show("why", f"{_POD}-{self.node}")
            raise RigError(f"{error}\nThe end of {self.agent.log}:\n{self.agent.tail(4000)}") from error

    def _pod_address(self) -> str:
        """The address of the running sample pod, empty while there is none."""
        if not self.agent.pid():
            raise RigError("kubelet-mp ended")
        port = yaml.safe_load(self.config.read_text())["readOnlyPort"]
        for pod in json.loads(_fetch(f"http://127.0.0.1:{port}/pods") or "{}").get("items") or []:
            status = pod.get("status", {})
            if pod["metadata"]["name"] == f"{_POD}-{self.node}" and status.get("phase") == "Running":
                return str(status.get("podIP", ""))
        return ""

    def _wait(self, attempt: Callable[[], str], seconds: float, what: str) -> str:
        for _ in range(round(seconds / _TELL_EVERY)):
            if value := poll(attempt, _TELL_EVERY):
                return value
            say(f"waiting until {what}")
        raise RigError(f"not within {seconds:.0f} s: {what}")

    def _show(self, *words: str) -> None:
        """Run one of kubelet-mp's own commands in front of the user."""
        print(f"$ kubelet-mp {' '.join(words)}", flush=True)
        subprocess.run([self.program, *words], timeout=30, check=False)

    def _how_to_go_on(self) -> str:
        return f"""
The agent watches {self.manifests}:
  edit {self.manifests}/web.yaml, or put another pod manifest beside it
    (images that the runtime has: docker.io/library/busybox:latest; any registry that this machine reaches)
  {self.program} pods                    what runs
  {self.program} why {_POD}-{self.node}     what a pod waits for
  {self.program} logs {_POD}-{self.node}    what it prints
Logs: {self.agent.log}, {self.runtime.log}
To stop and remove all of it: {cache.TREE}/integration/quickstart stop
"""

    # -- stop

    def stop(self) -> None:
        if self.agent.pid():
            say("stopping kubelet-mp")
            self.agent.stop()
        say("removing its pods, the private containerd and their folders")
        left = self.runtime.stop(self.home)
        for line in left:
            say(f"had to be removed by force: {line}")
        shutil.rmtree(self.runtime.layout.log, ignore_errors=True)
        if _same_files(self.manifests, _SAMPLES):
            shutil.rmtree(self.manifests.parent, ignore_errors=True)
        elif self.manifests.exists():
            say(f"your manifests stay in {self.manifests}")
        say("stopped")


def _same_files(one: Path, other: Path) -> bool:
    """Whether two folders hold the same files with the same content."""
    return _files(one) == _files(other)


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*") if path.is_file()}


def _fetch(url: str) -> str:
    """The body that a URL answers, empty while it does not."""
    without_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with without_proxy.open(url, timeout=5) as answer:
            return str(answer.read().decode())
    except (urllib.error.URLError, OSError):
        return ""


def main(words: list[str]) -> int:
    try:
        task = Quickstart()
        task.stop() if words == ["stop"] else task.start()
    except RigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
