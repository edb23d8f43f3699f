"""The runtime behind the fake's RPCs: sandboxes, containers, images. One method per RPC, named like it."""

from __future__ import annotations

import hashlib
import itertools
import os
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from cri_api.v1 import api_pb2 as pb

from kubelet_mp.model import clock
from tests.fakes.cri.images import Images, ImageSpec, Refused

__all__ = ["ImageSpec", "Refused", "Runtime"]
END = object()  # ends an event stream


@dataclass
class SandboxRecord:
    status: pb.PodSandboxStatus
    config: pb.PodSandboxConfig


@dataclass
class ContainerRecord:
    status: pb.ContainerStatus
    config: pb.ContainerConfig
    sandbox: SandboxRecord

    @property
    def name(self) -> str:
        return self.status.metadata.name


@dataclass(eq=False)
class Runtime(Images):
    """All state is under `lock`; events are queued to every open stream while it is held."""

    name: str = "containerd"
    version: str = "v2.1.4"
    cgroup_driver: str | None = "CGROUPFS"
    events: bool = True
    logs: bool = False
    drop_events: bool = False
    streaming_url: str = "http://127.0.0.1:1"
    sandboxes: dict[str, SandboxRecord] = field(default_factory=dict)
    containers: dict[str, ContainerRecord] = field(default_factory=dict)
    exits: dict[str, int] = field(default_factory=dict)
    stop_seconds: dict[str, float] = field(default_factory=dict)
    stop_exit_code: int = 143
    on_exec: Callable[[str, list[str]], tuple[str, str, int]] = lambda name, cmd: ("", "", 0)
    conditions: dict[str, tuple[bool, str, str]] = field(
        default_factory=lambda: {"RuntimeReady": (True, "", ""), "NetworkReady": (True, "", "")}
    )
    handlers: list[pb.RuntimeHandler] = field(default_factory=list)
    features: pb.RuntimeFeatures = field(default_factory=pb.RuntimeFeatures)
    pod_cidr: str = ""

    def __post_init__(self) -> None:
        self.lock = threading.RLock()
        self._serial = itertools.count(1)
        self._last_ns = 0
        self.memory_used = 1 << 20  # bytes, by each container
        self._streams: list[queue.SimpleQueue[Any]] = []

    # ---- identity and health ----

    def Version(self, request: pb.VersionRequest) -> pb.VersionResponse:
        return pb.VersionResponse(version="0.1.0", runtime_name=self.name, runtime_version=self.version,
                                  runtime_api_version="v1")

    def Status(self, request: pb.StatusRequest) -> pb.StatusResponse:
        conditions = [pb.RuntimeCondition(type=kind, status=ok, reason=reason, message=message)
                      for kind, (ok, reason, message) in self.conditions.items()]
        return pb.StatusResponse(status=pb.RuntimeStatus(conditions=conditions),
                                 runtime_handlers=self.handlers, features=self.features)

    def RuntimeConfig(self, request: pb.RuntimeConfigRequest) -> pb.RuntimeConfigResponse:
        if self.cgroup_driver is None:
            raise _unknown_method("RuntimeConfig")
        return pb.RuntimeConfigResponse(linux=pb.LinuxRuntimeConfiguration(
            cgroup_driver=pb.CgroupDriver.Value(self.cgroup_driver)))

    def UpdateRuntimeConfig(self, request: pb.UpdateRuntimeConfigRequest) -> pb.UpdateRuntimeConfigResponse:
        self.pod_cidr = request.runtime_config.network_config.pod_cidr
        return pb.UpdateRuntimeConfigResponse()

    # ---- sandboxes ----

    def RunPodSandbox(self, request: pb.RunPodSandboxRequest) -> pb.RunPodSandboxResponse:
        config, meta = request.config, request.config.metadata
        self._refuse_name_in_use(f"{meta.name}_{meta.namespace}_{meta.uid}_{meta.attempt}")
        known = {"", "runc"} | {handler.name for handler in self.handlers}
        if request.runtime_handler not in known:
            raise Refused("UNKNOWN", f'no runtime for "{request.runtime_handler}" is configured')
        options = config.linux.security_context.namespace_options
        status = pb.PodSandboxStatus(
            id=self._new_id(), metadata=meta, state=pb.SANDBOX_READY, created_at=self._now(),
            labels=config.labels, annotations=config.annotations, runtime_handler=request.runtime_handler,
            linux=pb.LinuxPodSandboxStatus(namespaces=pb.Namespace(options=options)),
            network=pb.PodSandboxNetworkStatus(ip=self._new_ip() if options.network == pb.POD else ""))
        self.sandboxes[status.id] = SandboxRecord(status, config)
        self._emit(status.id, "CREATED", self.sandboxes[status.id])
        self._emit(status.id, "STARTED", self.sandboxes[status.id])
        return pb.RunPodSandboxResponse(pod_sandbox_id=status.id)

    def StopPodSandbox(self, request: pb.StopPodSandboxRequest) -> pb.StopPodSandboxResponse:
        record = self._sandbox(request.pod_sandbox_id)
        for container in self._of(record):
            self._exit(container, 137, "")
        if record.status.state == pb.SANDBOX_READY:
            record.status.state = pb.SANDBOX_NOTREADY
            record.status.network.Clear()
            self._emit(record.status.id, "STOPPED", record)
        return pb.StopPodSandboxResponse()

    def RemovePodSandbox(self, request: pb.RemovePodSandboxRequest) -> pb.RemovePodSandboxResponse:
        record = self._sandbox(request.pod_sandbox_id)
        if record.status.state == pb.SANDBOX_READY:
            raise Refused("UNKNOWN", f'sandbox container "{record.status.id}" is not fully stopped')
        for container in self._of(record):
            self._remove(container)
        del self.sandboxes[record.status.id]
        self._emit(record.status.id, "DELETED", record)
        return pb.RemovePodSandboxResponse()

    def PodSandboxStatus(self, request: pb.PodSandboxStatusRequest) -> pb.PodSandboxStatusResponse:
        return pb.PodSandboxStatusResponse(status=self._sandbox(request.pod_sandbox_id).status)

    def ListPodSandbox(self, request: pb.ListPodSandboxRequest) -> pb.ListPodSandboxResponse:
        wanted = request.filter
        return pb.ListPodSandboxResponse(items=[
            pb.PodSandbox(id=s.id, metadata=s.metadata, state=s.state, created_at=s.created_at,
                          labels=s.labels, annotations=s.annotations, runtime_handler=s.runtime_handler)
            for s in (record.status for record in self.sandboxes.values())
            if s.id.startswith(wanted.id) and _labelled(s.labels, wanted.label_selector)
            and (not wanted.HasField("state") or s.state == wanted.state.state)])

    def UpdatePodSandboxResources(self, request: Any) -> pb.UpdatePodSandboxResourcesResponse:
        self._sandbox(request.pod_sandbox_id)
        return pb.UpdatePodSandboxResourcesResponse()

    # ---- containers ----

    def CreateContainer(self, request: pb.CreateContainerRequest) -> pb.CreateContainerResponse:
        config, sandbox = request.config, self._sandbox(request.pod_sandbox_id)
        if sandbox.status.state != pb.SANDBOX_READY:
            raise Refused("UNKNOWN", f'sandbox "{sandbox.status.id}" is not running')
        uid = sandbox.status.metadata.uid
        self._refuse_name_in_use(f"{config.metadata.name}_{uid}_{config.metadata.attempt}")
        image = self.find_image(config.image.image)
        if image is None:
            raise Refused("NOT_FOUND", f'image "{config.image.image}": not found')
        status = pb.ContainerStatus(
            id=self._new_id(), metadata=config.metadata, state=pb.CONTAINER_CREATED, created_at=self._now(),
            image=pb.ImageSpec(image=(list(image.repo_tags) or [image.id])[0]),
            image_ref=(list(image.repo_digests) or [image.id])[0], image_id=image.id, labels=config.labels,
            annotations=config.annotations, mounts=config.mounts,
            log_path=os.path.join(sandbox.config.log_directory, config.log_path),
            resources=pb.ContainerResources(linux=config.linux.resources))
        self.containers[status.id] = ContainerRecord(status, config, sandbox)
        self._emit(status.id, "CREATED", sandbox)
        return pb.CreateContainerResponse(container_id=status.id)

    def StartContainer(self, request: pb.StartContainerRequest) -> pb.StartContainerResponse:
        record = self._container(request.container_id)
        if record.status.state != pb.CONTAINER_CREATED:
            raise Refused("UNKNOWN", f'container "{record.status.id}" is not in the created state')
        record.status.state, record.status.started_at = pb.CONTAINER_RUNNING, self._now()
        if self.logs and record.config.log_path:
            self.log(record.status.id, "")
        self._emit(record.status.id, "STARTED", record.sandbox)
        if record.name in self.exits:
            self._exit(record, self.exits[record.name], "")
        return pb.StartContainerResponse()

    def StopContainer(self, request: pb.StopContainerRequest) -> pb.StopContainerResponse:
        record = self._container(request.container_id)
        self._exit(record, self.stop_exit_code, "")
        return pb.StopContainerResponse()

    def RemoveContainer(self, request: pb.RemoveContainerRequest) -> pb.RemoveContainerResponse:
        self._remove(self._container(request.container_id))
        return pb.RemoveContainerResponse()

    def ContainerStatus(self, request: pb.ContainerStatusRequest) -> pb.ContainerStatusResponse:
        return pb.ContainerStatusResponse(status=self._container(request.container_id).status)

    def ListContainers(self, request: pb.ListContainersRequest) -> pb.ListContainersResponse:
        wanted = request.filter
        return pb.ListContainersResponse(containers=[
            pb.Container(id=s.id, pod_sandbox_id=record.sandbox.status.id, metadata=s.metadata, image=s.image,
                         image_ref=s.image_ref, state=s.state, created_at=s.created_at, labels=s.labels,
                         annotations=s.annotations, image_id=s.image_id)
            for record in self.containers.values() for s in (record.status,)
            if s.id.startswith(wanted.id) and _labelled(s.labels, wanted.label_selector)
            and record.sandbox.status.id.startswith(wanted.pod_sandbox_id)
            and (not wanted.HasField("state") or s.state == wanted.state.state)])

    def UpdateContainerResources(self, request: Any) -> pb.UpdateContainerResourcesResponse:
        self._container(request.container_id).status.resources.linux.MergeFrom(request.linux)
        return pb.UpdateContainerResourcesResponse()

    def ReopenContainerLog(self, request: pb.ReopenContainerLogRequest) -> pb.ReopenContainerLogResponse:
        if self.logs:
            self.log(request.container_id, "")
        return pb.ReopenContainerLogResponse()

    # ---- commands and streams ----

    def ExecSync(self, request: pb.ExecSyncRequest) -> pb.ExecSyncResponse:
        record = self._running(request.container_id)
        try:
            out, err, code = self.on_exec(record.name, list(request.cmd))
        except TimeoutError:
            raise Refused("DEADLINE_EXCEEDED", f"timeout {request.timeout}s exceeded") from None
        return pb.ExecSyncResponse(stdout=out.encode(), stderr=err.encode(), exit_code=code)

    def Exec(self, request: pb.ExecRequest) -> pb.ExecResponse:
        self._running(request.container_id)
        return pb.ExecResponse(url=f"{self.streaming_url}/exec/{self._new_id()[:8]}")

    def Attach(self, request: pb.AttachRequest) -> pb.AttachResponse:
        self._running(request.container_id)
        return pb.AttachResponse(url=f"{self.streaming_url}/attach/{self._new_id()[:8]}")

    def PortForward(self, request: pb.PortForwardRequest) -> pb.PortForwardResponse:
        self._sandbox(request.pod_sandbox_id)
        return pb.PortForwardResponse(url=f"{self.streaming_url}/portforward/{self._new_id()[:8]}")

    def ListContainerStats(self, request: pb.ListContainerStatsRequest) -> pb.ListContainerStatsResponse:
        return pb.ListContainerStatsResponse(stats=[
            self._stats(record.status) for record in self.containers.values()
            if record.status.state == pb.CONTAINER_RUNNING])

    def ContainerStats(self, request: pb.ContainerStatsRequest) -> pb.ContainerStatsResponse:
        return pb.ContainerStatsResponse(stats=self._stats(self._container(request.container_id).status))

    def _stats(self, status: pb.ContainerStatus) -> pb.ContainerStats:
        now, used = self._now(), pb.UInt64Value(value=self.memory_used)
        return pb.ContainerStats(
            attributes=pb.ContainerAttributes(id=status.id, metadata=status.metadata, labels=status.labels),
            cpu=pb.CpuUsage(timestamp=now, usage_core_nano_seconds=pb.UInt64Value(value=1_000_000)),
            memory=pb.MemoryUsage(timestamp=now, working_set_bytes=used, usage_bytes=used))

    def GetContainerEvents(self, request: pb.GetEventsRequest) -> Iterator[pb.ContainerEventResponse]:
        if not self.events:
            raise _unknown_method("GetContainerEvents")
        inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        with self.lock:
            self._streams.append(inbox)
        while (event := inbox.get()) is not END:
            yield event
        raise Refused("UNAVAILABLE", "the event stream was closed")

    @property
    def streams(self) -> int:
        """Open event streams."""
        return len(self._streams)

    def break_streams(self) -> None:
        with self.lock:
            streams, self._streams = self._streams, []
        for inbox in streams:
            inbox.put(END)

    # ---- what tests do to it ----

    def container(self, which: str) -> ContainerRecord:
        """A container by id, or the newest with that name."""
        with self.lock:
            found = self.containers.get(which) or next(
                (c for c in reversed(self.containers.values()) if c.name == which), None)
        assert found is not None, f"the fake has no container {which}"
        return found

    def exit_container(self, which: str, code: int = 0, reason: str = "", message: str = "") -> None:
        """The container's process ends by itself."""
        with self.lock:
            self._exit(self.container(which), code, reason, message)

    def vanish(self, which: str) -> None:
        """A container or sandbox (by id) is gone without an event."""
        with self.lock:
            if self.sandboxes.pop(which, None) is None:
                del self.containers[self.container(which).status.id]

    def set_ready(
        self, runtime: bool = True, network: bool = True, reason: str = "Down", message: str = ""
    ) -> None:
        for kind, ok in (("RuntimeReady", runtime), ("NetworkReady", network)):
            self.conditions[kind] = (ok, "" if ok else reason, "" if ok else message)

    def log(self, which: str, text: str, stream: str = "stdout") -> None:
        """Write a line to the container's CRI log file ("" only makes the file)."""
        path = self.container(which).status.log_path
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a", encoding="utf-8") as file:
            if text:
                file.write(f"{clock.rfc3339_log(clock.wall_time_ns())} {stream} F {text}\n")

    # ---- inside ----

    def stop_time(self, container_id: str, grace: int) -> float:
        """Seconds that StopContainer takes; marks a container that outlives its grace as killed."""
        record = self.containers.get(container_id)
        needed = self.stop_seconds.get(record.name, 0.0) if record else 0.0
        if record and needed > grace and record.status.state == pb.CONTAINER_RUNNING:
            record.status.exit_code = 137
        return min(needed, float(grace))

    def _exit(self, record: ContainerRecord, code: int, reason: str, message: str = "") -> None:
        status = record.status
        if status.state != pb.CONTAINER_RUNNING:
            return
        status.state, status.finished_at = pb.CONTAINER_EXITED, self._now()
        status.exit_code = status.exit_code or code
        status.reason = reason or ("Error" if status.exit_code else "Completed")
        status.message = message
        self._emit(status.id, "STOPPED", record.sandbox)

    def _remove(self, record: ContainerRecord) -> None:
        self._exit(record, 137, "")
        del self.containers[record.status.id]
        self._emit(record.status.id, "DELETED", record.sandbox)

    def _emit(self, id_: str, kind: str, sandbox: SandboxRecord) -> None:
        if self.drop_events:
            return
        event = pb.ContainerEventResponse(
            container_id=id_, container_event_type=pb.ContainerEventType.Value(f"CONTAINER_{kind}_EVENT"),
            created_at=self._now(), pod_sandbox_status=sandbox.status,
            containers_statuses=[c.status for c in self._of(sandbox)])
        for inbox in self._streams:
            inbox.put(event)

    def _of(self, sandbox: SandboxRecord) -> list[ContainerRecord]:
        return [c for c in self.containers.values() if c.sandbox is sandbox]

    def _sandbox(self, id_: str) -> SandboxRecord:
        if id_ not in self.sandboxes:
            raise Refused("NOT_FOUND", f'an error occurred when try to find sandbox "{id_}": not found')
        return self.sandboxes[id_]

    def _container(self, id_: str) -> ContainerRecord:
        if id_ not in self.containers:
            raise Refused("NOT_FOUND", f'an error occurred when try to find container "{id_}": not found')
        return self.containers[id_]

    def _running(self, id_: str) -> ContainerRecord:
        record = self._container(id_)
        if record.status.state != pb.CONTAINER_RUNNING:
            raise Refused("UNKNOWN", f'container "{id_}" is not running')
        return record

    def _refuse_name_in_use(self, name: str) -> None:
        for record in self.sandboxes.values():
            m = record.status.metadata
            if name == f"{m.name}_{m.namespace}_{m.uid}_{m.attempt}":
                raise Refused("UNKNOWN", f'name "{name}" is reserved for "{record.status.id}"')
        for container in self.containers.values():
            m, uid = container.status.metadata, container.sandbox.status.metadata.uid
            if name == f"{m.name}_{uid}_{m.attempt}":
                raise Refused("UNKNOWN", f'name "{name}" is reserved for "{container.status.id}"')

    def _new_id(self) -> str:
        return hashlib.sha256(f"{id(self)} {next(self._serial)}".encode()).hexdigest()

    def _new_ip(self) -> str:
        number = next(self._serial)
        return f"10.88.{number // 250 % 250}.{number % 250 + 2}"

    def _now(self) -> int:
        self._last_ns = max(clock.wall_time_ns(), self._last_ns + 1)
        return self._last_ns


def _unknown_method(name: str) -> Refused:
    return Refused("UNIMPLEMENTED", f"unknown method {name} for service runtime.v1.RuntimeService")


def _labelled(labels: Any, selector: Any) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())
