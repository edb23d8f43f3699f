"""projected: several sources in one directory (Kubernetes 1.37 pkg/volume/projected)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from kubelet_mp.errors import ApiError
from kubelet_mp.host.atomicdir import Content, check_path
from kubelet_mp.model import podspec
from kubelet_mp.rooms.volumes.content.keys import CONFIG_MAP, SECRET
from kubelet_mp.rooms.volumes.content.tokens import DEFAULT_SECONDS, TokenKey
from kubelet_mp.rooms.volumes.kinds.atomic import write
from kubelet_mp.rooms.volumes.kinds.base import Job, Kind, VolumeError
from kubelet_mp.rooms.volumes.kinds.downward import item_files
from kubelet_mp.rooms.volumes.kinds.objects import read_object
from kubelet_mp.rooms.volumes.payload import MODE, mode_of, together
from kubelet_mp.rooms.volumes.plan import fs_user, projections

_PRIVATE = 0o600


class Projected(Kind):
    """On a tmpfs; of two sources with one path the later wins."""

    plugin: ClassVar[str] = "kubernetes.io/projected"
    follows_pod: ClassVar[bool] = True
    longest: ClassVar[float] = 10.0

    def set_up(self, job: Job) -> str:
        return write(job, self.plugin, payload(job))

    def doing(self, job: Job) -> str:
        return f'reading the sources of volume "{job.name}"'


def payload(job: Job) -> dict[str, Content]:
    """Path → content of all sources. Raises VolumeError with the problems of all of them."""
    default = mode_of(job.source, MODE, "defaultMode")
    found: dict[str, Content] = {}
    problems = []
    for kind, body in projections(job.source):
        try:
            found |= _files(job, kind, body, default)
        except VolumeError as error:
            problems.append(error.message)
    if problems:
        raise VolumeError(together(problems))
    return found


def _files(job: Job, kind: str, body: Mapping[str, Any], default: int) -> dict[str, Content]:
    if kind == "downwardAPI":
        return item_files(job, body.get("items") or (), default)
    if kind in ("configMap", "secret"):
        object_kind = CONFIG_MAP if kind == "configMap" else SECRET
        return read_object(job, object_kind, body.get("name") or "", body, default)
    if kind == "serviceAccountToken":
        return _token(job, body, default)
    raise VolumeError(f"projected volumes with {kind} are not supported yet")


def _token(job: Job, body: Mapping[str, Any], default: int) -> dict[str, Content]:
    """A token only for whom it is meant: the one user of all containers, or the volume's group."""
    if job.content is None:
        raise VolumeError("service account tokens need the API server", "run with --kubeconfig")
    pod = job.pod
    key = TokenKey(
        podspec.namespace(pod), podspec.spec(pod).get("serviceAccountName") or "default", body.get("audience") or "",
        int(body.get("expirationSeconds") or DEFAULT_SECONDS), podspec.name(pod), podspec.uid(pod))
    user = fs_user(pod)
    mode = default if user is None and job.fs_group is None else _PRIVATE
    try:
        path, text = check_path(body.get("path") or ""), job.content.token(key)
    except ApiError as error:
        raise VolumeError(error.message, error.fix) from error
    except ValueError as error:
        raise VolumeError(str(error)) from error
    return {path: Content(text.encode(), mode, user)}
