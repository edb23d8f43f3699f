"""Security contexts of sandboxes and containers, with the field and enum names of the CRI.

Kubernetes 1.37 pkg/kubelet/kuberuntime/security_context*.go, pkg/securitycontext.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubelet_mp.errors import ContainerConfigError
from kubelet_mp.model import podspec
from kubelet_mp.model.namespaces import UserNamespace, container_namespaces, namespace_options
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.podspec import ContainerSpec, Pod

APPARMOR_ANNOTATION = "container.apparmor.security.beta.kubernetes.io/"
MASKED_PATHS = (
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
)
READONLY_PATHS = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
_SHARED = ("seLinuxOptions", "runAsUser", "runAsGroup", "runAsNonRoot")
_SELINUX = ("user", "role", "type", "level")
_RUNTIME_DEFAULT = {"profile_type": "RuntimeDefault"}
_UNCONFINED = {"profile_type": "Unconfined"}

Context = Mapping[str, Any]


def pod_context(pod: Pod) -> Context:
    return podspec.spec(pod).get("securityContext") or {}


def effective_context(pod: Pod, container: ContainerSpec) -> dict[str, Any]:
    """The container's securityContext, with the pod's value where it may come from there and is not given."""
    inherited = {name: pod_context(pod)[name] for name in _SHARED if pod_context(pod).get(name) is not None}
    own = {name: value for name, value in _own_context(container).items() if value is not None}
    return {**inherited, **own}


def _own_context(container: ContainerSpec) -> Context:
    return container.get("securityContext") or {}


def is_privileged(container: ContainerSpec) -> bool:
    return bool(_own_context(container).get("privileged"))


# ---------------------------------------------------------------- root or not


def check_non_root(pod: Pod, container: ContainerSpec, image_uid: int | None, image_user: str) -> None:
    """Raises ContainerConfigError if runAsNonRoot is set and the container would, or might, run as root.

    image_uid, image_user: the user of the image; an image that names none runs as root.
    """
    context = effective_context(pod, container)
    if not context.get("runAsNonRoot"):
        return
    who = f'(pod: "{podspec.describe(pod)}", container: {container.get("name")})'
    if "runAsUser" in context:
        problem = "container's runAsUser breaks non-root policy" if context["runAsUser"] == 0 else ""
    elif image_uid == 0 or (image_uid is None and not image_user):
        problem = "container has runAsNonRoot and image will run as root"
    elif image_uid is None:
        problem = (
            f"container has runAsNonRoot and image has non-numeric user ({image_user}), "
            "cannot verify user is non-root"
        )
    else:
        problem = ""
    if problem:
        raise ContainerConfigError(f"{problem} {who}")


def _user(context: Context, image_uid: int | None, image_user: str) -> dict[str, Any]:
    """run_as_*: what the pod says, else the user of the image, else root."""
    group = {"run_as_group": _int64(context["runAsGroup"])} if "runAsGroup" in context else {}
    if "runAsUser" in context:
        return {"run_as_user": _int64(context["runAsUser"]), **group}
    if image_uid is None and image_user:
        return {"run_as_username": image_user, **group}
    return {"run_as_user": _int64(image_uid or 0), **group}


def _int64(value: int) -> dict[str, int]:
    return {"value": int(value)}


# ---------------------------------------------------------------- profiles


def seccomp_profile(pod: Pod, container: ContainerSpec, node: NodeView) -> dict[str, Any]:
    """The container's profile, else the pod's, else the node's default. Raises ContainerConfigError."""
    profile = _own_context(container).get("seccompProfile") or pod_context(pod).get("seccompProfile")
    if not profile:
        return dict(_RUNTIME_DEFAULT if node.seccomp_default else _UNCONFINED)
    return _profile(profile, "seccompProfile", f"{node.seccomp_root}/")


def apparmor_profile(pod: Pod, container: ContainerSpec) -> dict[str, Any] | None:
    """The container's profile, else the pod's, else the old annotation's; None: the runtime decides."""
    profile = _own_context(container).get("appArmorProfile") or pod_context(pod).get("appArmorProfile")
    if profile:
        return _profile(profile, "appArmorProfile", "")
    text = podspec.annotations_of(pod).get(APPARMOR_ANNOTATION + str(container.get("name")), "")
    return _profile(_from_annotation(text), "appArmorProfile", "") if text else None


def _from_annotation(text: str) -> dict[str, str]:
    kinds = {"runtime/default": "RuntimeDefault", "unconfined": "Unconfined"}
    kind, _, name = text.partition("/")
    if text not in kinds and kind == "localhost":
        return {"type": "Localhost", "localhostProfile": name}
    return {"type": kinds.get(text, text)}


def _profile(profile: Mapping[str, Any], field: str, prefix: str) -> dict[str, Any]:
    """A SecurityProfile; prefix: what a localhost profile is relative to."""
    kind, local = profile.get("type"), profile.get("localhostProfile")
    if kind == "RuntimeDefault":
        return dict(_RUNTIME_DEFAULT)
    if kind == "Unconfined":
        return dict(_UNCONFINED)
    if kind != "Localhost":
        raise ContainerConfigError(
            f"{field}: unknown type {kind!r}", "use RuntimeDefault, Unconfined or Localhost"
        )
    if not local:
        raise ContainerConfigError(f"localhostProfile must be set if {field} type is Localhost")
    return {"profile_type": "Localhost", "localhost_ref": prefix + local}


def _apparmor_fields(profile: Mapping[str, Any] | None) -> dict[str, Any]:
    """The profile both ways: as a message, and as the text that older runtimes read."""
    if profile is None:
        return {}
    names = {"RuntimeDefault": "runtime/default", "Unconfined": "unconfined"}
    text = names.get(profile["profile_type"]) or f"localhost/{profile['localhost_ref']}"
    return {"apparmor": dict(profile), "apparmor_profile": text}


def selinux_options(context: Context) -> dict[str, Any]:
    """{"selinux_options": …} or {}."""
    options = context.get("seLinuxOptions")
    return {"selinux_options": {key: options.get(key) or "" for key in _SELINUX}} if options else {}


def _capabilities(context: Context) -> dict[str, Any]:
    given = context.get("capabilities") or {}
    fields = {"add_capabilities": given.get("add") or [], "drop_capabilities": given.get("drop") or []}
    return {"capabilities": {name: list(names) for name, names in fields.items()}} if given else {}


def proc_paths(context: Context, node: NodeView) -> dict[str, list[str]]:
    """masked_paths and readonly_paths by procMount: Default or Unmasked."""
    if context.get("procMount") == "Unmasked":
        return {"masked_paths": [], "readonly_paths": []}
    return {
        "masked_paths": [*MASKED_PATHS, *node.thermal_throttle_paths],
        "readonly_paths": list(READONLY_PATHS),
    }


# ---------------------------------------------------------------- whole contexts


def supplemental_groups(pod: Pod, extra: Sequence[int] = ()) -> dict[str, Any]:
    """Groups of every process: fsGroup, those of the pod's volumes, supplementalGroups; and their policy."""
    context = pod_context(pod)
    fs_group = [context["fsGroup"]] if context.get("fsGroup") is not None else []
    return {
        "supplemental_groups": [*fs_group, *extra, *(context.get("supplementalGroups") or [])],
        "supplemental_groups_policy": context.get("supplementalGroupsPolicy") or "Merge",
    }


def container_security(
    pod: Pod,
    container: ContainerSpec,
    node: NodeView,
    *,
    image_uid: int | None = None,
    image_user: str = "",
    extra_groups: Sequence[int] = (),
    userns: UserNamespace | None = None,
    target_id: str = "",
) -> dict[str, Any]:
    """linux.security_context of a container.

    extra_groups: groups that the pod's persistent volumes ask for. Raises ContainerConfigError.
    """
    check_non_root(pod, container, image_uid, image_user)
    context = effective_context(pod, container)
    return {
        "privileged": is_privileged(container),
        "readonly_rootfs": bool(context.get("readOnlyRootFilesystem")),
        "no_new_privs": context.get("allowPrivilegeEscalation") is False,
        "namespace_options": container_namespaces(pod, container, userns, target_id),
        "seccomp": seccomp_profile(pod, container, node),
        **_apparmor_fields(apparmor_profile(pod, container)),
        **_capabilities(context),
        **selinux_options(context),
        **_user(context, image_uid, image_user),
        **supplemental_groups(pod, extra_groups),
        **proc_paths(context, node),
    }


def sandbox_security(
    pod: Pod, *, extra_groups: Sequence[int] = (), userns: UserNamespace | None = None
) -> dict[str, Any]:
    """linux.security_context of a sandbox, which always runs under the runtime's own seccomp profile."""
    context = pod_context(pod)
    ids = {"run_as_user": context.get("runAsUser"), "run_as_group": context.get("runAsGroup")}
    return {
        "privileged": any(map(is_privileged, podspec.all_containers(pod))),
        "namespace_options": namespace_options(pod, userns),
        "seccomp": dict(_RUNTIME_DEFAULT),
        **{name: _int64(value) for name, value in ids.items() if value is not None},
        **selinux_options(context),
        **supplemental_groups(pod, extra_groups),
    }


def sysctls(pod: Pod) -> dict[str, str]:
    """The pod's sysctls, named with dots."""
    given = pod_context(pod).get("sysctls") or []
    return {_dotted(entry["name"]): str(entry.get("value", "")) for entry in given}


def _dotted(name: str) -> str:
    """A name written with slashes, dots and slashes swapped (`net/ipv4/conf/eth0.1/…` keeps its device)."""
    first = next((char for char in name if char in "./"), ".")
    return name if first == "." else name.translate(str.maketrans("./", "/."))
