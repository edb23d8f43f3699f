"""Having a certificate request signed: a CertificateSigningRequest, and waiting for what becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubelet_mp.errors import ApiError, KubeletError
from kubelet_mp.host import pki
from kubelet_mp.log import Logger
from kubelet_mp.model.clock import Clock
from kubelet_mp.rooms.reporter.certificates import plan
from kubelet_mp.rooms.reporter.duty import Api


class Refused(KubeletError):
    """The request will never be signed. denied: somebody said no, so that asking the same again is no use."""

    def __init__(self, message: str, fix: str, *, denied: bool) -> None:
        super().__init__(message, fix)
        self.denied = denied


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for. `name` of the request, "" for any; patience: seconds to wait for the certificate."""

    request: pki.Request
    signer: str
    usages: tuple[str, ...]
    patience: float
    name: str = ""


class Signing:
    """`pause` waits, and raises when the agent stops."""

    def __init__(self, api: Api, pause: Callable[[float], None], time: Clock, log: Logger) -> None:
        self._api, self._pause, self._time, self._log = api, pause, time, log

    def certificate(self, wish: Wish) -> bytes:
        """Blocks until there is a certificate (PEM, with its chain). Raises Refused, ApiError."""
        found = self._create(wish)
        name = found["metadata"]["name"]
        began = self._time.monotonic()
        while True:
            verdict = plan.verdict(found)
            if verdict.refused:
                raise Refused(
                    f"certificate request {name} was {verdict.refused}",
                    f"delete it (kubectl delete csr {name}) to have it asked for again", denied=verdict.denied)
            if verdict.certificate:
                return verdict.certificate
            waited = self._time.monotonic() - began
            if waited > wish.patience:
                raise ApiError(
                    f"certificate request {name} was not signed within {wish.patience:.0f} s",
                    f"approve it (kubectl certificate approve {name}), or see why the controllers do not sign it")
            self._pause(plan.poll_after(waited))
            found = self._look(name, found)

    def _create(self, wish: Wish) -> dict[str, Any]:
        body = plan.request_object(wish.request.request, wish.signer, wish.usages, wish.name)
        try:
            made = self._api.create(plan.PATH, body)
        except ApiError as error:
            if not (wish.name and error.already_exists):
                raise
            self._log.info("Taking up the certificate request that was made before", request=wish.name)
            return self._api.get(f"{plan.PATH}/{wish.name}")
        self._log.info("Certificate requested", request=made["metadata"]["name"], signer=wish.signer)
        return made

    def _look(self, name: str, old: dict[str, Any]) -> dict[str, Any]:
        """The request as it is now; the old one while the API server does not answer. Raises ApiError."""
        try:
            return self._api.get(f"{plan.PATH}/{name}")
        except ApiError as error:
            if error.status and error.status < 500 and error.status != 429:
                raise
            return old
