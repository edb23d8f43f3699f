"""Which pods make room for a critical one. Pure.

As few pods as possible, and the cheaper classes first: what Guaranteed pods must give is decided first, as if
all others had gone already. Source: Kubernetes 1.37 pkg/kubelet/preemption.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubelet_mp.model.podspec import Pod, spec
from kubelet_mp.model.qos import is_critical, qos_class
from kubelet_mp.model.requests import Amounts, pod_requests

REASON = "Preempting"
MESSAGE = "Preempted in order to admit critical pod"
CONDITION_MESSAGE = "Pod was preempted by Kubelet to accommodate a critical pod."


class NoVictims(Exception):
    """Not even all pods together would free what is missing."""


def preemptable(critical: Pod, other: Pod) -> bool:
    """Whether `other` may be stopped for the sake of `critical`."""
    if is_critical(critical) and not is_critical(other):
        return True
    mine, theirs = spec(critical).get("priority"), spec(other).get("priority")
    return mine is not None and theirs is not None and mine > theirs


def choose_victims(critical: Pod, pods: Sequence[Pod], missing: Mapping[str, int]) -> list[Pod]:
    """The pods to stop so that `missing` (resource → amount) is free. Raises NoVictims."""
    classes: dict[str, list[Pod]] = {"BestEffort": [], "Burstable": [], "Guaranteed": []}
    for pod in pods:
        if preemptable(critical, pod):
            classes[qos_class(pod)].append(pod)
    cheap, middle, dear = classes.values()
    left = without(missing, [*cheap, *middle, *dear])
    if left:
        raise NoVictims(f"no set of running pods found to reclaim resources: {_text(left)}")
    from_dear = _nearest(dear, without(missing, [*cheap, *middle]))
    from_middle = _nearest(middle, without(missing, [*cheap, *from_dear]))
    from_cheap = _nearest(cheap, without(missing, [*from_middle, *from_dear]))
    return [*from_cheap, *from_middle, *from_dear]


def without(missing: Mapping[str, int], pods: Sequence[Pod]) -> Amounts:
    """What would still be missing if these pods were gone."""
    freed = [requests_of(pod) for pod in pods]
    left = {name: amount - sum(one.get(name, 0) for one in freed) for name, amount in missing.items()}
    return {name: amount for name, amount in left.items() if amount > 0}


def requests_of(pod: Pod) -> Amounts:
    return {**pod_requests(pod), "pods": 1}


def _nearest(pods: Sequence[Pod], missing: Mapping[str, int]) -> list[Pod]:
    """One pod after the other, always the one that comes closest to what is still missing, the smaller of two."""
    left, found = list(pods), list[Pod]()
    while missing:
        best = min(left, key=lambda pod: (_distance(missing, requests_of(pod)), *_size(pod)))
        left.remove(best)
        found.append(best)
        missing = without(missing, [best])
    return found


def _distance(missing: Mapping[str, int], freed: Mapping[str, int]) -> float:
    """0: all of it is freed; each resource that is not at all adds 1."""
    return sum((max(amount - freed.get(name, 0), 0) / amount) ** 2 for name, amount in missing.items())


def _size(pod: Pod) -> tuple[int, int]:
    requests = requests_of(pod)
    return requests.get("memory", 0), requests.get("cpu", 0)


def _text(missing: Mapping[str, int]) -> str:
    return "[" + "".join(f"(res: {name}, q: {amount}), " for name, amount in missing.items()) + "]"
