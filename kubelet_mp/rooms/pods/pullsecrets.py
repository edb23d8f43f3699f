"""imagePullSecrets: the credentials that a pod brings for an image.

Source: Kubernetes 1.37 pkg/kubelet (getPullSecretsForPod), pkg/credentialprovider/secrets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kubelet_mp.errors import ApiError, RuntimeCallError
from kubelet_mp.model import podspec
from kubelet_mp.model.images import parse
from kubelet_mp.model.keyring import Entry, credentials, entries_of
from kubelet_mp.rooms.pods.content import PodContent


@dataclass(frozen=True, slots=True)
class PullAuth:
    """`auths`: CRI AuthConfigs, best first. `missing`: names of Secrets that could not be read."""

    auths: tuple[Mapping[str, str], ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def warning(self) -> str:
        """The message of FailedToRetrieveImagePullSecret, "" for none."""
        names = ", ".join(self.missing)
        return (f"Unable to retrieve some image pull secrets ({names}); attempting to pull the image may not succeed."
                if names else "")


Auth = Callable[[podspec.Pod, str], PullAuth]


def no_auth(pod: podspec.Pod, image: str) -> PullAuth:
    """Without an API server there are no Secrets."""
    return PullAuth()


class PullSecrets:
    """`auth` is called in passes, before each pull."""

    def __init__(self, content: PodContent) -> None:
        self._content = content

    def auth(self, pod: podspec.Pod, image: str) -> PullAuth:
        """`image`: a valid reference. Raises RuntimeCallError for a Secret whose content is broken."""
        entries: list[Entry] = []
        missing = []
        for name in _names(pod):
            found = self._read(pod, name)
            if found is None:
                missing.append(name)
            else:
                entries += _entries(found, f"{podspec.namespace(pod)}/{name}")
        return PullAuth(tuple(credentials(entries, parse(image).name)), tuple(missing))

    def _read(self, pod: podspec.Pod, name: str) -> Mapping[str, Any] | None:
        try:
            return self._content.object(podspec.uid(pod), "secret", podspec.namespace(pod), name)
        except ApiError:
            return None  # the pull is tried all the same, and the event names the Secret if it fails


def _names(pod: podspec.Pod) -> list[str]:
    return [ref["name"] for ref in podspec.spec(pod).get("imagePullSecrets") or () if ref.get("name")]


def _entries(secret: Mapping[str, Any], where: str) -> list[Entry]:
    try:
        return entries_of(secret)
    except ValueError as error:
        raise RuntimeCallError(f"image pull secret {where}: {error}", "correct the Secret") from error
