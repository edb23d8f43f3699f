"""Checks of volume mounts, block devices and ports of a container."""

from __future__ import annotations

from typing import Any

from kubelet_mp.model.validation import names
from kubelet_mp.model.validation.errors import Errors

Json = dict[str, Any]

_BIND_OPTIONS = ("nodev", "noexec", "nosuid")
_PROPAGATION = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")
_PROTOCOLS = ("SCTP", "TCP", "UDP")


def check_mounts(container: Json, volumes: dict[str, Json], path: str, errors: Errors) -> None:
    """`path` is the container's; `volumes` the pod's valid volumes by name."""
    devices = container.get("volumeDevices", [])
    seen: set[str] = set()
    for at, mount in enumerate(container.get("volumeMounts", [])):
        where = f"{path}.volumeMounts[{at}]"
        _mount(mount, volumes, where, errors)
        target = mount.get("mountPath", "")
        if target in seen:
            errors.invalid(f"{where}.mountPath", target, "must be unique")
        seen.add(target)
        if any(mount.get("name") == device.get("name") for device in devices):
            errors.invalid(f"{where}.name", mount.get("name", ""), "must not already exist in volumeDevices")
        if any(target == device.get("devicePath") for device in devices):
            detail = "must not already exist as a path in volumeDevices"
            errors.invalid(f"{where}.mountPath", target, detail)
        _propagation(mount, container, where, errors)
    _devices(devices, volumes, f"{path}.volumeDevices", errors)


def _mount(mount: Json, volumes: dict[str, Json], path: str, errors: Errors) -> None:
    name = mount.get("name", "")
    if not name:
        errors.required(f"{path}.name")
    if name not in volumes:
        errors.not_found(f"{path}.name", name)
    if not mount.get("mountPath"):
        errors.required(f"{path}.mountPath")
    for field in ("subPath", "subPathExpr"):
        errors.each_invalid(f"{path}.{field}", mount.get(field), names.relative_path(mount.get(field, "")))
    if mount.get("subPath") and mount.get("subPathExpr"):
        detail = "subPathExpr and subPath are mutually exclusive"
        errors.invalid(f"{path}.subPathExpr", mount["subPathExpr"], detail)
    _bind_options(mount.get("bindMountOptions", []), f"{path}.bindMountOptions", errors)
    if mount.get("bindMountOptions") and "image" in volumes.get(name, {}):
        detail = "bindMountOptions may not be used with image volumes"
        errors.invalid(f"{path}.bindMountOptions", mount["bindMountOptions"], detail)


def _bind_options(options: list[str], path: str, errors: Errors) -> None:
    for at, option in enumerate(options):
        if option not in _BIND_OPTIONS:
            errors.unsupported(f"{path}[{at}]", option, _BIND_OPTIONS)
        if option in options[:at]:
            errors.duplicate(f"{path}[{at}]", option)


def _propagation(mount: Json, container: Json, path: str, errors: Errors) -> None:
    propagation = mount.get("mountPropagation", "None")
    if propagation not in _PROPAGATION:
        errors.unsupported(f"{path}.mountPropagation", propagation, _PROPAGATION)
    if propagation == "Bidirectional" and not container.get("securityContext", {}).get("privileged"):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        errors.forbidden(f"{path}.mountPropagation", detail)
    recursive = mount.get("recursiveReadOnly", "Disabled")
    if recursive not in _RECURSIVE:
        errors.unsupported(f"{path}.recursiveReadOnly", recursive, _RECURSIVE)
    elif recursive != "Disabled":
        if not mount.get("readOnly"):
            errors.forbidden(f"{path}.recursiveReadOnly", "may only be specified when readOnly is true")
        if propagation != "None":
            detail = "may only be specified when mountPropagation is None or not specified"
            errors.forbidden(f"{path}.recursiveReadOnly", detail)


def _devices(devices: list[Json], volumes: dict[str, Json], path: str, errors: Errors) -> None:
    for at, device in enumerate(devices):
        where, name, target = f"{path}[{at}]", device.get("name", ""), device.get("devicePath", "")
        for field in ("name", "devicePath"):
            if not device.get(field):
                errors.required(f"{where}.{field}")
            elif any(device[field] == earlier.get(field) for earlier in devices[:at]):
                errors.invalid(f"{where}.{field}", device[field], "must be unique")
        if name not in volumes:
            errors.not_found(f"{where}.name", name)
        elif not {"persistentVolumeClaim", "ephemeral"} & volumes[name].keys():
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.invalid(f"{where}.name", name, detail)
        if names.no_backsteps(target):
            errors.invalid(f"{where}.devicePath", target, "can not contain backsteps ('..')")


def check_ports(ports: list[Json], path: str, errors: Errors) -> None:
    taken: set[str] = set()
    for at, port in enumerate(ports):
        where, name = f"{path}[{at}]", port.get("name", "")
        problems = names.port_name(name) if name else []
        errors.each_invalid(f"{where}.name", name, problems)
        if name in taken:
            errors.duplicate(f"{where}.name", name)
        if name and not problems:
            taken.add(name)
        _port_numbers(port, where, errors)
        if port["protocol"] not in _PROTOCOLS:
            errors.unsupported(f"{where}.protocol", port["protocol"], _PROTOCOLS)


def _port_numbers(port: Json, path: str, errors: Errors) -> None:
    inner, outer = port.get("containerPort", 0), port.get("hostPort", 0)
    if not inner:
        errors.required(f"{path}.containerPort")
    else:
        errors.each_invalid(f"{path}.containerPort", inner, names.port_number(inner))
    if outer:
        errors.each_invalid(f"{path}.hostPort", outer, names.port_number(outer))


def check_host_ports(containers: list[tuple[str, Json]], errors: Errors) -> None:
    """No two of these containers, given with their paths, may take the same port of the host."""
    taken: set[str] = set()
    for path, container in containers:
        for at, port in enumerate(container.get("ports", [])):
            claim = f"{port['protocol']}/{port.get('hostIP', '')}/{port.get('hostPort', 0)}"
            if not port.get("hostPort"):
                continue
            if claim in taken:
                errors.duplicate(f"{path}.ports[{at}].hostPort", claim)
            taken.add(claim)
