"""Images: presence, pulls and their back-off, with the waiting reasons and events of the kubelet.

Source: Kubernetes 1.37 pkg/kubelet/images. One object for the room; `ensure` is called from many passes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kubelet_mp.errors import RuntimeCallError
from kubelet_mp.model.backoff import Backoff
from kubelet_mp.model.clock import format_duration
from kubelet_mp.model.images import InvalidImageName, with_default_tag
from kubelet_mp.model.runtime import Image
from kubelet_mp.rooms.pods.env import Work, field_path
from kubelet_mp.rooms.pods.metrics import size_bucket
from kubelet_mp.rooms.pods.pullsecrets import Auth, no_auth
from kubelet_mp.rooms.pods.slots import Cancelled, Slots

RECHECK = 1.0  # s after a failed pull at which ErrImagePull turns into ImagePullBackOff
UNBOUNDED = 10_000
_OWN_REASONS = ("RegistryUnavailable", "SignatureValidationFailed")


class StartFailure(Exception):
    """A container cannot be started now: its waiting reason, and for how many seconds to leave it alone."""

    def __init__(self, reason: str, message: str, hold: float | None = None, events: bool = True) -> None:
        super().__init__(message)
        self.reason, self.message, self.hold, self.events = reason, message, hold, events


class TokenBucket:
    """registryPullQPS with registryBurst; a rate of 0 lets everything pass."""

    def __init__(self, rate: float, burst: int, now: Callable[[], float]) -> None:
        self._rate, self._burst, self._now = rate, max(burst, 1), now
        self._tokens, self._at = float(self._burst), now()
        self._lock = threading.Lock()

    def take(self) -> bool:
        if self._rate <= 0:
            return True
        with self._lock:
            now = self._now()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
            self._at = now
            if self._tokens < 1:
                return False
            self._tokens -= 1
            return True


@dataclass(slots=True)
class _Want:
    """One container's wish for an image."""

    work: Work
    container: Mapping[str, Any]
    image: str  # as in the spec
    ref: str  # with the default tag
    annotations: Mapping[str, str]

    @property
    def key(self) -> str:
        return f"{self.work.uid}_{self.image}"

    def event(self, type_: str, reason: str, message: str) -> None:
        self.work.event(type_, reason, message, field_path(self.work.pod, self.container["name"]))


class Images:
    """`runtime` is a host.cri.Runtime; `auth` gives the credentials that a pod has for an image."""

    def __init__(self, runtime: Any, settings: Any, now: Callable[[], float], auth: Auth = no_auth) -> None:
        config = settings.kubelet
        parallel = 1 if config.serialize_image_pulls else (config.max_parallel_image_pulls or UNBOUNDED)
        self._runtime, self._now, self._auth = runtime, now, auth
        self._queue = Slots(parallel, stale=float("inf"), now=now)
        self._bucket = TokenBucket(config.registry_pull_qps, config.registry_burst, now)
        self._lock = threading.Lock()
        self._backoff = Backoff()
        self._errors: dict[str, str] = {}  # key → "ErrImagePull: …" of the last failed pull

    def wake(self) -> None:
        """Have those that wait for their turn look whether they are still wanted."""
        self._queue.wake()

    def ensure(self, work: Work, container: Mapping[str, Any]) -> Image:
        """The image, pulled if the policy asks for it. Raises StartFailure, Cancelled."""
        want = self._want(work, container)
        policy = container.get("imagePullPolicy") or "IfNotPresent"
        if policy != "Always":
            found = self._present(want)
            if found is not None:
                want.event("Normal", "Pulled", f'Container image "{want.ref}" already present on machine and '
                           "can be accessed by the pod")
                return found
            if policy == "Never":
                text = f'Container image "{want.ref}" is not present with pull policy of Never'
                want.event("Warning", "ErrImageNeverPull", text)
                raise StartFailure("ErrImageNeverPull", text)
        return self._pull_unless_backing_off(want)

    def _want(self, work: Work, container: Mapping[str, Any]) -> _Want:
        image = container.get("image") or ""
        try:
            ref = with_default_tag(image)
        except InvalidImageName as error:
            text = error.message
            work.event("Warning", "InspectFailed", text, field_path(work.pod, container["name"]))
            raise StartFailure("InvalidImageName", text) from error
        return _Want(work, container, image, ref, work.pod["metadata"].get("annotations") or {})

    def _present(self, want: _Want) -> Image | None:
        try:
            return self._runtime.image_status(want.ref, want.annotations)
        except RuntimeCallError as error:
            text = f'Failed to inspect image "{want.ref}": {error.message}'
            want.event("Warning", "InspectFailed", text)
            raise StartFailure("ImageInspectError", text) from error

    # ---- pulls ----

    def _pull_unless_backing_off(self, want: _Want) -> Image:
        now = self._now()
        with self._lock:
            ready = self._backoff.ready_since_update(want.key, now)
            previous = self._errors.get(want.key, "")
        if ready > now:
            text = f'Back-off pulling image "{want.ref}"'
            want.event("Normal", "BackOff", text)
            full = f"{text}: {previous}" if previous else text
            raise StartFailure("ImagePullBackOff", full, ready - now)
        with want.work.turn.paused():
            return self._pull_in_turn(want)

    def _pull_in_turn(self, want: _Want) -> Image:
        want.work.waiting = f"its turn to pull image {want.ref}"
        asked = self._now()
        ticket = self._queue.acquire(want.work.turn.order, want.work.cancel)
        try:
            want.event("Normal", "Pulling", f'Pulling image "{want.ref}"')
            want.work.waiting = f"the pull of image {want.ref}"
            return self._pull(want, asked)
        finally:
            self._queue.release(ticket)
            want.work.waiting = ""

    def _pull(self, want: _Want, asked: float) -> Image:
        begun = self._now()
        try:
            if not self._bucket.take():
                raise RuntimeCallError("pull QPS exceeded")
            self._pull_with_credentials(want)
            image = self._runtime.image_status(want.ref, want.annotations)
            if image is None:
                raise RuntimeCallError(f'image "{want.ref}" is not there after its pull')
        except RuntimeCallError as error:
            if want.work.cancel.is_set():
                raise Cancelled from error
            raise self._failed(want, error) from error
        self._pulled(want, image, begun, asked)
        return image

    def _pull_with_credentials(self, want: _Want) -> None:
        """Each credential in turn, anonymous without any; the errors of all together."""
        problems: list[RuntimeCallError] = []
        found = self._auth(want.work.pod, want.ref)
        for auth in found.auths or ({},):
            try:
                self._runtime.pull_image(want.ref, auth=auth or None, annotations=want.annotations,
                                         cancel=want.work.cancel)
                return
            except RuntimeCallError as error:
                problems.append(error)
        if found.warning and not want.work.cancel.is_set():
            want.work.event("Warning", "FailedToRetrieveImagePullSecret", found.warning)
        if len(problems) == 1:
            raise problems[0]
        raise RuntimeCallError("[" + ", ".join(p.message for p in problems) + "]")

    def _pulled(self, want: _Want, image: Image, begun: float, asked: float) -> None:
        now = self._now()
        own, whole = format_duration(int((now - begun) * 1000) / 1000), format_duration(
            int((now - asked) * 1000) / 1000)
        want.event("Normal", "Pulled", f'Successfully pulled image "{want.ref}" in {own} ({whole} including '
                   f"waiting). Image size: {image.size} bytes.")
        want.work.env.metrics.pull.labels(size_bucket(image.size)).observe(now - begun)
        with self._lock:
            self._errors.pop(want.key, None)

    def _failed(self, want: _Want, error: RuntimeCallError) -> StartFailure:
        reason, message = pull_reason(error.message)
        want.event("Warning", "Failed", f'Failed to pull image "{want.ref}": {message}')
        now = self._now()
        with self._lock:
            self._backoff.next(want.key, now, now)
            self._errors[want.key] = f"{reason}: {message}"
        return StartFailure(reason, message, RECHECK)


def pull_reason(message: str) -> tuple[str, str]:
    """(waiting reason, message) of a failed pull."""
    for reason in _OWN_REASONS:
        if message.startswith(reason):
            return reason, message
    return "ErrImagePull", message
