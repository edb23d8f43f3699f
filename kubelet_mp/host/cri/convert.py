"""CRI messages to and from plain data: no gRPC here, only protobuf."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from cri_api.v1 import api_pb2 as pb

from kubelet_mp.errors import RuntimeCallError
from kubelet_mp.model.runtime import (
    CONTAINER_NAME,
    POD_UID,
    Container,
    ContainerBrief,
    ContainerUse,
    FilesystemUse,
    HandlerFeatures,
    Image,
    Mount,
    RuntimeIdentity,
    RuntimeState,
    Sandbox,
    SandboxBrief,
    State,
)

M = TypeVar("M")
_STATES: dict[int, State] = {
    pb.CONTAINER_CREATED: State.CREATED,
    pb.CONTAINER_RUNNING: State.RUNNING,
    pb.CONTAINER_EXITED: State.EXITED,
    pb.CONTAINER_UNKNOWN: State.UNKNOWN,
}
_PROPAGATIONS: dict[int, str] = {
    pb.PROPAGATION_PRIVATE: "private",
    pb.PROPAGATION_HOST_TO_CONTAINER: "rslave",
    pb.PROPAGATION_BIDIRECTIONAL: "rshared",
}


def message(kind: type[M], fields: Mapping[str, Any] | None, method: str) -> M:
    """A protobuf message from nested dicts with its field names; enums by name or number, None is unset.

    Raises RuntimeCallError for a field or value that the message cannot hold.
    """
    try:
        return kind(**(fields or {}))
    except (TypeError, ValueError) as error:
        raise RuntimeCallError(f"{method}: {kind.__name__} cannot be made: {error}", method=method,
                               code="INVALID_ARGUMENT") from error


def require(method: str, **fields: Any) -> None:
    """Raises RuntimeCallError naming the first field that the runtime's answer lacks."""
    for name, value in fields.items():
        if not value:
            raise RuntimeCallError(f"the runtime's answer to {method} lacks {name}", method=method,
                                   code="INVALID_ANSWER")


def sandbox_brief(item: pb.PodSandbox) -> SandboxBrief:
    meta = item.metadata
    return SandboxBrief(item.id, item.labels.get(POD_UID, ""), meta.name, meta.namespace, meta.attempt,
                        item.state == pb.SANDBOX_READY, item.created_at)


def container_brief(item: pb.Container) -> ContainerBrief:
    labels, meta = item.labels, item.metadata
    return ContainerBrief(
        item.id, labels.get(POD_UID, ""), item.pod_sandbox_id, labels.get(CONTAINER_NAME) or meta.name,
        meta.attempt, _state(item.state), item.created_at, item.image.image, item.image_id or item.image_ref)


def _state(value: int) -> State:
    return _STATES.get(value, State.UNKNOWN)


def sandbox(status: pb.PodSandboxStatus) -> Sandbox:
    meta = status.metadata
    require("PodSandboxStatus", id=status.id, metadata=status.HasField("metadata"), name=meta.name,
            namespace=meta.namespace, uid=meta.uid, created_at=status.created_at)
    network = status.network
    ips = (network.ip, *(extra.ip for extra in network.additional_ips)) if network.ip else ()
    return Sandbox(
        status.id, meta.name, meta.namespace, meta.uid, meta.attempt, status.state == pb.SANDBOX_READY,
        status.created_at, ips, status.linux.namespaces.options.network == pb.NODE, dict(status.labels),
        dict(status.annotations), status.runtime_handler)


def container(status: pb.ContainerStatus, sandbox_id: str = "") -> Container:
    """`sandbox_id`: what the listing said; the status itself does not tell."""
    meta = status.metadata
    require("ContainerStatus", id=status.id, metadata=status.HasField("metadata"), name=meta.name,
            created_at=status.created_at, image=status.image.image, image_ref=status.image_ref)
    labels = status.labels
    return Container(
        id=status.id, name=labels.get(CONTAINER_NAME) or meta.name, attempt=meta.attempt,
        state=_state(status.state), sandbox_id=sandbox_id, pod_uid=labels.get(POD_UID, ""),
        created_at=status.created_at, started_at=status.started_at, finished_at=status.finished_at,
        exit_code=status.exit_code, reason=status.reason, message=status.message, image=status.image.image,
        image_ref=status.image_ref, image_id=status.image_id, log_path=status.log_path,
        annotations=dict(status.annotations), mounts=tuple(_mount(m) for m in status.mounts),
        resources=_resources(status.resources.linux) if status.HasField("resources") else {},
        user=_user(status))


def _mount(mount: pb.Mount) -> Mount:
    return Mount(mount.container_path, mount.host_path, mount.readonly, _PROPAGATIONS[mount.propagation],
                 mount.recursive_read_only)


def _resources(linux: pb.LinuxContainerResources) -> dict[str, int | str]:
    """The scalar fields that are set."""
    return {field.name: value for field, value in linux.ListFields() if isinstance(value, (int, str))}


def _user(status: pb.ContainerStatus) -> dict[str, object] | None:
    if not status.HasField("user") or not status.user.HasField("linux"):
        return None
    user = status.user.linux
    return {"uid": user.uid, "gid": user.gid, "supplementalGroups": list(user.supplemental_groups)}


def runtime_state(answer: pb.StatusResponse, identity: RuntimeIdentity, observed: float) -> RuntimeState:
    problems = {kind: _condition(answer, kind) for kind in ("RuntimeReady", "NetworkReady")}
    return RuntimeState(
        ready=not problems["RuntimeReady"], network_ready=not problems["NetworkReady"],
        message=problems["RuntimeReady"], network_message=problems["NetworkReady"], name=identity.name,
        version=identity.version, handlers=tuple(_handler(h) for h in answer.runtime_handlers),
        supplemental_groups_policy=answer.features.supplemental_groups_policy, observed=observed)


def _condition(answer: pb.StatusResponse, kind: str) -> str:
    """Why the condition does not hold, "" when it does."""
    for found in answer.status.conditions:
        if found.type == kind:
            return "" if found.status else f"{kind}=false reason:{found.reason} message:{found.message}"
    return f"{kind} is missing in the runtime's status"


def _handler(handler: pb.RuntimeHandler) -> HandlerFeatures:
    features = handler.features
    return HandlerFeatures(handler.name, features.recursive_read_only_mounts, features.user_namespaces)


def image(item: pb.Image) -> Image:
    return Image(item.id, tuple(item.repo_tags), tuple(item.repo_digests), item.size,
                 item.uid.value if item.HasField("uid") else None, item.username, item.pinned)


def filesystem(item: pb.FilesystemUsage) -> FilesystemUse:
    return FilesystemUse(item.fs_id.mountpoint, item.used_bytes.value, item.inodes_used.value, item.timestamp)


def container_use(item: pb.ContainerStats) -> ContainerUse:
    who, cpu, memory, layer = item.attributes, item.cpu, item.memory, item.writable_layer
    return ContainerUse(
        id=who.id, uid=who.labels.get(POD_UID, ""), name=who.labels.get(CONTAINER_NAME) or who.metadata.name,
        attempt=who.metadata.attempt, cpu_at=cpu.timestamp, cpu=_optional(cpu, "usage_core_nano_seconds"),
        memory_at=memory.timestamp, working_set=_optional(memory, "working_set_bytes"),
        usage=_optional(memory, "usage_bytes"), rss=_optional(memory, "rss_bytes"),
        writable_at=layer.timestamp, writable_bytes=_optional(layer, "used_bytes"),
        writable_inodes=_optional(layer, "inodes_used"))


def _optional(item: Any, name: str) -> int | None:
    """A UInt64Value that may be absent."""
    return int(getattr(item, name).value) if item.HasField(name) else None
