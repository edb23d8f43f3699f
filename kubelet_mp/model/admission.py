"""Whether the node takes a pod: pure predicates, in the order in which they are asked.

Source: Kubernetes 1.37 pkg/kubelet/lifecycle (predicates), pkg/kubelet/sysctl.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubelet_mp.model import podspec
from kubelet_mp.model.podspec import Pod
from kubelet_mp.model.qos import is_static
from kubelet_mp.model.requests import pod_requests

REJECTED = "Pod was rejected: "
STANDARD = ("cpu", "memory", "ephemeral-storage")
_SAFE_SINCE: Mapping[str, tuple[int, int]] = {
    "kernel.shm_rmid_forced": (0, 0),
    "net.ipv4.ip_local_port_range": (0, 0),
    "net.ipv4.tcp_syncookies": (0, 0),
    "net.ipv4.ping_group_range": (0, 0),
    "net.ipv4.ip_unprivileged_port_start": (0, 0),
    "net.ipv4.ip_local_reserved_ports": (3, 16),
    "net.ipv4.tcp_keepalive_time": (4, 5),
    "net.ipv4.tcp_fin_timeout": (4, 6),
    "net.ipv4.tcp_keepalive_intvl": (4, 5),
    "net.ipv4.tcp_keepalive_probes": (4, 5),
    "net.ipv4.tcp_rmem": (4, 15),
    "net.ipv4.tcp_wmem": (4, 15),
    "net.ipv4.tcp_slow_start_after_idle": (4, 15),
    "net.ipv4.tcp_notsent_lowat": (4, 6),
}
_NAMESPACED = {"net.": "hostNetwork", "kernel.shm": "hostIPC", "kernel.msg": "hostIPC", "kernel.sem": "hostIPC",
               "fs.mqueue.": "hostIPC"}


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why not: the event's and status' reason, and the text that follows "Pod was rejected: "."""

    reason: str
    text: str

    @property
    def message(self) -> str:
        return REJECTED + self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOffer:
    """What the node offers. allocatable: cpu in millicores, else whole units. kernel: (major, minor)."""

    node_name: str
    allocatable: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)
    unsafe_sysctls: Sequence[str] = ()
    kernel: tuple[int, int] = (6, 1)
    supplemental_groups_policy: bool = False


def judge(pod: Pod, others: Iterable[Pod], offer: NodeOffer) -> Rejection | None:
    """None: the pod is admitted beside the `others` (which are admitted and not finished)."""
    beside = list(others)
    return (
        check_sysctls(pod, offer)
        or check_resources(pod, beside, offer)
        or check_node(pod, offer)
        or check_ports(pod, beside)
        or check_platform(pod, offer)
    )


# ---- sysctls ----


def check_sysctls(pod: Pod, offer: NodeOffer) -> Rejection | None:
    """SysctlForbidden for what is neither safe nor allowed by allowedUnsafeSysctls."""
    spec = podspec.spec(pod)
    for entry in (spec.get("securityContext") or {}).get("sysctls") or []:
        name = str(entry["name"]).replace("/", ".")
        problem = _sysctl_problem(name, spec, offer)
        if problem:
            return Rejection("SysctlForbidden", f"forbidden sysctl: {problem}")
    return None


def _sysctl_problem(name: str, spec: Mapping[str, Any], offer: NodeOffer) -> str:
    host = next((flag for prefix, flag in _NAMESPACED.items() if name.startswith(prefix)), "")
    if host and spec.get(host):
        return f'"{name}" not allowed with {host} enabled'
    since = _SAFE_SINCE.get(name)
    if since is not None and offer.kernel >= since:
        return ""
    return "" if any(_allows(pattern, name) for pattern in offer.unsafe_sysctls) else f'"{name}" not allowlisted'


def _allows(pattern: str, name: str) -> bool:
    plain = pattern.replace("/", ".")
    return name.startswith(plain[:-1]) if plain.endswith("*") else name == plain


# ---- resources ----


def check_resources(pod: Pod, others: Sequence[Pod], offer: NodeOffer) -> Rejection | None:
    """OutOfpods, OutOfcpu, …: what is asked for is more than the others leave."""
    room = offer.allocatable.get("pods")
    if room is not None and len(others) + 1 > room:
        return _short("pods", 1, len(others), room)
    wanted = {name: amount for name, amount in pod_requests(pod).items() if amount > 0}
    used = [pod_requests(other) for other in others] if wanted else []
    for name, amount in wanted.items():
        capacity = offer.allocatable.get(name)
        if capacity is None and name not in STANDARD and not name.startswith("hugepages-"):
            continue  # extended resources that the node does not have are ignored
        taken = sum(one.get(name, 0) for one in used)
        if taken + amount > (capacity or 0):
            return _short(name, amount, taken, capacity or 0)
    return None


def _short(name: str, requested: int, used: int, capacity: int) -> Rejection:
    return Rejection(f"OutOf{name}", f"Node didn't have enough resource: {name}, requested: {requested}, "
                     f"used: {used}, capacity: {capacity}")


# ---- the node itself ----


def check_node(pod: Pod, offer: NodeOffer) -> Rejection | None:
    """NodeName and NodeAffinity."""
    spec = podspec.spec(pod)
    if spec.get("nodeName") and spec["nodeName"] != offer.node_name:
        return _predicate("NodeName", "node(s) didn't match the requested node name")
    if not _selected(spec, offer):
        return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    return None


def _predicate(name: str, why: str) -> Rejection:
    return Rejection(name, f"Predicate {name} failed: {why}")


def _selected(spec: Mapping[str, Any], offer: NodeOffer) -> bool:
    for key, value in (spec.get("nodeSelector") or {}).items():
        if offer.labels.get(key) != value:
            return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(_term_matches(term, offer) for term in required.get("nodeSelectorTerms") or [])


def _term_matches(term: Mapping[str, Any], offer: NodeOffer) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False  # an empty term matches no node
    own = {"metadata.name": offer.node_name}
    return all(_matches(e, offer.labels) for e in expressions) and all(_matches(f, own) for f in fields)


def _matches(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement["key"])
    values = requirement.get("values") or []
    operator = requirement.get("operator")
    if operator in ("Exists", "DoesNotExist"):
        return (value is not None) == (operator == "Exists")
    if operator == "NotIn":
        return value not in values
    if value is None:
        return False
    if operator == "In":
        return value in values
    return _compares(str(operator), value, values)


def _compares(operator: str, value: str, values: Sequence[str]) -> bool:
    try:
        left, right = int(value), int(values[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right if operator == "Lt" else False


# ---- host ports ----


def check_ports(pod: Pod, others: Iterable[Pod]) -> Rejection | None:
    """NodePorts: a host port that another pod has already."""
    taken = [port for other in others for port in host_ports(other)]
    for port in host_ports(pod):
        if any(_conflict(port, other) for other in taken):
            return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    return None


def host_ports(pod: Pod) -> list[tuple[str, str, int]]:
    """(host IP, protocol, port) of every host port of containers and sidecars."""
    sidecars = [c for c in podspec.init_containers(pod) if c.get("restartPolicy") == "Always"]
    return [
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", int(port["hostPort"]))
        for container in [*podspec.regular_containers(pod), *sidecars]
        for port in container.get("ports") or []
        if port.get("hostPort")
    ]


def _conflict(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    anywhere = {"0.0.0.0", "::"}
    same_ip = one[0] == other[0] or one[0] in anywhere or other[0] in anywhere
    return same_ip and one[1:] == other[1:]


# ---- platform ----


def check_platform(pod: Pod, offer: NodeOffer) -> Rejection | None:
    """Operating system, node labels of it, supplementalGroupsPolicy."""
    spec = podspec.spec(pod)
    if (spec.get("os") or {}).get("name", "linux") != "linux":
        return Rejection("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    labelled = (spec.get("nodeSelector") or {}).get("kubernetes.io/os", "linux")
    if labelled != "linux":
        return Rejection("PodOSSelectorNodeLabelDoesNotMatch",
                         "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label")
    policy = (spec.get("securityContext") or {}).get("supplementalGroupsPolicy")
    if policy == "Strict" and not offer.supplemental_groups_policy:
        return Rejection("SupplementalGroupsPolicyNotSupported",
                         "SupplementalGroupsPolicy=Strict is not supported in this node")
    return None


def retryable(pod: Pod) -> bool:
    """A static pod has no controller that would make another one: it is asked for again when there is room."""
    return is_static(pod)
