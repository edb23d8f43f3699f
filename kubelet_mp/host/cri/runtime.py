"""The calls of CRI v1, with the deadlines and checks of a kubelet (Kubernetes 1.37 k8s.io/cri-client/pkg).

T is runtimeRequestTimeout. Unless a method says otherwise it has T to answer and raises RuntimeCallError:
RuntimeUnavailable (no runtime there), RuntimeTimeout, RuntimeNotFound, RuntimeUnimplemented, or the bare class.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from cri_api.v1 import api_pb2 as pb
from cri_api.v1 import api_pb2_grpc as stubs

from kubelet_mp.errors import RuntimeCallError, RuntimeNotFound, RuntimeTimeout, RuntimeUnimplemented
from kubelet_mp.host.cri import convert
from kubelet_mp.host.cri.channel import Channel, EventStream, Observe, check_socket
from kubelet_mp.host.cri.failures import is_alien, not_cri
from kubelet_mp.host.cri.images import ImageCalls
from kubelet_mp.host.cri.sayonce import SayOnce
from kubelet_mp.model import clock
from kubelet_mp.model.runtime import (
    POD_UID,
    Container,
    ContainerBrief,
    ContainerUse,
    ExecResult,
    RuntimeIdentity,
    RuntimeState,
    Sandbox,
    SandboxBrief,
)

Config = Mapping[str, Any]
_DRIVERS = {pb.SYSTEMD: "systemd", pb.CGROUPFS: "cgroupfs"}
_API = "0.1.0"  # the kubelet's side of the version handshake


def _unobserved(operation: str, seconds: float, ok: bool) -> None:
    return


class Runtime(ImageCalls):
    """A container runtime. Thread-safe; its channel is opened by the first call, so make that after the fork.

    endpoint: unix:///path, /path or tcp://host:port; image_endpoint: "" for the same. timeout: T in seconds.
    """

    def __init__(self, endpoint: str, *, image_endpoint: str = "", timeout: float = 120.0,
                 observe: Observe | None = None) -> None:
        observe = observe or _unobserved
        self.endpoint, self.timeout = endpoint, timeout
        self._channel = Channel(endpoint, stubs.RuntimeServiceStub, observe)
        super().__init__(Channel(image_endpoint or endpoint, stubs.ImageServiceStub, observe), timeout)
        self._say_once = SayOnce()
        self._identity: RuntimeIdentity | None = None

    def _call(self, name: str, operation: str, request: Any, timeout: float | None = -1.0) -> Any:
        """`timeout`: -1 for T, None for no deadline."""
        return self._channel.call(name, operation, request, self.timeout if timeout == -1.0 else timeout)

    def _look(self, name: str, operation: str, request: Any) -> Any:
        """A call that is repeated for ever: its error is logged, the same one at most once a minute."""
        try:
            return self._call(name, operation, request)
        except RuntimeNotFound:
            raise
        except RuntimeCallError as error:
            self._say_once.error(error)
            raise

    def close(self) -> None:
        """Ends the calls under way."""
        self._channel.close()
        super().close()

    # ---- identity and health ----

    def version(self) -> RuntimeIdentity:
        """Who the runtime is. Raises NotCRI (a StartError too) where something else answers."""
        check_socket(self.endpoint)
        try:
            answer = self._call("Version", "version", pb.VersionRequest(version=_API))
        except RuntimeCallError as error:
            self._identity = None
            if is_alien(error):
                raise not_cri(self.endpoint, error.message) from error
            raise
        if answer.version != _API:
            raise not_cri(self.endpoint, f'it speaks version "{answer.version}" of the kubelet API, not {_API}')
        convert.require("Version", runtime_name=answer.runtime_name, runtime_version=answer.runtime_version,
                        runtime_api_version=answer.runtime_api_version)
        self._identity = RuntimeIdentity(answer.runtime_name, answer.runtime_version, answer.runtime_api_version)
        return self._identity

    def status(self) -> RuntimeState:
        """Health and features; asks for the version too after a failure, for the runtime may be another."""
        identity, observed = self._identity or self.version(), clock.monotonic()
        try:
            answer = self._look("Status", "status", pb.StatusRequest())
        except RuntimeCallError:
            self._identity = None
            raise
        return convert.runtime_state(answer, identity, observed)

    def runtime_config(self) -> str | None:
        """The runtime's cgroup driver, "systemd" or "cgroupfs"; None where it cannot tell."""
        try:
            answer = self._call("RuntimeConfig", "runtime_config", pb.RuntimeConfigRequest())
        except RuntimeUnimplemented:
            return None
        return _DRIVERS.get(answer.linux.cgroup_driver) if answer.HasField("linux") else None

    def update_runtime_config(self, pod_cidr: str) -> None:
        config = pb.RuntimeConfig(network_config=pb.NetworkConfig(pod_cidr=pod_cidr))
        self._call("UpdateRuntimeConfig", "update_runtime_config",
                   pb.UpdateRuntimeConfigRequest(runtime_config=config))

    # ---- looking ----

    def list_sandboxes(self, uid: str | None = None) -> list[SandboxBrief]:
        """All sandboxes in any state, or those of one pod."""
        chosen = pb.PodSandboxFilter(label_selector={POD_UID: uid}) if uid else None
        answer = self._look("ListPodSandbox", "list_podsandbox", pb.ListPodSandboxRequest(filter=chosen))
        return [convert.sandbox_brief(item) for item in answer.items]

    def list_containers(self, uid: str | None = None) -> list[ContainerBrief]:
        """All containers in any state, or those of one pod."""
        chosen = pb.ContainerFilter(label_selector={POD_UID: uid}) if uid else None
        answer = self._look("ListContainers", "list_containers", pb.ListContainersRequest(filter=chosen))
        return [convert.container_brief(item) for item in answer.containers]

    def sandbox_status(self, sandbox_id: str) -> Sandbox:
        """Raises RuntimeNotFound."""
        answer = self._look("PodSandboxStatus", "podsandbox_status",
                            pb.PodSandboxStatusRequest(pod_sandbox_id=sandbox_id))
        return convert.sandbox(answer.status)

    def container_status(self, container_id: str, sandbox_id: str = "") -> Container:
        """`sandbox_id` is put into the result: CRI does not tell it here. Raises RuntimeNotFound."""
        answer = self._look("ContainerStatus", "container_status",
                            pb.ContainerStatusRequest(container_id=container_id))
        return convert.container(answer.status, sandbox_id)

    def list_container_stats(self) -> list[ContainerUse]:
        answer = self._look("ListContainerStats", "list_container_stats", pb.ListContainerStatsRequest())
        return [convert.container_use(item) for item in answer.stats]

    def container_use(self, container_id: str) -> ContainerUse:
        """What one container uses now. Raises RuntimeNotFound."""
        answer = self._call("ContainerStats", "container_stats", pb.ContainerStatsRequest(container_id=container_id))
        return convert.container_use(answer.stats)

    def container_events(self) -> EventStream:
        """The stream of events: iterate it in a thread of its own, end it with `cancel`."""
        return self._channel.events()

    # ---- sandboxes ----

    def run_sandbox(self, config: Config, handler: str = "") -> str:
        """Make and start a sandbox; its id. 2·T. `config`: a PodSandboxConfig as nested dicts."""
        request = pb.RunPodSandboxRequest(
            config=convert.message(pb.PodSandboxConfig, config, "RunPodSandbox"), runtime_handler=handler)
        answer = self._call("RunPodSandbox", "run_podsandbox", request, 2 * self.timeout)
        convert.require("RunPodSandbox", pod_sandbox_id=answer.pod_sandbox_id)
        return str(answer.pod_sandbox_id)

    def stop_sandbox(self, sandbox_id: str) -> None:
        """Also succeeds when there is none."""
        self._gone_is_well("StopPodSandbox", "stop_podsandbox",
                           pb.StopPodSandboxRequest(pod_sandbox_id=sandbox_id))

    def remove_sandbox(self, sandbox_id: str) -> None:
        """Also succeeds when there is none."""
        self._gone_is_well("RemovePodSandbox", "remove_podsandbox",
                           pb.RemovePodSandboxRequest(pod_sandbox_id=sandbox_id))

    def update_sandbox(self, sandbox_id: str, overhead: Config, resources: Config) -> None:
        """Tell the new resources of the whole pod."""
        name = "UpdatePodSandboxResources"
        request = pb.UpdatePodSandboxResourcesRequest(
            pod_sandbox_id=sandbox_id, overhead=convert.message(pb.LinuxContainerResources, overhead, name),
            resources=convert.message(pb.LinuxContainerResources, resources, name))
        self._call(name, "update_podsandbox_resources", request)

    def _gone_is_well(self, name: str, operation: str, request: Any, timeout: float | None = -1.0) -> None:
        try:
            self._call(name, operation, request, timeout)
        except RuntimeNotFound:
            return

    # ---- containers ----

    def create_container(self, sandbox_id: str, config: Config, sandbox_config: Config) -> str:
        """Make a container; its id. The configs are ContainerConfig and PodSandboxConfig as nested dicts."""
        request = pb.CreateContainerRequest(
            pod_sandbox_id=sandbox_id, config=convert.message(pb.ContainerConfig, config, "CreateContainer"),
            sandbox_config=convert.message(pb.PodSandboxConfig, sandbox_config, "CreateContainer"))
        answer = self._call("CreateContainer", "create_container", request)
        convert.require("CreateContainer", container_id=answer.container_id)
        return str(answer.container_id)

    def start_container(self, container_id: str) -> None:
        self._call("StartContainer", "start_container", pb.StartContainerRequest(container_id=container_id))

    def stop_container(self, container_id: str, grace: int) -> None:
        """SIGTERM (or the stop signal), after `grace` s SIGKILL. T + grace. Also succeeds when there is none."""
        request = pb.StopContainerRequest(container_id=container_id, timeout=grace)
        self._gone_is_well("StopContainer", "stop_container", request, self.timeout + grace)

    def remove_container(self, container_id: str) -> None:
        """Also succeeds when there is none."""
        self._gone_is_well("RemoveContainer", "remove_container",
                           pb.RemoveContainerRequest(container_id=container_id))

    def update_container(self, container_id: str, resources: Config) -> None:
        """`resources`: LinuxContainerResources as a dict."""
        name = "UpdateContainerResources"
        linux = convert.message(pb.LinuxContainerResources, resources, name)
        self._call(name, "update_container",
                   pb.UpdateContainerResourcesRequest(container_id=container_id, linux=linux))

    def reopen_log(self, container_id: str) -> None:
        self._call("ReopenContainerLog", "reopen_container_log",
                   pb.ReopenContainerLogRequest(container_id=container_id))

    # ---- commands and streams ----

    def exec_sync(self, container_id: str, command: Sequence[str], timeout: int,
                  cancel: threading.Event | None = None) -> ExecResult:
        """Run a command to its end. T + timeout s; 0: no deadline at all. `cancel` ends the waiting.

        Raises RuntimeTimeout with the text "command timed out: …" when the command took too long.
        """
        request = pb.ExecSyncRequest(container_id=container_id, cmd=command, timeout=timeout)
        limit = self.timeout + timeout if timeout else None
        try:
            answer = self._channel.call("ExecSync", "exec_sync", request, limit, cancel)
        except RuntimeTimeout as error:
            text = f'command timed out: "{" ".join(command)}" timed out after {clock.format_duration(timeout)}'
            raise RuntimeTimeout(text, method=error.method, code=error.code) from error
        return ExecResult(answer.stdout, answer.stderr, answer.exit_code)

    def exec(self, container_id: str, command: Sequence[str], *, tty: bool, stdin: bool, stdout: bool,
             stderr: bool) -> str:
        """The URL that streams the command."""
        request = pb.ExecRequest(container_id=container_id, cmd=command, tty=tty, stdin=stdin, stdout=stdout,
                                 stderr=stderr)
        return self._url("Exec", "exec", request)

    def attach(self, container_id: str, *, tty: bool, stdin: bool, stdout: bool, stderr: bool) -> str:
        """The URL that streams the container's own input and output."""
        request = pb.AttachRequest(container_id=container_id, tty=tty, stdin=stdin, stdout=stdout,
                                   stderr=stderr)
        return self._url("Attach", "attach", request)

    def port_forward(self, sandbox_id: str, ports: Sequence[int]) -> str:
        """The URL that forwards connections to these ports of the pod."""
        return self._url("PortForward", "port_forward",
                         pb.PortForwardRequest(pod_sandbox_id=sandbox_id, port=ports))

    def _url(self, name: str, operation: str, request: Any) -> str:
        answer = self._call(name, operation, request)
        convert.require(name, url=answer.url)
        return str(answer.url)
