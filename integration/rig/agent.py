"""kubelet-mp under test: started with a private root, ports and cgroup, watched from outside, removed."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from integration.rig import cache, sweep
from integration.rig.console import RigError, poll
from integration.rig.cri import Cri
from integration.rig.ports import free_port
from integration.rig.runtime import Runtime

ROOM_TITLE = re.compile(r"^kubelet-mp: (\S+)")


def merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Merge nested mappings; None in `change` removes the key."""
    result = dict(base)
    for name, value in change.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping) and isinstance(result.get(name), Mapping):
            result[name] = merge(result[name], value)
        else:
            result[name] = value
    return result


ENVIRONMENT = {"PYTHONPATH": str(cache.TREE)}


def command_line(config: Path, home: Path, node: str, *flags: str) -> list[str]:
    """The agent of this tree with its root and certificates below `home`."""
    return [
        *(sys.executable, "-m", "kubelet_mp", "--config", str(config)),
        *("--root-dir", str(home / "root"), "--cert-dir", str(home / "pki")),
        *("--hostname-override", node, *flags),
    ]


class Agent:
    """One kubelet-mp on a runtime. Everything that it writes lies below `home`."""

    def __init__(
        self,
        runtime: Runtime,
        home: Path,
        *,
        node: str = "node-1",
        config: Mapping[str, Any] | None = None,
        flags: Sequence[str] = (),
        kubeconfig: Path | None = None,
        address: str = "127.0.0.1",
    ) -> None:
        """`kubeconfig` makes it a node of a cluster; then `address` is the node's, else only where it listens."""
        self.runtime, self.home, self.node, self.address = runtime, home, node, address
        self.flags = [*_cluster_flags(kubeconfig, address), *flags]
        self.manifests, self.root, self.pod_logs = home / "manifests", home / "root", home / "pod-logs"
        self.log, self.config_file = home / "kubelet.log", home / "config.yaml"
        self.cgroup = f"{runtime.layout.cgroup}/{home.name}"
        self.ports = {name: free_port() for name in ("port", "readOnlyPort", "healthzPort")}
        self.process: subprocess.Popen[bytes] | None = None
        self._cri: Cri | None = None
        for folder in (self.manifests, self.root, self.pod_logs):
            folder.mkdir(parents=True, exist_ok=True)
        self.configure(config or {})

    # -- configuration

    def configure(self, config: Mapping[str, Any]) -> None:
        """Write the configuration: the defaults of the tests with `config` merged over them."""
        self.config = merge(self._defaults(), config)
        self.config_file.write_text(json.dumps(self.config, indent=1))

    def _defaults(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "staticPodPath": str(self.manifests),
            "podLogsDir": str(self.pod_logs),
            "containerRuntimeEndpoint": self.runtime.endpoint,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self.cgroup,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "failCgroupV1": False,
            "failSwapOn": False,
            "address": self.address,
            **self.ports,
        }

    def command(self) -> list[str]:
        """The command line of the agent."""
        return command_line(self.config_file, self.home, self.node, *self.flags)

    # -- life

    def start(self, *, wait: bool = True, seconds: float = 30) -> Agent:
        """Start the agent; with `wait`, until it serves its pods."""
        if self.alive():
            raise RigError("the agent runs already")
        sweep.make_cgroup(self.cgroup)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.home,
                env={**os.environ, **ENVIRONMENT},
                start_new_session=True,
            )
        if wait:
            self.wait_ready(seconds)
        return self

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def wait_ready(self, seconds: float = 30) -> None:
        """Wait until the HTTPS port answers with the pods. Raises RigError with the log's end otherwise."""

        def ready() -> bool:
            if not self.alive():
                code = self.process.returncode if self.process else None
                raise RigError(f"the agent ended with {code}:\n{self.log_tail()}")
            try:
                return self.get("/pods", timeout=3)[0] == http.client.OK
            except OSError:
                return False

        self.wait(ready, seconds, "the agent serves /pods")

    def wait_exit(self, seconds: float = 30) -> int:
        """Wait until the agent ended by itself; return its exit code."""
        assert self.process, "the agent was never started"
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise RigError(f"the agent still runs after {seconds:.0f} s:\n{self.log_tail()}") from error

    def stop(self, seconds: float = 30) -> int:
        """End the agent with SIGTERM; its pods go on. Returns the exit code."""
        if self.process and self.alive():
            self.process.terminate()
        return self.wait_exit(seconds)

    def kill(self) -> None:
        """End the supervisor with SIGKILL, as a crash would."""
        if self.process:
            self.process.kill()
            self.process.wait(10)

    def restart(self) -> None:
        self.stop()
        self.start()

    # -- processes

    def family(self) -> dict[int, str]:
        """Process ids and command lines of every process of the agent, also of orphans after a crash."""
        if not self.process:
            return {}
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and _session(entry) == self.process.pid:
                words = sweep.command_line(int(entry.name))
                if words:
                    found[int(entry.name)] = words
        return found

    def rooms(self) -> dict[str, int]:
        """Process ids by room, with `supervisor`; of a room with more processes the first."""
        found: dict[str, int] = {}
        for pid, words in sorted(self.family().items()):
            title = ROOM_TITLE.match(words)
            if title:
                found.setdefault(title.group(1), pid)
        return found

    # -- what it serves

    def get(
        self, path: str, *, port: str = "port", timeout: float = 10, headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes]:
        """GET a path from one of the agent's ports: `port` (TLS), `readOnlyPort`, `healthzPort`."""
        number, host = self.config[port], "127.0.0.1" if port == "healthzPort" else self.config["address"]
        client: http.client.HTTPConnection
        if port == "port":
            trust_any = ssl._create_unverified_context()
            client = http.client.HTTPSConnection(host, number, timeout=timeout, context=trust_any)
        else:
            client = http.client.HTTPConnection(host, number, timeout=timeout)
        try:
            client.request("GET", path, headers=dict(headers or {}))
            answer = client.getresponse()
            return answer.status, answer.read()
        finally:
            client.close()

    def pods(self) -> list[dict[str, Any]]:
        """The pods as `/pods` shows them. Raises RigError when the answer is not 200."""
        code, body = self.get("/pods")
        if code != http.client.OK:
            raise RigError(f"/pods answers {code}: {body[:300]!r}")
        return json.loads(body).get("items") or []

    def pod(self, name: str) -> dict[str, Any] | None:
        """One static pod by its name in the manifest (or by its full name), None when there is none."""
        names = (name, self.full_name(name))
        return next((pod for pod in self.pods() if pod["metadata"]["name"] in names), None)

    def status(self, name: str) -> dict[str, Any]:
        """A pod's status, empty when there is no such pod."""
        return (self.pod(name) or {}).get("status") or {}

    def full_name(self, name: str) -> str:
        return f"{name}-{self.node.strip().lower()}"

    def cli(self, *words: str, seconds: float = 20) -> subprocess.CompletedProcess[str]:
        """Run `kubelet-mp WORDS --root-dir …`, as a person on the node would."""
        command = [sys.executable, "-m", "kubelet_mp", *words, "--root-dir", str(self.root)]
        return subprocess.run(
            command,
            env={**os.environ, **ENVIRONMENT},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    @property
    def cri(self) -> Cri:
        """A client of the runtime, for a look behind the agent's back."""
        if self._cri is None:
            self._cri = self.runtime.cri()
        return self._cri

    def log_tail(self, size: int = 4000) -> str:
        """The end of the agent's log."""
        try:
            return self.log.read_text(errors="replace")[-size:]
        except OSError:
            return "(no log)"

    # -- manifests

    def put(self, name: str, manifest: Mapping[str, Any] | str, file: str | None = None) -> Path:
        """Write a manifest in one step, as NAME.yaml or `file`; text is written as it is."""
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)
        target = self.manifests / (file or f"{name}.yaml")
        fresh = self.manifests / f".{target.name}.new"
        fresh.write_text(text)
        fresh.rename(target)
        return target

    def remove(self, name: str, file: str | None = None) -> None:
        (self.manifests / (file or f"{name}.yaml")).unlink(missing_ok=True)

    # -- waiting

    def wait(self, done: Callable[[], Any], seconds: float, what: str) -> Any:
        """Return the first true value of `done`. Raises RigError that names `what`."""
        value = poll(done, seconds, every=0.1)
        if not value:
            raise RigError(f"not within {seconds:.0f} s: {what}\n{self.log_tail()}")
        return value

    def wait_running(self, name: str, count: int = 1, seconds: float = 60) -> list[str]:
        """Wait until `count` containers of a static pod run; return their ids."""

        def running() -> list[str] | None:
            listed = self.cri.containers(pod=self.full_name(name), running=True)
            return [one.id for one in listed] if len(listed) >= count else None

        return list(self.wait(running, seconds, f"{count} container(s) of {name} run"))

    def container_status(self, name: str, container: str = "c") -> dict[str, Any]:
        """One container's status, an empty one when there is none."""
        status = self.status(name)
        listed = (status.get("initContainerStatuses") or []) + (status.get("containerStatuses") or [])
        return next((one for one in listed if one["name"] == container), {})

    def output(self, container_id: str) -> str:
        """What a container has printed, from its log file."""
        status, _ = self.cri.inspect(container_id)
        try:
            lines = Path(status.log_path).read_text().splitlines()
        except OSError:
            return ""
        parts = [line.split(" ", 3) for line in lines]
        return "".join(part[3] + ("\n" if part[2] == "F" else "") for part in parts if len(part) == 4)

    def wait_gone(self, name: str, seconds: float = 60) -> None:
        """Wait until the runtime has no running container of a static pod."""
        self.wait(
            lambda: not self.cri.containers(pod=self.full_name(name), running=True),
            seconds,
            f"{name} is gone",
        )

    # -- the end

    def clean(self) -> list[str]:
        """Stop the agent, remove its pods, cgroups, mounts and folders.

        Returns a line for each process of the agent that was still there after the supervisor's end.
        """
        self.end()
        orphans = [f"process {pid} {words}" for pid, words in self._orphans().items()]
        for pid in self.family():
            sweep.kill(pid)
        self._remove_pods()
        sweep.remove_cgroup(self.cgroup)
        sweep.after_agent(self.runtime.layout, self.home)
        shutil.rmtree(self.home, ignore_errors=True)
        return orphans

    def end(self) -> None:
        """Stop the agent however it is, paused rooms too."""
        for pid in self.family():
            sweep.kill(pid, signal.SIGCONT)
        try:
            if self.alive():
                self.stop()
        except RigError:
            self.kill()

    def _orphans(self, seconds: float = 10) -> dict[int, str]:
        """What is left of the agent's processes when they have had time to notice the supervisor's end."""
        poll(lambda: not self.family(), seconds)
        return self.family()

    def _remove_pods(self) -> None:
        if self.runtime.running():
            for sandbox in self.cri.sandboxes():
                self.cri.remove(sandbox.id)
        if self._cri:
            self._cri.close()
            self._cri = None


def _cluster_flags(kubeconfig: Path | None, address: str) -> list[str]:
    return ["--kubeconfig", str(kubeconfig), "--node-ip", address] if kubeconfig else []


def _session(entry: Path) -> int:
    """The session of a process, 0 when it is gone."""
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[3])
    except OSError:
        return 0
