"""From the bytes of a manifest to pods: decoded, typed, defaulted, and as static pods also validated.

Everything here is pure; nothing is read, and times and names are passed in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubelet_mp.errors import ManifestError
from kubelet_mp.model.conform import Conformer
from kubelet_mp.model.defaults import set_pod_defaults
from kubelet_mp.model.document import load
from kubelet_mp.model.staticpod import Origin, api_object_reference, make_static, priority_warnings
from kubelet_mp.model.validation import validate_pod

Pod = dict[str, Any]

MAX_SHOWN = 20  # problems in one message


class InvalidManifest(ManifestError):
    """`problems`: one text each; `pod`: namespace/name where the manifest tells it."""

    def __init__(self, place: str, problems: list[str], pod: str = "") -> None:
        shown = "; ".join(problems[:MAX_SHOWN])
        if len(problems) > MAX_SHOWN:
            shown += f"; and {len(problems) - MAX_SHOWN} more"
        super().__init__(f'cannot use manifest "{place}": {shown}')
        self.problems, self.pod, self.reason = tuple(problems), pod, shown


@dataclass(frozen=True)
class Decoded:
    """The pods of one manifest; `warnings` say what was ignored."""

    pods: list[Pod]
    is_list: bool = False
    warnings: list[str] = field(default_factory=list)


def decode(data: bytes, place: str) -> Decoded:
    """The v1 Pod, or the pods of the v1 PodList, in `data`, with right types and defaults.

    Raises InvalidManifest that names `place` (a path or URL) and the line or field.
    """
    try:
        document = load(data)
    except ManifestError as error:
        raise InvalidManifest(place, [str(error)]) from error
    kind = _kind(document.value, place)
    items = [document.value] if kind == "Pod" else document.value.get("items") or []
    if not isinstance(items, list):
        raise InvalidManifest(place, ["items: must be a list"])
    warnings, listed = list(document.warnings), kind != "Pod"
    pods = [_typed(item, place, f"items[{at}]" if listed else "", warnings) for at, item in enumerate(items)]
    return Decoded(pods, listed, warnings)


def _kind(value: Any, place: str) -> str:
    if not isinstance(value, dict):
        raise InvalidManifest(place, ["couldn't parse as pod: the document is no object"])
    version, kind = value.get("apiVersion"), value.get("kind")
    if not version or not kind:
        missing = " and ".join(name for name in ("apiVersion", "kind") if not value.get(name))
        raise InvalidManifest(place, [f"couldn't parse as pod: {missing} is missing"])
    if version != "v1" or kind not in ("Pod", "PodList"):
        raise InvalidManifest(place, [f"couldn't parse as pod: it is a {version} {kind}, must be a v1 Pod"])
    return str(kind)


def _typed(item: Any, place: str, path: str, warnings: list[str]) -> Pod:
    conformer = Conformer()
    pod: Pod = conformer.clean(item, "Pod", path)
    if conformer.problems:
        raise InvalidManifest(place, conformer.problems, _full_name(pod))
    warnings += conformer.unknown
    pod.update(apiVersion="v1", kind="Pod")
    set_pod_defaults(pod)
    return pod


def _full_name(pod: Pod) -> str:
    meta = pod.get("metadata", {})
    return f"{meta.get('namespace') or 'default'}/{meta['name']}" if meta.get("name") else ""


def static_pods(data: bytes, origin: Origin, seen: str, *, lists: bool = False) -> Decoded:
    """The valid static pods of a manifest. `lists`: a PodList is taken too, all of it or nothing.

    seen: RFC 3339 time for the annotation kubernetes.io/config.seen. Raises InvalidManifest.
    """
    decoded = decode(data, origin.place)
    if decoded.is_list and not lists:
        raise InvalidManifest(origin.place, ["couldn't parse as pod: it is a v1 PodList, must be a v1 Pod"])
    for pod in decoded.pods:
        _make_valid(pod, origin, seen)
        decoded.warnings.extend(priority_warnings(pod))
    return decoded


def _make_valid(pod: Pod, origin: Origin, seen: str) -> None:
    if not pod.get("metadata", {}).get("name"):
        problem = "invalid pod: metadata.name: Required value: name is needed for the pod"
        raise InvalidManifest(origin.place, [problem])
    make_static(pod, origin, seen)
    problems = validate_pod(pod)
    if problems:
        problems[0] = f"invalid pod: {problems[0]}"
    reference = api_object_reference(pod)
    if reference:
        problems.append(f"static pods may not reference {reference}")
    if problems:
        raise InvalidManifest(origin.place, problems, _full_name(pod))
