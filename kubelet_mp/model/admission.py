"""Whether the node takes a pod: pure predicates, in the order in which they are asked.

Order: sysctls, platform, what the node's resources, labels, name, ports and taints say, AppArmor, features.
Source: Kubernetes 1.37 pkg/kubelet/lifecycle (predicates), pkg/kubelet/sysctl, pkg/kubelet/preemption.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubelet_mp.model import podspec
from kubelet_mp.model.nodeselector import selected, untolerated
from kubelet_mp.model.podspec import Pod
from kubelet_mp.model.preemption import NoVictims, choose_victims
from kubelet_mp.model.qos import is_critical, is_static
from kubelet_mp.model.requests import has_pod_level, pod_requests
from kubelet_mp.model.sysctls import forbidden

REJECTED = "Pod was rejected: "
STANDARD = ("cpu", "memory", "ephemeral-storage")
_OS_LABEL = "kubernetes.io/os"
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why not: the event's and status' reason, and the text that follows "Pod was rejected: ".

    resource, missing: of an OutOf… rejection, how much of what is missing.
    """

    reason: str
    text: str
    resource: str = ""
    missing: int = 0

    @property
    def message(self) -> str:
        return REJECTED + self.text


@dataclass(frozen=True, slots=True)
class Preemption:
    """The pod is critical, and is admitted once these pods are stopped. `missing`: resource → amount."""

    victims: tuple[Pod, ...]
    missing: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOffer:
    """What the node offers. allocatable: cpu in millicores, else whole units. kernel: (major, minor)."""

    node_name: str
    allocatable: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, Any]] = ()
    unsafe_sysctls: Sequence[str] = ()
    kernel: tuple[int, int] = (6, 1)
    supplemental_groups_policy: bool = False
    apparmor: bool = True
    pod_level_resources: bool = True


def judge(pod: Pod, others: Iterable[Pod], offer: NodeOffer) -> Rejection | Preemption | None:
    """None: the pod is admitted beside the `others` (which are admitted and not finished)."""
    beside = list(others)
    before = check_sysctls(pod, offer) or check_platform(pod, offer)
    if before is not None:
        return before
    verdict = check_fit(pod, beside, offer)
    if isinstance(verdict, Rejection):
        return verdict
    return check_apparmor(pod, offer) or check_features(pod, offer) or verdict


# ---- sysctls ----


def check_sysctls(pod: Pod, offer: NodeOffer) -> Rejection | None:
    """SysctlForbidden for what is neither safe nor allowed by allowedUnsafeSysctls."""
    spec = podspec.spec(pod)
    for entry in (spec.get("securityContext") or {}).get("sysctls") or []:
        problem = forbidden(str(entry["name"]), spec, offer.kernel, offer.unsafe_sysctls)
        if problem:
            return Rejection("SysctlForbidden", f"forbidden sysctl: {problem}")
    return None


# ---- platform ----


def check_platform(pod: Pod, offer: NodeOffer) -> Rejection | None:
    """Operating system by label and by field, supplementalGroupsPolicy."""
    spec = podspec.spec(pod)
    if podspec.labels_of(pod).get(_OS_LABEL, "linux") != "linux":
        return Rejection("PodOSSelectorNodeLabelDoesNotMatch",
                         "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label")
    if (spec.get("os") or {}).get("name", "linux") != "linux":
        return Rejection("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    policy = (spec.get("securityContext") or {}).get("supplementalGroupsPolicy")
    if policy == "Strict" and not offer.supplemental_groups_policy:
        return Rejection("SupplementalGroupsPolicyNotSupported",
                         "SupplementalGroupsPolicy=Strict is not supported in this node")
    return None


# ---- what the node has ----


def check_fit(pod: Pod, others: Sequence[Pod], offer: NodeOffer) -> Rejection | Preemption | None:
    """Resources, labels, name, ports, taints; of several failures the first is told.

    A critical pod never fails for resources: others make room for it.
    """
    short = shortages(pod, others, offer)
    rest = [r for r in (check_affinity(pod, offer), check_name(pod, offer), check_ports(pod, others),
                        check_taints(pod, offer)) if r is not None]
    if not is_critical(pod):
        return next(iter([*short, *rest]), None)
    if rest or not short:
        return next(iter(rest), None)
    missing = {one.resource: one.missing for one in short}
    try:
        return Preemption(tuple(choose_victims(pod, others, missing)), missing)
    except NoVictims as error:
        text = f"preemption: error finding a set of pods to preempt: {error}"
        return Rejection("UnexpectedAdmissionError",
                         f"Unexpected error while attempting to recover from admission failure: {text}")


def shortages(pod: Pod, others: Sequence[Pod], offer: NodeOffer) -> list[Rejection]:
    """OutOfpods, OutOfcpu, …: what is asked for and is more than the others leave.

    Extended resources that the node does not have are ignored.
    """
    found = []
    room = offer.allocatable.get("pods")
    if room is not None and len(others) + 1 > room:
        found.append(_short("pods", 1, len(others), room))
    wanted = {name: amount for name, amount in pod_requests(pod).items() if amount > 0}
    used = [pod_requests(other) for other in others] if wanted else []
    for name in sorted(wanted, key=_rank):
        capacity, amount = offer.allocatable.get(name), wanted[name]
        if capacity is None and _extended(name):
            continue
        taken = sum(one.get(name, 0) for one in used)
        if taken + amount > (capacity or 0):
            found.append(_short(name, amount, taken, capacity or 0))
    return found


def _rank(name: str) -> tuple[int, str]:
    return (STANDARD.index(name) if name in STANDARD else len(STANDARD), name)


def _extended(name: str) -> bool:
    return name not in STANDARD and not name.startswith("hugepages-")


def _short(name: str, requested: int, used: int, capacity: int) -> Rejection:
    return Rejection(f"OutOf{name}", f"Node didn't have enough resource: {name}, requested: {requested}, "
                     f"used: {used}, capacity: {capacity}", name, requested - (capacity - used))


def check_affinity(pod: Pod, offer: NodeOffer) -> Rejection | None:
    """NodeAffinity: the nodeSelector and the required node affinity."""
    if selected(podspec.spec(pod), offer.labels, offer.node_name):
        return None
    return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")


def check_name(pod: Pod, offer: NodeOffer) -> Rejection | None:
    if podspec.spec(pod).get("nodeName", "") in ("", offer.node_name):
        return None
    return _predicate("NodeName", "node(s) didn't match the requested node name")


def check_taints(pod: Pod, offer: NodeOffer) -> Rejection | None:
    """TaintToleration: taints of effect NoExecute, which no static pod has to tolerate."""
    if is_static(pod) or not untolerated(offer.taints, podspec.spec(pod).get("tolerations") or [], "NoExecute"):
        return None
    return _predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")


def _predicate(name: str, why: str) -> Rejection:
    return Rejection(name, f"Predicate {name} failed: {why}")


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


# ---- AppArmor and features ----


def check_apparmor(pod: Pod, offer: NodeOffer) -> Rejection | None:
    """AppArmor: a profile is asked for that the host cannot enforce, or that has no name."""
    profiles = [p for p in _profiles(pod) if p.get("type") != "Unconfined"]
    if not profiles:
        return None
    if not offer.apparmor:
        return Rejection("AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host")
    if any(p.get("type") == "Localhost" and not (p.get("localhostProfile") or "").strip() for p in profiles):
        return Rejection("AppArmor", "Cannot enforce AppArmor: invalid empty AppArmor profile name")
    return None


def _profiles(pod: Pod) -> list[Mapping[str, Any]]:
    """All profiles of the pod: its own, those of containers, those of the deprecated annotations."""
    holders = [podspec.spec(pod), *podspec.all_containers(pod)]
    named = [(holder.get("securityContext") or {}).get("appArmorProfile") for holder in holders]
    old = [{"type": "Unconfined" if value == "unconfined" else "Annotated"}
           for key, value in podspec.annotations_of(pod).items() if key.startswith(_APPARMOR)]
    return [*(profile for profile in named if profile), *old]


def check_features(pod: Pod, offer: NodeOffer) -> Rejection | None:
    if has_pod_level(pod) and not offer.pod_level_resources:
        return Rejection("PodLevelResourcesNotSupported", "PodLevelResources feature gate is disabled")
    return None
