"""load(): from the command line to Settings, in the kubelet's order of steps.

Flags, then --config, then the drop-ins of --config-dir, then the flags again on top; then validation.
Source: Kubernetes 1.37 cmd/kubelet/app/server.go.
"""

from __future__ import annotations

import copy
import os
import re
import socket
from collections.abc import Callable, Sequence
from typing import Any

from kubelet_mp.config import decode, files, flags
from kubelet_mp.config.flagtable import FLAGS
from kubelet_mp.config.model import KubeletConfiguration
from kubelet_mp.config.settings import KUBERNETES_VERSION, REPORTED_VERSION, Settings
from kubelet_mp.config.validate import kubelet_problems
from kubelet_mp.config.validate_flags import process_problems
from kubelet_mp.errors import ConfigError
from kubelet_mp.model.clock import parse_duration

_SEMVER = re.compile(r"v\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")


class Shown(Exception):
    """--help or --version was asked for: print `text` on stdout and end with 0."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def load(argv: Sequence[str], hostname: Callable[[], str] = socket.gethostname) -> Settings:
    """Settings from the command line (without the program's name) and the files that it names.

    Raises ConfigError for anything that upstream ends on before starting, and Shown for --help and
    --version. hostname: where the host's own name comes from.
    """
    given = flags.parse(argv)
    if given.words:
        raise ConfigError(f"unknown command {given.words[0]}", "the agent takes flags only; see kubelet-mp --help")
    version = _meta(given)
    _raise("the command line is refused", process_problems(given.values))
    kubelet, warnings = configuration(given)
    problems = kubelet_problems(kubelet)
    _raise("the configuration is refused", [f"invalid configuration: {path}: {text}" for path, text in problems])
    name = node_name(given.values.get("hostname-override", ""), hostname)
    return Settings(
        node_name=name,
        hostname=name,
        kubelet=kubelet,
        kubernetes_version=version,
        warnings=(*_deprecations(given), *warnings),
        **_process_values(given),
    )


def node_name(override: str, hostname: Callable[[], str]) -> str:
    """The override or the host's name, trimmed and lower-cased. Raises ConfigError when nothing is left."""
    name = (override or hostname()).strip().lower()
    if not name:
        raise ConfigError("empty hostname is invalid", "give --hostname-override a name, or the host one")
    return name


def configuration(given: flags.Given) -> tuple[KubeletConfiguration, list[str]]:
    """The merged configuration (defaults < file < drop-ins < flags), not validated yet, and warnings.

    Its model_fields_set names the fields that a file, drop-in or flag gave, not those that were defaulted.
    """
    warnings: list[str] = []
    said: set[str] = set()
    config, directory = given.values.get("config", ""), given.values.get("config-dir", "")
    kubelet = _from_file(config, warnings, said) if config else decode.legacy_defaults()
    if directory:
        kubelet = _with_drop_ins(kubelet, directory, said, hard_eviction=bool(config))
    document = kubelet.as_v1beta1()
    for path, value in given.overrides().items():
        _put(document, path, value)
        said.add(path[0])
    return decode.mark_set(decode.build(document, "the command line"), said), warnings


def _from_file(path: str, warnings: list[str], said: set[str]) -> KubeletConfiguration:
    document = files.read(path)
    for name in decode.unknown_fields(document.data):
        warnings.append(f"{path}: unknown field {name!r} is ignored")
    for name in document.duplicates:
        warnings.append(f"{path}: field {name!r} stands more than once, the last one counts")
    data = copy.deepcopy(document.data)
    said.update(decode.without_unset(data))
    decode.merge_default_eviction(data)
    decode.resolve_paths(data, os.path.dirname(os.path.abspath(path)))
    return decode.fill(data, path, hard_eviction=True)


def _with_drop_ins(
    kubelet: KubeletConfiguration, directory: str, said: set[str], *, hard_eviction: bool
) -> KubeletConfiguration:
    """A threshold map that a drop-in deletes gets its default back only where a --config file gave one."""
    for path in files.drop_ins(directory)[0]:
        document = files.read(path)
        if document.duplicates:
            raise ConfigError(f"drop-in {path}: field {document.duplicates[0]!r} stands more than once")
        said.update(decode.without_unset(document.data))
        merged = files.merge_patch(kubelet.as_v1beta1(), document.data)
        kubelet = decode.fill(merged, str(path), hard_eviction=hard_eviction)
    return kubelet


def _put(document: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Replace a field by a flag's value; featureGates alone are merged key by key."""
    *parents, last = path
    for parent in parents:
        document = document.setdefault(parent, {})
    document[last] = {**document.get(last, {}), **value} if last == "featureGates" else value


def _meta(given: flags.Given) -> str:
    """--help and --version, in this order; returns the version to report."""
    if given.values.get("help"):
        raise Shown(flags.usage())
    version = given.values.get("version", "")
    if version == "true":
        raise Shown(f"Kubernetes {REPORTED_VERSION}")
    if version == "raw":
        _, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
        raise Shown(f'version.Info{{Major:"1", Minor:"{minor}", GitVersion:"{REPORTED_VERSION}"}}')
    if version and not _SEMVER.fullmatch(version):
        raise ConfigError(f'invalid argument "{version}" for "--version" flag', "give a version like v1.2.3")
    return version or REPORTED_VERSION


_ELSEWHERE = ("version", "help", "hostname_override", "node_ip", "experimental_mounter_path")
_DURATIONS = ("housekeeping_interval", "minimum_container_ttl_duration")


def _process_values(given: flags.Given) -> dict[str, Any]:
    """The values of flags that stand in Settings, in its types."""
    said = given.process()
    values = {name: value for name, value in said.items() if name not in _ELSEWHERE}
    values["node_ips"] = tuple(part.strip() for part in said.get("node_ip", "").split(",") if part.strip())
    for name in _DURATIONS:
        if name in said:
            values[name] = parse_duration(said[name])
    for name in ("root_dir", "cert_dir"):
        if not values.get(name, "x"):
            del values[name]
    return values


def _deprecations(given: flags.Given) -> list[str]:
    return [
        f"flag --{name} is deprecated: set {'.'.join(FLAGS[name].path)} in the file given by --config"
        if FLAGS[name].path
        else f"flag --{name} is deprecated"
        for name in given.deprecated()
    ]


def _raise(head: str, problems: list[str]) -> None:
    if problems:
        raise ConfigError.aggregate(head, problems) if len(problems) > 1 else ConfigError(problems[0])
