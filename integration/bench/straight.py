"""The same pods by straight CRI calls, a few at a time: what the runtime itself can do."""

from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cri_api.v1 import api_pb2

from integration.bench.workload import GRACE, SLEEPER, Round, Times, names, started
from integration.rig import sweep
from integration.rig.cri import Cri
from integration.rig.runtime import Runtime

AT_A_TIME = 4
_SECONDS = 60.0


def measure(runtime: Runtime, count: int) -> Round:
    """Start and delete `count` pods. No agent may run on the runtime: it would remove them."""
    with runtime.cri() as cri, ThreadPoolExecutor(AT_A_TIME) as pool:
        logs, cgroup = runtime.layout.data / "straight-logs", f"{runtime.layout.cgroup}/straight"
        began_wall = time.time()
        made = list(pool.map(lambda name: _start(cri, name, cgroup, logs), names(count)))
        running = started(cri, [container for _, container in made], began_wall)
        began = time.monotonic()
        ends = list(pool.map(lambda ids: _delete(cri, *ids), made))
    shutil.rmtree(logs, ignore_errors=True)
    sweep.remove_cgroup(cgroup)  # the runtime leaves the parents of what it made
    stopped = Times(tuple(stop - began for stop, _ in ends))
    return Round(running, stopped, Times(tuple(removed - began for _, removed in ends)))


def _start(cri: Cri, name: str, cgroup: str, logs: Path) -> tuple[str, str]:
    folder = logs / name
    folder.mkdir(parents=True, exist_ok=True)
    return cri.run(name, *SLEEPER, cgroup=f"{cgroup}/{name}", logs=folder)


def _delete(cri: Cri, sandbox: str, container: str) -> tuple[float, float]:
    """Monotonic times at which the container had stopped and the sandbox was gone."""
    stop = api_pb2.StopContainerRequest(container_id=container, timeout=GRACE)
    cri.runtime.StopContainer(stop, timeout=_SECONDS)
    stopped = time.monotonic()
    cri.remove(sandbox)
    return stopped, time.monotonic()
