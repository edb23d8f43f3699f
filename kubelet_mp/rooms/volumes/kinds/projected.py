"""projected: several sources in one directory (Kubernetes 1.37 pkg/volume/projected)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from kubelet_mp.errors import ApiError, HostError
from kubelet_mp.host.atomicdir import Content, check_path
from kubelet_mp.model import podspec
from kubelet_mp.rooms.volumes.content.certificates import CertificateKey
from kubelet_mp.rooms.volumes.content.keys import CONFIG_MAP, SECRET
from kubelet_mp.rooms.volumes.content.store import ApiContent
from kubelet_mp.rooms.volumes.content.tokens import DEFAULT_SECONDS, TokenKey
from kubelet_mp.rooms.volumes.kinds.atomic import write
from kubelet_mp.rooms.volumes.kinds.base import Job, Kind, VolumeError, defaults
from kubelet_mp.rooms.volumes.kinds.downward import item_files
from kubelet_mp.rooms.volumes.kinds.objects import read_object
from kubelet_mp.rooms.volumes.payload import together, user_of
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
    found: dict[str, Content] = {}
    problems = []
    for index, (kind, body) in enumerate(projections(job.source)):
        try:
            found |= _files(job, kind, body, index)
        except HostError as error:
            problems.append(error.message)
    if problems:
        raise VolumeError(together(problems))
    return found


def _files(job: Job, kind: str, body: Mapping[str, Any], index: int) -> dict[str, Content]:
    if kind == "downwardAPI":
        return item_files(job, body.get("items") or (), *defaults(job))
    if kind in ("configMap", "secret"):
        object_kind = CONFIG_MAP if kind == "configMap" else SECRET
        return read_object(job, object_kind, body.get("name") or "", body, *defaults(job))
    if kind not in _READERS:
        raise VolumeError(f"projected volumes with {kind} are not supported yet")
    if job.content is None:
        raise VolumeError(f"projected volumes with {kind} need the API server", "run with --kubeconfig")
    try:
        texts = _READERS[kind](job, job.content, body, index)
        return {check_path(path): _private(job, body, text) for path, text in texts.items()}
    except ApiError as error:
        raise VolumeError(error.message, error.fix) from error
    except ValueError as error:
        raise VolumeError(str(error)) from error


def _private(job: Job, body: Mapping[str, Any], text: str) -> Content:
    """A file only for whom it is meant: the one user of all containers, or the volume's group."""
    mode, user = defaults(job)
    user = user_of(body, fs_user(job.pod) if user is None else user)
    return Content(text.encode(), mode if user is None and job.fs_group is None else _PRIVATE, user)


def _token(job: Job, content: ApiContent, body: Mapping[str, Any], index: int) -> dict[str, str]:
    key = TokenKey(
        podspec.namespace(job.pod), _account(job), body.get("audience") or "",
        int(body.get("expirationSeconds") or DEFAULT_SECONDS), podspec.name(job.pod), job.uid)
    return {body.get("path") or "": content.token(key)}


def _trust(job: Job, content: ApiContent, body: Mapping[str, Any], index: int) -> dict[str, str]:
    return {body.get("path") or "": content.anchors(body)}


def _certificate(job: Job, content: ApiContent, body: Mapping[str, Any], index: int) -> dict[str, str]:
    key = CertificateKey(podspec.namespace(job.pod), podspec.name(job.pod), job.uid, _account(job), job.name, index)
    issued = content.certificate(key, body)
    texts = {"credentialBundlePath": issued.key + issued.chain, "keyPath": issued.key,
             "certificateChainPath": issued.chain}
    return {body[field]: text for field, text in texts.items() if body.get(field)}


def _account(job: Job) -> str:
    return podspec.spec(job.pod).get("serviceAccountName") or "default"


_READERS: Mapping[str, Callable[[Job, ApiContent, Mapping[str, Any], int], dict[str, str]]] = {
    "serviceAccountToken": _token, "clusterTrustBundle": _trust, "podCertificate": _certificate}
