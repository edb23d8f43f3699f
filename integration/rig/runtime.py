"""A private containerd: started, stopped and removed without a trace, whatever else runs on the machine."""

from __future__ import annotations

import fcntl
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from integration.rig import config, images, sweep
from integration.rig.console import RigError, poll, run, say
from integration.rig.cri import Cri
from integration.rig.layout import Binaries, Layout
from integration.rig.service import Service

_CAP_SYS_RESOURCE = 24
_NAMESPACE = "k8s.io"


class Runtime:
    """One containerd with its own folders, socket, network and images."""

    def __init__(self, layout: Layout, bins: Binaries) -> None:
        self.layout, self.bins = layout, bins

    @property
    def endpoint(self) -> str:
        """The value of containerRuntimeEndpoint."""
        return self.layout.endpoint

    @property
    def log(self) -> Path:
        return self.layout.log / "containerd.log"

    def cri(self) -> Cri:
        """A new client of this runtime; the caller closes it."""
        return Cri(self.layout.socket)

    def running(self) -> bool:
        return bool(self._service().pid())

    def start(self) -> None:
        """Bring the daemon up with its images; harmless when it is up already."""
        self.start_daemon()
        self._load_images()

    def start_daemon(self) -> None:
        """Start containerd and wait until it and its network are ready. Pods of before go on."""
        if not self.running():
            self._configure()
            self._service().start()
        with self.cri() as client:
            self._wait(client.answers, 30, "is not ready")

    def stop_daemon(self) -> None:
        """Stop containerd alone: its pods go on running."""
        self._service().stop()

    def stop(self, agent: Path | None = None) -> list[str]:
        """Remove all pods, what an agent with its home in `agent` leaves by design, containerd and its folders.

        Returns a line for each thing that an orderly end should have removed and did not; it is gone too.
        """
        if self._has_state():
            self.start_daemon()
            with self.cri() as client:
                client.remove_all()
            if agent:
                sweep.after_agent(self.layout, agent)
            self.stop_daemon()
        if not poll(lambda: not sweep.shims(self.layout), 5) and self._has_state():
            # containerd loses track of a pod whose caller was killed amid RunPodSandbox, until it starts again
            self.start_daemon()
            self.stop_daemon()
            poll(lambda: not sweep.shims(self.layout), 10)
        self._end_lost_shims()
        sweep.remove_bridge(self.layout)
        sweep.remove_cgroup(self.layout.cgroup)
        left = sweep.leftovers(self.layout)
        sweep.sweep(self.layout)
        for folder in (self.layout.run, self.layout.data):
            shutil.rmtree(folder, ignore_errors=True)
        return left

    def _end_lost_shims(self) -> None:
        """Kill shims of pods that containerd lists no more: nobody could have removed them through the CRI."""
        for pid, words in sweep.shims(self.layout).items():
            say(f"containerd lost track of a shim, which is killed now: {words[:100]}")
            sweep.kill(pid)
        poll(lambda: not sweep.shims(self.layout), 5)

    def load(self, archives: Path) -> None:
        """Import the images of a folder with OCI archives."""
        for archive in sorted(archives.glob("*.tar")):
            self.ctr("images", "import", str(archive))

    def ctr(self, *words: str) -> str:
        """Run containerd's own client in the namespace of the pods; return what it prints."""
        return run([self.bins.ctr, "-a", self.layout.socket, "-n", _NAMESPACE, *words], timeout=120)

    def crictl(self, *words: str) -> str:
        """Run crictl, where it was built; return what it prints."""
        if self.bins.crictl is None:
            raise RigError("there is no crictl beside this runtime")
        return run([self.bins.crictl, "--runtime-endpoint", self.endpoint, *words], timeout=120)

    def _configure(self) -> None:
        layout = self.layout
        for folder in (layout.run / "net.d", layout.run / "state", layout.data, layout.log):
            folder.mkdir(parents=True, exist_ok=True)
        layout.run.chmod(0o711)
        (layout.run / "net.d" / "10-bridge.conflist").write_text(config.network(layout))
        text = config.containerd(layout, self.bins, self._major(), restrict_oom=not _may_raise_oom_score())
        self._config_file().write_text(text)

    def _config_file(self) -> Path:
        return self.layout.run / "containerd.toml"

    def _major(self) -> int:
        text = run([self.bins.containerd, "--version"], timeout=20)
        found = re.search(r"\bv?(\d+)\.\d+\.\d+", text)
        if not found:
            raise RigError(f"{self.bins.containerd} --version says no version: {text.strip()}")
        return int(found.group(1))

    def _service(self) -> Service:
        return Service(
            f"containerd ({self.layout.name})",
            [self.bins.containerd, "--config", self._config_file()],
            self.layout.run / "containerd.pid",
            self.log,
            {"PATH": self.bins.path},
        )

    def _has_state(self) -> bool:
        return self.running() or (self.layout.data / "containerd").exists()

    def _load_images(self) -> None:
        archives = images.ensure()
        with self.cri() as client:
            if {images.BUSYBOX, images.PAUSE} <= client.image_names():
                return
            self.load(archives)
            wanted = {images.BUSYBOX, images.PAUSE}
            self._wait(lambda: wanted <= client.image_names(), 20, "does not show the imported images")

    def _wait(self, done: Callable[[], bool], seconds: float, what: str) -> None:
        if not poll(done, seconds):
            service = self._service()
            raise RigError(f"{service.name} {what} after {seconds:.0f} s:\n{service.tail()}")


def _may_raise_oom_score() -> bool:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> _CAP_SYS_RESOURCE & 1)
    return False


@contextmanager
def reserved(layout: Layout) -> Iterator[None]:
    """Hold a layout for this process alone. Raises RigError when another one has it."""
    folder = Path("/run/lock")
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"kubelet-mp-{layout.name}", "w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            hint = "wait for it, or give this one a name of its own with KUBELET_MP_INSTANCE=NAME"
            raise RigError(f"another run uses the private runtime {layout.name}: {hint}") from error
        yield


def start(layout: Layout, bins: Binaries) -> Runtime:
    """Start a private runtime and say so."""
    runtime = Runtime(layout, bins)
    runtime.start()
    with runtime.cri() as client:
        name, version = client.version()
    say(f"{name} {version} is up at {runtime.endpoint}")
    return runtime
