"""The certificate that 10250 serves with serverTLSBootstrap: for the node's addresses, signed by the cluster."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from kubelet_mp.errors import KubeletError
from kubelet_mp.host import pki
from kubelet_mp.rooms.reporter.certificates import plan
from kubelet_mp.rooms.reporter.certificates.client import LOOK, RENEWAL_PATIENCE, REST
from kubelet_mp.rooms.reporter.certificates.figures import Figures
from kubelet_mp.rooms.reporter.certificates.signing import Signing, Wish
from kubelet_mp.rooms.reporter.duty import DutyContext


class ServingCertificate:
    """`turn` is called by a thread of its own, which `pause` waits for; `wants` by the main thread."""

    def __init__(
        self, context: DutyContext, figures: Figures, pause: Callable[[float], None],
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._context, self._figures, self._pause, self._chance = context, figures, pause, chance
        self._log, self._node = context.log, context.settings.node_name
        self._store = pki.PemStore(context.settings.cert_dir, "kubelet-server")
        self._lock = threading.Lock()
        self._names: tuple[str, ...] = ()
        self._seen = b""
        self._held: pki.Certificate | None = None
        self._due = 0.0

    def wants(self, names: tuple[str, ...]) -> bool:
        """Tell for which names it has to be; () is no news. Returns whether that is a change."""
        with self._lock:
            if not names or names == self._names:
                return False
            self._names = names
            return True

    def turn(self) -> float:
        """Ask for a certificate if one is needed. Returns the seconds until the next look; raises KubeletError."""
        held, now = self._look(), self._context.time.wall_time()
        self._figures.server(held.not_after if held else None)
        with self._lock:
            names = self._names
        if not names:
            return LOOK
        if reason := self._reason(held, names, now):
            self._ask(names, reason)
            return REST
        return min(self._due - now, LOOK)

    def _reason(self, held: pki.Certificate | None, names: tuple[str, ...], now: float) -> str:
        """Why a certificate has to be asked for now; "" if none has."""
        if held is None:
            return "there is none"
        if not plan.satisfies(held.names, names):
            return "the addresses of the node have changed"
        return "it nears its end" if now >= self._due else ""

    def _look(self) -> pki.Certificate | None:
        """The current certificate, if it can be used. Raises FileError."""
        pem = self._store.read()
        if pem != self._seen:
            self._held, self._seen = self._read(pem), pem
        held = self._held
        return held if held and held.not_after > self._context.time.wall_time() else None

    def _read(self, pem: bytes) -> pki.Certificate | None:
        if not pem:
            return None
        try:
            found = pki.inspect(pem, self._store.current)
        except KubeletError as error:
            self._log.warning("The serving certificate cannot be used", err=str(error))
            return None
        self._due = plan.due(found.not_before, found.not_after, self._chance())
        return found if found.matches and found.name == plan.user_name(self._node) else None

    def _ask(self, names: tuple[str, ...], reason: str) -> None:
        """Raises KubeletError."""
        self._log.info("Asking for a serving certificate", reason=reason, names=",".join(names))
        request = pki.make_request(plan.user_name(self._node), plan.ORGANIZATIONS, names)
        wish = Wish(request, plan.SERVING_SIGNER, plan.SERVING_USAGES, RENEWAL_PATIENCE)
        signing = Signing(self._context.api(), self._pause, self._context.time, self._log)
        chain = signing.certificate(wish)
        now = self._context.time.wall_time()
        found = pki.inspect(chain + b"\n" + request.key.encode(), "the API server's answer")
        problem = plan.unusable(found.not_after, found.matches, now)
        if not plan.satisfies(found.names, names):
            problem = f"it is for {', '.join(found.names)} only"
        if problem:
            raise KubeletError(f"the serving certificate from the API server cannot be used: {problem}",
                               "see whether the clocks of this machine and of the control plane agree")
        path = self._store.save(chain, request.key, now)
        self._figures.server(found.not_after)
        if self._held:
            self._figures.rotated(now - self._held.not_before)
        self._log.info("Serving certificate written", file=path, days=round((found.not_after - now) / 86400, 2))
