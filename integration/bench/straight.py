"""The same pods by straight CRI calls, a few at a time: what the runtime itself can do.

Sandbox and container are configured as the agent configures them (seccomp profile, masked paths, resources,
hosts file, termination log): a ratio then tells what the agent adds, not what a pod costs.
"""

from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cri_api.v1 import api_pb2

from integration.bench.workload import GRACE, Round, Times, manifest, names, started
from integration.rig import images, sweep
from integration.rig.cri import Cri
from integration.rig.runtime import Runtime
from kubelet_mp.host.cri import Runtime as Client
from kubelet_mp.model import criname
from kubelet_mp.model.defaults import set_pod_defaults
from kubelet_mp.model.dns import pod_dns
from kubelet_mp.model.hostname import pod_hostname
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.podconfig import ContainerInputs, container_config, sandbox_config

AT_A_TIME = 4
V2 = Path("/sys/fs/cgroup/cgroup.controllers")
_SECONDS = 60.0


def measure(runtime: Runtime, count: int) -> Round:
    """Start and delete `count` pods. No agent may run on the runtime: it would remove them."""
    place, client = Place(runtime), Client(runtime.endpoint)
    with runtime.cri() as cri, ThreadPoolExecutor(AT_A_TIME) as pool:
        began_wall = time.time()
        made = list(pool.map(lambda name: place.start(client, name), names(count)))
        running = started(cri, [container for _, container in made], began_wall)
        began = time.monotonic()
        ends = list(pool.map(lambda ids: _delete(cri, *ids), made))
    client.close()
    place.clean()
    stopped = Times(tuple(stop - began for stop, _ in ends))
    return Round(running, stopped, Times(tuple(removed - began for _, removed in ends)))


class Place:
    """Folders and cgroups of the pods."""

    def __init__(self, runtime: Runtime) -> None:
        self._files, self._cgroup = runtime.layout.data / "straight", f"{runtime.layout.cgroup}/straight"
        memory = 8 << 30
        logs = str(self._files / "logs")
        self._node = NodeView(node_name="bench", pod_logs_dir=logs, resolv_conf="nameserver 192.0.2.1",
                              capacity={"memory": memory}, allocatable={"memory": memory},
                              cgroup_version=2 if V2.exists() else 1)

    def start(self, client: Client, name: str) -> tuple[str, str]:
        """Run one pod; the ids of its sandbox and container."""
        pod = manifest(name)
        pod["metadata"]["uid"] = f"uid-{name}"
        set_pod_defaults(pod)
        container = pod["spec"]["containers"][0]
        logs = Path(criname.pod_log_dir(self._node.pod_logs_dir, pod))
        (logs / container["name"]).mkdir(parents=True, exist_ok=True)
        sandbox = sandbox_config(pod, self._node, attempt=0, cgroup_parent=f"{self._cgroup}/{name}",
                                 dns=pod_dns(pod, self._node), hostname=pod_hostname(pod, ""))
        sandbox_id = client.run_sandbox(sandbox)
        inputs = ContainerInputs(image_ref=images.BUSYBOX, termination_log=self._file(name, "termination-log"),
                                 etc_hosts=self._file(name, "etc-hosts"), pod_ips=("192.0.2.2",))
        config = container_config(pod, container, self._node, inputs)
        container_id = client.create_container(sandbox_id, config, sandbox)
        client.start_container(container_id)
        return sandbox_id, container_id

    def _file(self, name: str, which: str) -> str:
        path = self._files / name / which
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return str(path)

    def clean(self) -> None:
        shutil.rmtree(self._files, ignore_errors=True)
        sweep.remove_cgroup(self._cgroup)  # the runtime leaves the parents of what it made


def _delete(cri: Cri, sandbox: str, container: str) -> tuple[float, float]:
    """Monotonic times at which the container had stopped and the sandbox was gone."""
    stop = api_pb2.StopContainerRequest(container_id=container, timeout=GRACE)
    cri.runtime.StopContainer(stop, timeout=_SECONDS)
    stopped = time.monotonic()
    cri.remove(sandbox)
    return stopped, time.monotonic()
