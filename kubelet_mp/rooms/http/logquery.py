"""The decisions of /containerLogs: what the query asks for, and which container's log that is.

Source: Kubernetes 1.37 pkg/kubelet/server/server.go, pkg/kubelet/kubelet_pods.go (validateContainerLogStatus),
k8s.io/apimachinery/pkg/conversion/queryparams.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubelet_mp.host.logfiles import LogOptions
from kubelet_mp.model import clock

_KINDS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_SPECS = ("containers", "initContainers", "ephemeralContainers")
_INT64 = 2**63


class LogRequestError(Exception):
    """The request is refused with `status`; the text of the error is the body of the answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def options(query: Mapping[str, Sequence[str]], now_ns: int) -> tuple[LogOptions, bool]:
    """(what to give, previous instance?) of the query's parameters. Raises LogRequestError 400 or 422."""
    values = {name: given[0] for name, given in query.items() if given}
    if tail := values.get("tail"):
        values["tailLines"] = tail
        if tail == "all":
            del values["tailLines"]
    if "stream" in values:
        raise LogRequestError(400, "choosing a stream needs the feature gate PodLogsQuerySplitStreams")
    tail_lines, limit, seconds = (_integer(values.get(n)) for n in ("tailLines", "limitBytes", "sinceSeconds"))
    since = _time(values.get("sinceTime"))
    _validate(tail_lines, limit, seconds, since)
    if seconds is not None:
        since = max(1, now_ns - seconds * clock.NS)
    found = LogOptions(tail_lines, limit, since or 0, _flag(values.get("timestamps")), _flag(values.get("follow")))
    return found, _flag(values.get("previous"))


def _validate(tail: int | None, limit: int | None, seconds: int | None, since: int | None) -> None:
    bad = (
        (tail is not None and tail < 0)
        or (limit is not None and limit < 1)
        or (seconds is not None and (seconds < 1 or since is not None))
    )
    if bad:
        raise LogRequestError(422, '{"message": "Invalid request."}')


def _undecodable() -> LogRequestError:
    return LogRequestError(400, '{"message": "Unable to decode query."}')


def _flag(value: str | None) -> bool:
    return value is not None and value.lower() != "false" and value != "0"


def _integer(value: str | None) -> int | None:
    if value is None:
        return None
    digits = value[1:] if value[:1] in ("+", "-") else value
    if not (digits.isascii() and digits.isdigit()) or not -_INT64 <= int(value) < _INT64:
        raise _undecodable()
    return int(value)


def _time(value: str | None) -> int | None:
    if value is None or value in ("", "null"):
        return None
    try:
        return max(1, clock.parse_rfc3339(value))
    except ValueError:
        raise _undecodable() from None


def has_container(pod: Mapping[str, Any], name: str) -> bool:
    """Whether the pod's spec has a container (of any kind) of that name."""
    spec = pod.get("spec", {})
    return any(c["name"] == name for kind in _SPECS for c in spec.get(kind) or ())


def container_status(pod: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    status = pod.get("status", {})
    return next((c for kind in _KINDS for c in status.get(kind) or () if c["name"] == name), None)


def choose(pod: Mapping[str, Any], name: str, previous: bool) -> str:
    """The runtime's id of the container whose log is meant. Raises LogRequestError 400."""
    where = f'container "{name}" in pod "{pod["metadata"]["name"]}"'
    status = container_status(pod, name)
    if status is None:
        raise LogRequestError(400, f"{where} is not available")
    state, last = status.get("state") or {}, (status.get("lastState") or {}).get("terminated")
    if previous:
        return _id(last) or _refuse(f"previous terminated {where} not found")
    if "running" in state:
        return bare_id(status.get("containerID", ""))
    if "terminated" in state:
        return _id(state["terminated"]) or _id(last) or _refuse(f"{where} is terminated")
    if last is not None:
        return _id(last) or _refuse(f"{where} is terminated")
    if "waiting" in state:
        return _refuse(f"{where} is waiting to start: {_why(state['waiting'].get('reason', ''))}")
    return _refuse(f"{where} is waiting to start - no logs yet")


def _refuse(text: str) -> str:
    raise LogRequestError(400, text)


def _why(reason: str) -> str:
    return {
        "ErrImagePull": "image can't be pulled",
        "ImagePullBackOff": "trying and failing to pull image",
    }.get(reason, reason)


def _id(terminated: Mapping[str, Any] | None) -> str:
    return bare_id((terminated or {}).get("containerID", ""))


def bare_id(container_id: str) -> str:
    """`containerd://abc` → `abc`."""
    return container_id.rpartition("//")[2]


def is_running(pod: Mapping[str, Any], container_id: str) -> bool:
    """Whether the pod's status says that this very container runs."""
    status = pod.get("status", {})
    return any(
        "running" in (c.get("state") or {}) and bare_id(c.get("containerID", "")) == container_id
        for kind in _KINDS
        for c in status.get(kind) or ()
    )
