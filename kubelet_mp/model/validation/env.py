"""Checks of environment variables and where their values come from."""

from __future__ import annotations

from typing import Any

from kubelet_mp.model.validation import names
from kubelet_mp.model.validation.errors import Errors
from kubelet_mp.model.validation.fieldrefs import ENV_FIELDS, check_field_ref, check_resource_ref

Json = dict[str, Any]

_NO_SOURCE = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
)
_TWO_SOURCES = "may not have more than one field specified at a time"


def check_env(variables: list[Json], volumes: dict[str, Json], path: str, errors: Errors) -> None:
    """`volumes`: the pod's valid volumes by name, for values that come from files."""
    for at, variable in enumerate(variables):
        where = f"{path}[{at}]"
        name = variable.get("name", "")
        if not name:
            errors.required(f"{where}.name")
        else:
            errors.each_invalid(f"{where}.name", name, names.env_name(name))
        if "valueFrom" in variable:
            source = variable["valueFrom"]
            _source(source, variable.get("value", ""), f"{where}.valueFrom", errors)
            if "fileKeyRef" in source:
                _file_key(source["fileKeyRef"], volumes, f"{where}.valueFrom.fileKeyRef", errors)


def _source(source: Json, value: str, path: str, errors: Errors) -> None:
    if "fieldRef" in source:
        check_field_ref(source["fieldRef"], ENV_FIELDS, f"{path}.fieldRef", errors)
    if "resourceFieldRef" in source:
        check_resource_ref(source["resourceFieldRef"], f"{path}.resourceFieldRef", errors)
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if kind in source:
            _key(source[kind], f"{path}.{kind}", errors)
    if not source:
        errors.invalid(path, "", _NO_SOURCE)
    elif value:
        errors.invalid(path, "", "may not be specified when `value` is not empty")
    elif len(source) > 1:
        errors.invalid(path, "", _TWO_SOURCES)


def _key(ref: Json, path: str, errors: Errors) -> None:
    name, key = ref.get("name", ""), ref.get("key", "")
    errors.each_invalid(f"{path}.name", name, names.dns_subdomain(name))
    if not key:
        errors.required(f"{path}.key")
    else:
        errors.each_invalid(f"{path}.key", key, names.config_key(key))


def _file_key(ref: Json, volumes: dict[str, Json], path: str, errors: Errors) -> None:
    for field in ("key", "volumeName", "path"):
        if not ref.get(field):
            errors.required(f"{path}.{field}")
    errors.each_invalid(f"{path}.key", ref.get("key", ""), names.env_name(ref.get("key", "")))
    errors.each_invalid(f"{path}.path", ref.get("path", ""), names.no_backsteps(ref.get("path", "")))
    name = ref.get("volumeName", "")
    if name and name not in volumes:
        errors.not_found(f"{path}.volumeName", name)
    elif name and "emptyDir" not in volumes[name]:
        errors.invalid(f"{path}.volumeName", name, "referenced volume must be of type emptyDir")


def check_env_from(sources: list[Json], path: str, errors: Errors) -> None:
    for at, source in enumerate(sources):
        prefix = source.get("prefix", "")
        errors.each_invalid(f"{path}[{at}].prefix", prefix, names.env_name(prefix))
        kinds = [kind for kind in ("configMapRef", "secretRef") if kind in source]
        for kind in kinds:
            name, where = source[kind].get("name", ""), f"{path}[{at}].{kind}.name"
            if not name:
                errors.required(where)
            else:
                errors.each_invalid(where, name, names.dns_subdomain(name))
        if not kinds:
            errors.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(kinds) > 1:
            errors.invalid(path, "", _TWO_SOURCES)
