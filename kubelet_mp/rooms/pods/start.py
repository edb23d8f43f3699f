"""Starting things: a pod's sandbox, and one container after the other in it.

Source: Kubernetes 1.37 pkg/kubelet/kuberuntime (createPodSandbox, startContainer).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kubelet_mp import log
from kubelet_mp.errors import ContainerConfigError, HostError, KubeletError, RuntimeCallError
from kubelet_mp.host import subpaths
from kubelet_mp.host.files import MissingFile
from kubelet_mp.model import criname, podspec
from kubelet_mp.model.dns import pod_dns
from kubelet_mp.model.environment import no_files
from kubelet_mp.model.hostname import pod_hostname
from kubelet_mp.model.hostsfile import hosts_text
from kubelet_mp.model.podconfig import (
    ContainerInputs,
    MountedVolume,
    container_config,
    container_environment,
    sandbox_config,
    subpaths_to_prepare,
)
from kubelet_mp.model.qos import is_static
from kubelet_mp.model.runtime import Container, Image, Sandbox, State
from kubelet_mp.model.servicevars import Service
from kubelet_mp.rooms.pods import hooks
from kubelet_mp.rooms.pods.actions import Kill
from kubelet_mp.rooms.pods.env import Work, field_path
from kubelet_mp.rooms.pods.images import StartFailure
from kubelet_mp.rooms.pods.kill import Killer

RETRY = 10.0  # s, stretched by the caller's jitter
CONTENT_RETRY = 3.0  # s, likewise, while an object of the API server is missing
SERVICES_PATIENCE = 5.0  # s that the first list of services may take
ENV_FILE_LIMIT = 64 * 1024  # bytes
BUSY_RETRY = 1.0  # s, likewise, while the runtime undoes a call whose caller died
_log = log.get("pods")


@dataclass(slots=True)
class Place:
    """Where containers of the pod go: the sandbox and what its config was."""

    sandbox_id: str
    config: Mapping[str, Any]
    ips: tuple[str, ...]
    handler: str = ""


def still_busy(error: KubeletError) -> bool:
    """Whether the runtime keeps the name for an earlier call, as it does when this room was killed amid one."""
    return any(words in error.message for words in ("failed to reserve", "is reserved"))


def plan_sandbox(work: Work, attempt: int, cgroup_parent: str, handler: str, *, warn: bool = False
                 ) -> dict[str, Any]:
    """The PodSandboxConfig; with `warn` DNS warnings become events. Raises ContainerConfigError."""
    node = work.env.node
    dns = pod_dns(work.pod, node)
    for warning in dns.warnings if warn else ():
        work.event("Warning", warning.reason, warning.message)
    return sandbox_config(
        work.pod, node, attempt=attempt, cgroup_parent=cgroup_parent, dns=dns, runtime_handler=handler,
        hostname=pod_hostname(work.pod, node.cluster_domain))


def create_sandbox(work: Work, attempt: int, cgroup_parent: str) -> Place:
    """Run a new sandbox and learn its addresses. Raises KubeletError, with the events sent."""
    metrics, clock = work.env.metrics, work.env.clock
    metrics.started_pods.inc()
    metrics.started_containers.labels("pod_sandbox").inc()
    handler = ""
    try:
        handler = work.env.classes.handler(podspec.spec(work.pod).get("runtimeClassName"))
        config = plan_sandbox(work, attempt, cgroup_parent, handler, warn=True)
        work.env.dirs.make(work.namespace, work.name, work.uid)
        work.turn.take()
        begun = clock.monotonic()
        with work.calling("RunPodSandbox", "set up its sandbox"):
            sandbox_id = work.env.runtime.run_sandbox(config, handler)
        metrics.sandbox.labels(handler).observe(clock.monotonic() - begun)
    except KubeletError as error:
        _sandbox_failed(work, error, handler)
        raise
    finally:
        work.acted()
    return Place(sandbox_id, config, _addresses(work, sandbox_id), handler)


def _sandbox_failed(work: Work, error: KubeletError, handler: str) -> None:
    metrics = work.env.metrics
    metrics.started_pods_errors.inc()
    metrics.sandbox_errors.labels(handler).inc()
    metrics.started_containers_errors.labels("pod_sandbox", "CreatePodSandboxError").inc()
    work.event("Warning", "FailedCreatePodSandBox", f"Failed to create pod sandbox: {error.message}")


def _addresses(work: Work, sandbox_id: str) -> tuple[str, ...]:
    if podspec.host_network(work.pod):
        return work.env.node.node_ips
    try:
        sandbox: Sandbox = work.env.runtime.sandbox_status(sandbox_id)
    except RuntimeCallError as error:
        work.event("Warning", "FailedPodSandBoxStatus",
                   f'Unable to get pod sandbox status: {error.message}')
        raise
    return sandbox.ips


@dataclass(slots=True)
class Starter:
    """Starts containers of one pod. `volumes`: name → host path; `restarts`: name → count of the next instance.

    running: name → id of containers whose processes an ephemeral one may join.
    """

    work: Work
    place: Place
    volumes: Mapping[str, str]
    restarts: Mapping[str, int]
    running: Mapping[str, str] = field(default_factory=dict)

    def start(self, container: Mapping[str, Any]) -> None:
        """Raises StartFailure (with its events sent) and Cancelled."""
        kind = self._kind(container)
        self.work.env.metrics.started_containers.labels(kind).inc()
        try:
            self._start(container)
        except StartFailure as failure:
            self.work.env.metrics.started_containers_errors.labels(kind, failure.reason).inc()
            if failure.events:
                text = failure.message if failure.reason in _BY_MESSAGE else failure.reason
                self._event(container, "Warning", "Failed", f"Error: {text}")
            raise

    def _kind(self, container: Mapping[str, Any]) -> str:
        kinds = {"init_container": podspec.init_containers, "ephemeral_container": podspec.ephemeral_containers}
        name = container["name"]
        return next((k for k, of in kinds.items() if any(c["name"] == name for c in of(self.work.pod))), "container")

    def _event(self, container: Mapping[str, Any], type_: str, reason: str, message: str) -> None:
        self.work.event(type_, reason, message, field_path(self.work.pod, container["name"]))

    def _start(self, container: Mapping[str, Any]) -> None:
        work, name = self.work, container["name"]
        image = work.env.images.ensure(work, container)
        config = self._config(container, image)
        work.turn.take()
        container_id = self._create(container, config)
        self._event(container, "Normal", "Created", "Container created")
        try:
            with work.calling("StartContainer", f"start container {name}"):
                work.env.runtime.start_container(container_id)
        except RuntimeCallError as error:
            text = _words(error).replace(container_id, name)
            raise StartFailure("RunContainerError", text, RETRY) from error
        finally:
            work.acted()
        work.outcome.started += 1
        self._event(container, "Normal", "Started", "Container started")
        self._link_log(container, container_id, config)
        self._post_start(container, container_id)
        work.told.reason(name, None, 0.0)

    def _create(self, container: Mapping[str, Any], config: dict[str, Any]) -> str:
        try:
            with self.work.calling("CreateContainer", f"create container {container['name']}"):
                made = self.work.env.runtime.create_container(self.place.sandbox_id, config, self.place.config)
            return str(made)
        except RuntimeCallError as error:
            hold = BUSY_RETRY if still_busy(error) else RETRY
            raise StartFailure("CreateContainerError", _words(error), hold) from error
        finally:
            self.work.acted()

    # ---- config ----

    def _config(self, container: Mapping[str, Any], image: Image) -> dict[str, Any]:
        work, name, content = self.work, container["name"], self.work.env.content
        lookup, services = content.lookup(work.uid) if content else None, self._services()
        try:
            work.env.dirs.make_log_dir(work.namespace, work.name, work.uid, name)
            inputs = ContainerInputs(
                restart_count=self.restarts.get(name, 0), runtime_handler=self.place.handler,
                image_ref=image.id, image_uid=image.uid, image_user=image.username, pod_ips=self.place.ips,
                volumes={volume: MountedVolume(path) for volume, path in self.volumes.items()},
                termination_log=work.env.dirs.make_termination_log(work.uid, name),
                etc_hosts=self._etc_hosts(), lookup=lookup, env_files=self._env_file, services=services,
                target_id=self.running.get(container.get("targetContainerName") or "", ""))
            inputs = replace(inputs, subpaths=self._prepare_subpaths(container, inputs))
            return container_config(work.pod, container, work.env.node, inputs)
        except ContainerConfigError as error:
            missing = services is None or (lookup is not None and lookup.asked)
            hold = CONTENT_RETRY if missing else RETRY
            raise StartFailure("CreateContainerConfigError", error.message, hold) from error
        except HostError as error:
            raise StartFailure("CreateContainerConfigError", str(error), RETRY) from error

    def _services(self) -> Iterable[Service] | None:
        """None while there was no list of them: only a static pod starts without."""
        content = self.work.env.content
        if content is None:
            return ()
        self.work.waiting = "the list of services"
        try:
            return content.services.of(self.work.namespace, 0.0 if is_static(self.work.pod) else SERVICES_PATIENCE)
        finally:
            self.work.waiting = ""

    def _prepare_subpaths(self, container: Mapping[str, Any], inputs: ContainerInputs) -> dict[int, str]:
        """Position of the mount → what is bound for it. The message shown to users has no host path in it."""
        work, name, ready = self.work, container["name"], {}
        env = container_environment(work.pod, container, work.env.node, inputs)
        for sub in subpaths_to_prepare(work.pod, container, env):
            if sub.volume not in self.volumes:
                continue  # container_config names it
            target = subpaths.target_path(work.env.settings.root_dir, work.uid, sub.volume, name, sub.index)
            try:
                ready[sub.index] = subpaths.prepare(self.volumes[sub.volume], sub.path, target)
            except HostError as error:
                text = f'failed to prepare subPath for volumeMount "{sub.volume}" of container "{name}"'
                _log.error(text, pod=f"{work.namespace}/{work.name}", err=str(error))
                raise ContainerConfigError(text) from error
        return ready

    def _env_file(self, volume: str, path: str) -> str | None:
        """model.environment.EnvFiles; the message shown to users has no host path in it."""
        if not self.work.env.settings.feature("EnvFiles"):
            raise ContainerConfigError("fileKeyRef needs the feature gate EnvFiles", "turn the gate on")
        if not self.volumes.get(volume):
            return no_files(volume, path)
        try:
            return subpaths.read_text(self.volumes[volume], path, ENV_FILE_LIMIT)
        except MissingFile:
            return None
        except HostError as error:
            text = f'couldn\'t read env file "{path}" of volume "{volume}"'
            _log.error(text, pod=f"{self.work.namespace}/{self.work.name}", err=str(error))
            raise ContainerConfigError(text) from error

    def _etc_hosts(self) -> str | None:
        pod, node = self.work.pod, self.work.env.node
        if not self.place.ips and not podspec.host_network(pod):
            return None
        text = hosts_text(pod, node, pod_hostname(pod, node.cluster_domain), self.place.ips)
        return self.work.env.dirs.write_etc_hosts(self.work.uid, text)

    # ---- after the start ----

    def _link_log(self, container: Mapping[str, Any], container_id: str, config: Mapping[str, Any]) -> None:
        work, name = self.work, container["name"]
        target = f"{criname.pod_log_dir(work.env.node.pod_logs_dir, work.pod)}/{config['log_path']}"
        try:
            work.env.dirs.link_log(work.name, work.namespace, name, container_id, target)
        except HostError as error:  # the container runs all the same; only collectors of logs miss it
            self._event(container, "Warning", "Failed", f"Failed to link the log of the container: {error}")

    def _post_start(self, container: Mapping[str, Any], container_id: str) -> None:
        hook = (container.get("lifecycle") or {}).get("postStart")
        if not hook:
            return
        work, name = self.work, container["name"]
        work.waiting = f"the postStart hook of container {name}"
        try:
            with work.turn.paused():
                hooks.run(work, container, container_id, hook, next(iter(self.place.ips), ""))
        except KubeletError as error:
            self._event(container, "Warning", "FailedPostStartHook", "PostStartHook failed")
            self._kill_after_hook(container, container_id)
            raise StartFailure("PostStartHookError", error.message, events=False) from error
        finally:
            work.waiting = ""

    def _kill_after_hook(self, container: Mapping[str, Any], container_id: str) -> None:
        instance = Container(container_id, container["name"], 0, State.RUNNING, self.place.sandbox_id,
                             self.work.uid, 0)
        message = f"Container {container['name']} failed PostStartHook"
        with self.work.turn.paused():
            Killer(self.work, ips=self.place.ips).kill([Kill(instance, dict(container), message)])


_BY_MESSAGE = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})


def next_restarts(
    names: Sequence[str], latest: Mapping[str, int | None], known: Mapping[str, int | None],
    logs: Mapping[str, int | None]
) -> dict[str, int]:
    """Restart counts of the next instances: from the runtime's newest, else the last status, else the log files."""
    result = {}
    for name in names:
        found = [count for count in (latest.get(name), known.get(name)) if count is not None]
        result[name] = criname.restart_count(max(found) if found else None, logs.get(name))
    return result


def _words(error: RuntimeCallError) -> str:
    """What the runtime said, without the gRPC code."""
    return error.detail or error.message
