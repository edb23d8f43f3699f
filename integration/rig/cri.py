"""A thin client of the container runtime, for what tests look at or make by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import grpc
from cri_api.v1 import api_pb2, api_pb2_grpc

from integration.rig import images
from integration.rig.console import poll

_SECONDS = 60.0
_PATIENCE = 15.0


@dataclass(frozen=True)
class Outcome:
    """What a command in a container gave."""

    code: int
    out: str
    err: str


class Cri:
    """The CRI of the runtime behind a unix socket; `runtime` and `images` are the plain stubs."""

    def __init__(self, socket: Path) -> None:
        self._channel = grpc.insecure_channel(f"unix://{socket}")
        self.runtime: Any = api_pb2_grpc.RuntimeServiceStub(self._channel)
        self.images: Any = api_pb2_grpc.ImageServiceStub(self._channel)

    def __enter__(self) -> Cri:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._channel.close()

    def answers(self) -> bool:
        """Whether the runtime is up and says that it and its network are ready."""
        try:
            status = self.runtime.Status(api_pb2.StatusRequest(), timeout=2).status
        except grpc.RpcError:
            return False
        ready = {condition.type for condition in status.conditions if condition.status}
        return {"RuntimeReady", "NetworkReady"} <= ready

    def version(self) -> tuple[str, str]:
        """Name and version of the runtime, as in ("containerd", "v2.4.2")."""
        answer = self.runtime.Version(api_pb2.VersionRequest(), timeout=_SECONDS)
        return answer.runtime_name, answer.runtime_version

    def image_names(self) -> set[str]:
        answer = self.images.ListImages(api_pb2.ListImagesRequest(), timeout=_SECONDS)
        return {tag for image in answer.images for tag in image.repo_tags}

    def sandboxes(self, pod: str | None = None) -> list[Any]:
        """PodSandbox messages, of one pod name or all."""
        where = api_pb2.PodSandboxFilter(label_selector=_pod_label(pod))
        request = api_pb2.ListPodSandboxRequest(filter=where)
        return list(self.runtime.ListPodSandbox(request, timeout=_SECONDS).items)

    def containers(self, pod: str | None = None, name: str | None = None, running: bool = False) -> list[Any]:
        """Container messages, the oldest first, of one pod and container name or all."""
        where = api_pb2.ContainerFilter(label_selector=_pod_label(pod))
        if running:
            where.state.state = api_pb2.CONTAINER_RUNNING
        request = api_pb2.ListContainersRequest(filter=where)
        listed = self.runtime.ListContainers(request, timeout=_SECONDS).containers
        wanted = [one for one in listed if name in (None, one.metadata.name)]
        return sorted(wanted, key=lambda one: int(one.created_at))

    def inspect(self, container: str) -> tuple[Any, dict[str, Any]]:
        """A container's status, and the runtime's own details of it."""
        request = api_pb2.ContainerStatusRequest(container_id=container, verbose=True)
        answer = self.runtime.ContainerStatus(request, timeout=_SECONDS)
        return answer.status, json.loads(answer.info.get("info", "{}"))

    def address(self, sandbox: str) -> str:
        """The first IP address of a pod, empty when it uses the node's network."""
        request = api_pb2.PodSandboxStatusRequest(pod_sandbox_id=sandbox)
        return str(self.runtime.PodSandboxStatus(request, timeout=_SECONDS).status.network.ip)

    def exec(self, container: str, *command: str, timeout: int = 20) -> Outcome:
        """Run a command in a container to its end; `timeout` in seconds."""
        request = api_pb2.ExecSyncRequest(container_id=container, cmd=command, timeout=timeout)
        answer = self.runtime.ExecSync(request, timeout=timeout + 10)
        return Outcome(answer.exit_code, answer.stdout.decode(), answer.stderr.decode())

    def run(self, pod: str, *command: str, cgroup: str = "", logs: Path | None = None) -> tuple[str, str]:
        """Start a pod with one busybox container, as a kubelet would; return the two ids."""
        sandbox = api_pb2.PodSandboxConfig(
            metadata=api_pb2.PodSandboxMetadata(name=pod, uid=f"uid-{pod}", namespace="default"),
            hostname=pod,
            log_directory=str(logs or ""),
            labels=_pod_label(pod),
            linux=api_pb2.LinuxPodSandboxConfig(cgroup_parent=cgroup),
        )
        request = api_pb2.RunPodSandboxRequest(config=sandbox)
        sandbox_id = self.runtime.RunPodSandbox(request, timeout=_SECONDS).pod_sandbox_id
        container = api_pb2.ContainerConfig(
            metadata=api_pb2.ContainerMetadata(name="c"),
            image=api_pb2.ImageSpec(image=images.BUSYBOX),
            command=command,
            labels=_pod_label(pod),
            log_path="c.log" if logs else "",
        )
        create = api_pb2.CreateContainerRequest(pod_sandbox_id=sandbox_id, config=container, sandbox_config=sandbox)
        container_id = self.runtime.CreateContainer(create, timeout=_SECONDS).container_id
        start = api_pb2.StartContainerRequest(container_id=container_id)
        self.runtime.StartContainer(start, timeout=_SECONDS)
        return sandbox_id, container_id

    def remove(self, sandbox: str) -> None:
        """Stop a pod at once and remove it with its containers.

        Tried again for some seconds: the runtime may still be busy with a call that an agent has given up.
        """
        problems: list[grpc.RpcError] = []
        if not poll(lambda: self._try_remove(sandbox, problems), _PATIENCE):
            raise problems[-1]

    def _try_remove(self, sandbox: str, problems: list[grpc.RpcError]) -> bool:
        try:
            stop = api_pb2.StopPodSandboxRequest(pod_sandbox_id=sandbox)
            self.runtime.StopPodSandbox(stop, timeout=_SECONDS)
            remove = api_pb2.RemovePodSandboxRequest(pod_sandbox_id=sandbox)
            self.runtime.RemovePodSandbox(remove, timeout=_SECONDS)
        except grpc.RpcError as error:
            problems.append(error)
            return False
        return True

    def remove_all(self) -> None:
        """Stop and remove every pod."""
        for sandbox in self.sandboxes():
            self.remove(sandbox.id)


def _pod_label(pod: str | None) -> dict[str, str]:
    return {"io.kubernetes.pod.name": pod} if pod else {}
