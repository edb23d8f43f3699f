"""Validation of the flags that have no field in the file: pure, over the parsed values by flag name."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kubelet_mp.config import features

Values = Mapping[str, Any]

_OWN_LABELS = frozenset(
    [
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
    ]
)
_OWN_DOMAINS = ("kubelet.kubernetes.io", "node.kubernetes.io")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def process_problems(values: Values) -> list[str]:
    """Every problem of the command line; empty when there is none."""
    return [problem for check in _CHECKS for problem in check(values)]


def _root_dir(values: Values) -> Iterator[str]:
    root = values.get("root-dir", "")
    if root and (not root.startswith("/") or os.path.normpath(root) != root):
        yield f"--root-dir {root!r} must be an absolute, clean path, like {os.path.abspath(root)}"


def _cloud_provider(values: Values) -> Iterator[str]:
    provider = values.get("cloud-provider", "")
    if provider not in ("", "external"):
        yield f"unsupported value for --cloud-provider: {provider!r}; it is empty or external"


def _lock(values: Values) -> Iterator[str]:
    if values.get("exit-on-lock-contention") and not values.get("lock-file"):
        yield "cannot use --exit-on-lock-contention without --lock-file"


def _bootstrap(values: Values) -> Iterator[str]:
    if values.get("bootstrap-kubeconfig") and not values.get("kubeconfig"):
        yield "--bootstrap-kubeconfig needs --kubeconfig, the file to be written with its help"


def _mounter(values: Values) -> Iterator[str]:
    if values.get("experimental-mounter-path"):
        yield "--experimental-mounter-path is not supported; leave it out"


def _numbers(values: Values) -> Iterator[str]:
    port = values.get("cadvisor-port", 0)
    if not 0 <= port <= 65535:
        yield f"--cadvisor-port must be between 0 and 65535, is {port}"


def _gates(values: Values) -> Iterator[str]:
    for gate in features.unknown(values.get("feature-gates", {})):
        yield f"unrecognized feature gate: {gate}"


def _node_ip(values: Values) -> Iterator[str]:
    """One address, or two of different families."""
    parts = [part.strip() for part in values.get("node-ip", "").split(",") if part.strip()]
    families = []
    for part in parts:
        try:
            families.append(ipaddress.ip_address(part).version)
        except ValueError:
            yield f"bad --node-ip {part!r}: not an IP address"
    if len(parts) > 2 or (len(families) == 2 and families[0] == families[1]):
        yield "bad --node-ip: give one address, or one of each family (dual stack)"


def _node_labels(values: Values) -> Iterator[str]:
    labels: dict[str, str] = values.get("node-labels", {})
    foreign = sorted(key for key in labels if not allowed_label(key))
    if foreign:
        yield f"unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: {foreign}"
    for key, value in labels.items():
        yield from _label_form(key, value)


def allowed_label(key: str) -> bool:
    """Whether a node may give itself a label of this key."""
    domain, slash, _ = key.partition("/")
    if not slash or not _within(domain, ("kubernetes.io", "k8s.io")):
        return True
    return key in _OWN_LABELS or _within(domain, _OWN_DOMAINS)


def _within(domain: str, parents: Iterable[str]) -> bool:
    return any(domain == parent or domain.endswith(f".{parent}") for parent in parents)


def _label_form(key: str, value: str) -> Iterator[str]:
    prefix, slash, name = key.rpartition("/")
    if not _NAME.fullmatch(name) or (slash and not (_PREFIX.fullmatch(prefix) and len(prefix) <= 253)):
        yield f"--node-labels: {key!r} is not the key of a label"
    if value and not _NAME.fullmatch(value):
        yield f"--node-labels: {value!r} is not the value of a label (key {key})"


_CHECKS: tuple[Callable[[Values], Iterator[str]], ...] = (
    _gates,
    _root_dir,
    _cloud_provider,
    _lock,
    _bootstrap,
    _mounter,
    _numbers,
    _node_ip,
    _node_labels,
)
