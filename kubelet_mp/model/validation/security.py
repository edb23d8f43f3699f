"""Checks of the security contexts of the pod and its containers, and of sysctls."""

from __future__ import annotations

from typing import Any

from kubelet_mp.model.validation import names
from kubelet_mp.model.validation.errors import Errors

Json = dict[str, Any]

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "fs.mqueue.")
_CHOICES = {
    "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
    "supplementalGroupsPolicy": ("Merge", "Strict"),
    "seLinuxChangePolicy": ("MountOption", "Recursive"),
}


def check_pod_security(spec: Json, errors: Errors) -> None:
    context, path = spec["securityContext"], "spec.securityContext"
    _ids(context, ("fsGroup", "runAsUser", "runAsGroup"), path, errors)
    for at, group in enumerate(context.get("supplementalGroups", [])):
        errors.each_invalid(f"{path}.supplementalGroups[{at}]", group, names.user_id(group))
    for name, choices in _CHOICES.items():
        if name in context and context[name] not in choices:
            errors.unsupported(f"{path}.{name}", context[name], choices)
    _profiles(context, path, errors)
    _sysctls(context.get("sysctls", []), spec, f"{path}.sysctls", errors)


def check_container_security(context: Json, path: str, errors: Errors, *, host_users: bool) -> None:
    _ids(context, ("runAsUser", "runAsGroup"), path, errors)
    mount = context.get("procMount", "Default")
    if mount not in ("Default", "Unmasked"):
        errors.unsupported(f"{path}.procMount", mount, ("Default", "Unmasked"))
    elif mount == "Unmasked" and host_users:
        errors.invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    _profiles(context, path, errors)
    _escalation(context, path, errors)


def _ids(context: Json, fields: tuple[str, ...], path: str, errors: Errors) -> None:
    for field in fields:
        if field in context:
            errors.each_invalid(f"{path}.{field}", context[field], names.user_id(context[field]))


def _escalation(context: Json, path: str, errors: Errors) -> None:
    if context.get("allowPrivilegeEscalation", True):
        return
    if context.get("privileged"):
        detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        errors.invalid(path, context, detail)
    if "CAP_SYS_ADMIN" in context.get("capabilities", {}).get("add", []):
        detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
        errors.invalid(path, context, detail)


def _profiles(context: Json, path: str, errors: Errors) -> None:
    for field, what in (("seccompProfile", "seccomp"), ("appArmorProfile", "AppArmor")):
        if field in context:
            _profile(context[field], f"{path}.{field}", field, what, errors)


def _profile(profile: Json, path: str, field: str, what: str, errors: Errors) -> None:
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        errors.required(f"{path}.type", f"type is required when {field} is set")
    elif kind not in _PROFILES:
        errors.unsupported(f"{path}.type", kind, _PROFILES)
    elif kind != "Localhost":
        if local is not None:
            detail = f"can only be set when {what} type is Localhost"
            errors.invalid(f"{path}.localhostProfile", local, detail)
    elif not local or not local.strip():
        errors.required(f"{path}.localhostProfile", f"must be set when {what} type is Localhost")
    elif what == "seccomp":
        errors.each_invalid(f"{path}.localhostProfile", local, names.relative_path(local))
    elif local != local.strip():
        errors.invalid(f"{path}.localhostProfile", local, "must not be padded with whitespace")


def _sysctls(sysctls: list[Json], spec: Json, path: str, errors: Errors) -> None:
    seen: set[str] = set()
    for at, item in enumerate(sysctls):
        name, where = item.get("name", ""), f"{path}[{at}].name"
        if not name:
            errors.required(where)
        elif name in seen:
            errors.duplicate(where, name)
        else:
            errors.each_invalid(where, name, names.sysctl(name))
        _host_sysctl(name.replace("/", "."), spec, where, errors)
        seen.add(name)


def _host_sysctl(name: str, spec: Json, path: str, errors: Errors) -> None:
    """A namespaced sysctl would change the host where the pod shares that namespace."""
    if spec.get("hostNetwork") and name.startswith("net."):
        errors.invalid(path, name, "may not be specified when 'hostNetwork' is true")
    if spec.get("hostIPC") and (name == "kernel.sem" or name.startswith(_IPC_SYSCTLS)):
        errors.invalid(path, name, "may not be specified when 'hostIPC' is true")
