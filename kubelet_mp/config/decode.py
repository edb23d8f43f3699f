"""From a plain v1beta1 document to a KubeletConfiguration: unknown fields told, unset ones defaulted.

As upstream: an unknown or repeated field in --config is only warned about (the strict decode fails, the
lenient one is used), a wrong type is fatal. Source: Kubernetes 1.37 pkg/kubelet/kubeletconfig/configfiles.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any, get_args

from pydantic import ValidationError

from kubelet_mp.config.model import (
    EVICTION_HARD_DEFAULT,
    AnonymousAuthentication,
    Authentication,
    Authorization,
    KubeletConfiguration,
    WebhookAuthentication,
)
from kubelet_mp.config.types import Section, ZeroIsDefault
from kubelet_mp.errors import ConfigError
from kubelet_mp.model.clock import parse_duration

_RELATIVE = (
    ("staticPodPath",),
    ("authentication", "x509", "clientCAFile"),
    ("tlsCertFile",),
    ("tlsPrivateKeyFile",),
    ("resolvConf",),
    ("volumePluginDir",),
    ("podLogsDir",),
)


def legacy_defaults() -> KubeletConfiguration:
    """What holds without a --config file: open as in the first releases, and no hard eviction thresholds."""
    return KubeletConfiguration(
        authentication=Authentication(
            anonymous=AnonymousAuthentication(enabled=True), webhook=WebhookAuthentication(enabled=False)
        ),
        authorization=Authorization(mode="AlwaysAllow"),
        read_only_port=10255,
    )


def unknown_fields(data: Any, section: type[Section] = KubeletConfiguration, at: str = "") -> list[str]:
    """The paths of keys that are no field, e.g. `authentication.webhook.enable`."""
    return list(_unknown(data, section, at))


def _unknown(data: Any, section: type[Section], at: str) -> Iterator[str]:
    if isinstance(data, list):
        for index, item in enumerate(data):
            yield from _unknown(item, section, f"{at}[{index}]")
    if not isinstance(data, dict):
        return
    fields = by_alias(section)
    for key, value in data.items():
        path = f"{at}.{key}" if at else key
        if key not in fields:
            yield path
        elif (inner := _section_in(fields[key].annotation)) is not None:
            yield from _unknown(value, inner, path)


def by_alias(section: type[Section]) -> dict[str, Any]:
    """The fields of a section by their names in the file."""
    return {info.alias or name: info for name, info in section.model_fields.items()}


def _section_in(annotation: Any) -> type[Section] | None:
    """The nested object of a field, also in a list or when it may be absent."""
    for part in (annotation, *get_args(annotation)):
        if isinstance(part, type) and issubclass(part, Section):
            return part
    return None


def without_unset(data: dict[str, Any], section: type[Section] = KubeletConfiguration) -> dict[str, Any]:
    """The document without what stands for "not set": nulls, and zero values of fields without a zero."""
    fields, kept = by_alias(section), {}
    for key, value in data.items():
        info = fields.get(key)
        if info is None or value is None or (_zero_is_default(info) and _zero(value, info.annotation)):
            continue
        inner = _section_in(info.annotation)
        kept[key] = without_unset(value, inner) if inner and isinstance(value, dict) else value
    return kept


def _zero_is_default(info: Any) -> bool:
    return any(isinstance(mark, ZeroIsDefault) for mark in info.metadata)


def _zero(value: Any, annotation: Any) -> bool:
    """Whether a value as it stands in a file is Go's zero value of its field ("" , 0, or a duration of 0)."""
    if isinstance(value, bool):
        return False
    if annotation is float and isinstance(value, str):
        try:
            return parse_duration(value) == 0
        except ValueError:
            return False
    return value in ("", 0)


def fill(data: dict[str, Any], name: str, *, hard_eviction: bool) -> KubeletConfiguration:
    """The configuration of a document, unset fields defaulted. Raises ConfigError naming `name` (the file).

    hard_eviction: whether a document without evictionHard gets the default thresholds.
    """
    given = without_unset(data)
    if "nodeStatusUpdateFrequency" in given:
        given.setdefault("nodeStatusReportFrequency", given["nodeStatusUpdateFrequency"])
    parallel = given.get("maxParallelImagePulls")
    if isinstance(parallel, int) and parallel >= 2:
        given.setdefault("serializeImagePulls", False)
    if hard_eviction:
        given.setdefault("evictionHard", dict(EVICTION_HARD_DEFAULT))
    return build(given, name)


def merge_default_eviction(data: dict[str, Any]) -> None:
    """With mergeDefaultEvictionSettings, add the default thresholds to those of a --config file, in place."""
    given = data.get("evictionHard")
    if data.get("mergeDefaultEvictionSettings") is True and isinstance(given, dict):
        data["evictionHard"] = {**EVICTION_HARD_DEFAULT, **given}


def build(document: dict[str, Any], name: str) -> KubeletConfiguration:
    """The configuration of a document taken as it is. Raises ConfigError with every wrong type in it."""
    try:
        return KubeletConfiguration.model_validate(document)
    except ValidationError as error:
        problems = [_problem(item) for item in error.errors()]
        raise ConfigError.aggregate(f"cannot decode {name}", problems) from None


def _problem(item: Any) -> str:
    path = ""
    for part in item["loc"]:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    reason = str(item["msg"]).removeprefix("Value error, ")
    return f"{path}: {reason} (got {str(item['input'])[:80]!r})"


def mark_set(kubelet: KubeletConfiguration, names: Collection[str]) -> KubeletConfiguration:
    """The same configuration, its model_fields_set being those of the names (as in files) that are fields."""
    fields = {name for name, info in KubeletConfiguration.model_fields.items() if info.alias in names}
    return KubeletConfiguration.model_construct(_fields_set=fields, **dict(kubelet))


def resolve_paths(document: dict[str, Any], directory: str) -> None:
    """Make the relative paths of a --config document absolute, in place, against the file's directory."""
    for *parents, last in _RELATIVE:
        holder: Any = document
        for parent in parents:
            holder = holder.get(parent) if isinstance(holder, dict) else None
        value = holder.get(last) if isinstance(holder, dict) else None
        if isinstance(value, str) and value and not value.startswith("/"):
            holder[last] = os.path.normpath(os.path.join(directory, value))
