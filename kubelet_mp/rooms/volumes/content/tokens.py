"""Service account tokens by TokenRequest, bound to a pod, and when they are to be renewed.

Source: Kubernetes 1.37 pkg/kubelet/token. Lifetimes are counted on the monotonic clock from the answer on, so
that a clock that is wrong here renews no token too late.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kubelet_mp import log
from kubelet_mp.errors import ApiError

DEFAULT_SECONDS = 3600
USED = 0.8  # of its lifetime after which a token is renewed
OLDEST = 24 * 3600.0  # s after which it is in any case
JITTER = 10.0  # s at most by which it is renewed earlier
RETRY = 10.0  # s after a failure, up to twice that
_log = log.get("volumes")


class TokenKey(NamedTuple):
    """`audience` "" is the API server's own; `seconds` the lifetime that is asked for."""

    namespace: str
    account: str
    audience: str
    seconds: int
    pod: str
    uid: str

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{self.account}/token"

    def request(self) -> dict[str, Any]:
        bound = {"apiVersion": "v1", "kind": "Pod", "name": self.pod, "uid": self.uid}
        return {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"audiences": [self.audience] if self.audience else [], "expirationSeconds": self.seconds,
                     "boundObjectRef": bound},
        }


@dataclass(slots=True)
class _Token:
    """Times are monotonic seconds."""

    text: str
    renew_at: float
    expires: float


class Tokens:
    """`create` POSTs (path, body) and raises ApiError. Thread-safe; requests run outside of the lock."""

    def __init__(self, create: Callable[[str, dict[str, Any]], Mapping[str, Any]], now: Callable[[], float],
                 roll: Callable[[], float] = random.random) -> None:
        self._create, self._now, self._roll = create, now, roll
        self._lock = threading.Lock()
        self._tokens: dict[TokenKey, _Token] = {}
        self._pods: set[str] = set()

    def hold(self, uid: str) -> None:
        """Tokens are kept for this pod from now on."""
        with self._lock:
            self._pods.add(uid)

    def drop(self, uid: str) -> None:
        with self._lock:
            self._pods.discard(uid)
            self._tokens = {key: token for key, token in self._tokens.items() if key.uid != uid}

    def get(self, key: TokenKey) -> str:
        """The token, asked for anew when it is time; the old one if that fails and it is still good.

        Raises ApiError.
        """
        with self._lock:
            known = self._tokens.get(key)
        if known is not None and self._now() < known.renew_at:
            return known.text
        try:
            fresh = self._ask(key)
        except ApiError as error:
            return self._without_answer(known, key, error)
        with self._lock:
            if key.uid in self._pods:
                self._tokens[key] = fresh
        return fresh.text

    def due(self) -> set[str]:
        """UIDs of the pods with a token that is to be renewed now."""
        now = self._now()
        with self._lock:
            return {key.uid for key, token in self._tokens.items() if token.renew_at <= now}

    def _ask(self, key: TokenKey) -> _Token:
        answer = self._create(key.path, key.request())
        text = (answer.get("status") or {}).get("token")
        if not text:
            raise ApiError(f"the TokenRequest for service account {key.namespace}/{key.account} gave no token")
        lasts = float((answer.get("spec") or {}).get("expirationSeconds") or key.seconds)
        now = self._now()
        return _Token(str(text), now + min(USED * lasts, OLDEST) - self._roll() * min(JITTER, lasts / 10), now + lasts)

    def _without_answer(self, known: _Token | None, key: TokenKey, error: ApiError) -> str:
        now = self._now()
        if known is None or now >= known.expires:
            raise ApiError(f"failed to fetch token: {error.message}", error.fix, status=error.status,
                           reason=error.reason, retry_after=error.retry_after) from error
        known.renew_at = now + RETRY * (1 + self._roll())
        _log.warning("token not renewed", pod=f"{key.namespace}/{key.pod}", err=error.message,
                     good_for=f"{known.expires - now:.0f}s")
        return known.text
