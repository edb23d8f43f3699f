"""The certificate by which the agent is known to the API server: got with a bootstrap token, renewed with itself."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from dataclasses import dataclass

from kubelet_mp import __version__
from kubelet_mp.errors import ApiError, KubeletError
from kubelet_mp.host import files, pki
from kubelet_mp.host.kubeapi import KubeApi, Kubeconfig
from kubelet_mp.host.kubeapi.credentials import Entry, read_entry
from kubelet_mp.rooms.reporter.certificates import plan
from kubelet_mp.rooms.reporter.certificates.figures import Figures
from kubelet_mp.rooms.reporter.certificates.signing import Refused, Signing, Wish
from kubelet_mp.rooms.reporter.duty import Api, DutyContext

LOOK = 60.0  # s between two looks at dates and files
REST = 10.0  # s after a new one until the next look: what is signed for seconds only must not keep us busy
BOOTSTRAP_PATIENCE = 3600.0
RENEWAL_PATIENCE = 900.0

Connect = Callable[[str], Api]


class BadCertificate(KubeletError):
    """What the API server signed is of no use."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the kubeconfig gives: the certificate, or why there is none. due: when to renew it, epoch seconds."""

    problem: str = ""
    certificate: pki.Certificate | None = None
    due: float = 0.0


def connect(kubeconfig: str) -> Api:
    return KubeApi(Kubeconfig(kubeconfig), agent=f"kubelet-mp/{__version__} (bootstrap)")


class ClientCertificate:
    """`turn` is called by a thread of its own, which `pause` waits for."""

    def __init__(
        self, context: DutyContext, figures: Figures, pause: Callable[[float], None],
        connect: Connect = connect, chance: Callable[[], float] = random.random,
    ) -> None:
        settings = context.settings
        self._context, self._figures, self._pause, self._connect, self._chance = (
            context, figures, pause, connect, chance)
        self._log = context.log
        self._node, self._path, self._bootstrap_path = (
            settings.node_name, settings.kubeconfig, settings.bootstrap_kubeconfig)
        self._rotate = settings.kubelet.rotate_certificates
        self._store = pki.PemStore(settings.cert_dir, "kubelet-client")
        self._kept_key = os.path.join(settings.cert_dir, "kubelet-client.key.tmp")
        self._seen: object = None
        self._held = Held()
        self._said = ""

    def turn(self) -> float:
        """Look, and do what has to be done. Returns the seconds until the next look; raises KubeletError."""
        held, now = self._look(), self._context.time.wall_time()
        found = held.certificate
        problem = held.problem or (plan.unusable(found.not_after, found.matches, now) if found else "")
        self._figures.client(found.not_after if found and not problem else None)
        if problem and self._bootstrap_path:
            self._bootstrap(problem)
            return REST
        if problem or found is None:
            self._say(problem or f"{self._path} has no client certificate: rotateCertificates has no effect")
            return LOOK
        self._said = ""
        if not self._rotate:
            return min(found.not_after - now, LOOK)
        if now >= held.due:
            self._renew()
            return REST
        return min(held.due - now, LOOK)

    def _say(self, problem: str) -> None:
        if problem != self._said:
            self._log.error("the API server cannot be asked for a new client certificate", kubeconfig=self._path,
                            reason=problem, fix="give --bootstrap-kubeconfig, or a kubeconfig with a new certificate")
        self._said = problem

    # ---- what there is ----

    def _look(self) -> Held:
        """The state of the kubeconfig, read anew if a file changed. Raises KubeletError if nothing can be told."""
        try:
            entry = read_entry(self._path)
            seen = tuple(_stamp(path) for path in (self._path, *entry.files))
            if self._seen != seen:
                self._held = self._read(entry)
                self._seen = seen
            return self._held
        except files.MissingFile as error:
            problem = f"there is none: {error.message}"
        except (ApiError, pki.PemError) as error:
            problem = error.message
        self._seen = None
        return Held(problem)

    def _read(self, entry: Entry) -> Held:
        """Raises KubeletError."""
        pem = entry.identity()
        if not pem:
            return Held("it has no client certificate") if self._bootstrap_path else Held()
        found = pki.inspect(pem, f"kubeconfig {self._path}")
        return Held("", found, plan.due(found.not_before, found.not_after, self._chance()))

    # ---- the first one ----

    def _bootstrap(self, problem: str) -> None:
        say = self._log.info if not os.path.exists(self._path) else self._log.warning
        if problem != self._said:
            say("The kubeconfig cannot be used: asking for a client certificate with the bootstrap credentials",
                kubeconfig=self._path, reason=problem, bootstrapKubeconfig=self._bootstrap_path)
        self._said = problem
        entry = read_entry(self._bootstrap_path)
        request = self._first_request()
        wish = Wish(request, plan.CLIENT_SIGNER, plan.CLIENT_USAGES, BOOTSTRAP_PATIENCE,
                    plan.request_name(request.public, self._node))
        try:
            chain = self._signed(self._connect(self._bootstrap_path), wish)
        except Refused as error:
            if not error.denied:  # the signer cannot: not with this request, perhaps with another
                files.remove_file(self._kept_key)
            raise
        try:
            self._install(chain, request, entry)
        except (BadCertificate, pki.PemError):
            files.remove_file(self._kept_key)  # the request is used up; after a full disk it still is of use
            raise
        files.remove_file(self._kept_key)

    def _first_request(self) -> pki.Request:
        """With the key that is kept until there is a certificate, so that a restart finds the request again."""
        key = ""
        try:
            key = files.read_text(self._kept_key)
            return self._request(key)
        except (files.MissingFile, pki.PemError) as error:
            if key:
                self._log.warning("The key of the certificate request is made anew", err=str(error))
        request = self._request("")
        files.make_dirs(os.path.dirname(self._kept_key), 0o755)
        files.write_atomic(self._kept_key, request.key.encode(), 0o600)
        return request

    def _request(self, key: str) -> pki.Request:
        return pki.make_request(plan.user_name(self._node), plan.ORGANIZATIONS, key=key)

    # ---- the next ones ----

    def _renew(self) -> None:
        self._log.info("Renewing the client certificate")
        request = self._request("")
        wish = Wish(request, plan.CLIENT_SIGNER, plan.CLIENT_USAGES, RENEWAL_PATIENCE)
        chain = self._signed(self._context.api(), wish)
        self._install(chain, request, read_entry(self._path))

    def _signed(self, api: Api, wish: Wish) -> bytes:
        return Signing(api, self._pause, self._context.time, self._log).certificate(wish)

    def _install(self, chain: bytes, request: pki.Request, entry: Entry) -> None:
        """The certificate into its file, then the kubeconfig, unless it points there. Raises KubeletError."""
        now = self._context.time.wall_time()
        found = pki.inspect(chain + b"\n" + request.key.encode(), "the API server's answer")
        if problem := plan.unusable(found.not_after, found.matches, now):
            raise BadCertificate(f"the certificate from the API server cannot be used: {problem}",
                                 "see whether the clocks of this machine and of the control plane agree")
        path = self._store.save(chain, request.key, now)
        self._figures.client(found.not_after)
        self._point_there(entry)
        self._log.info("Client certificate written", file=path, name=found.name,
                       days=round((found.not_after - now) / 86400, 2))

    def _point_there(self, entry: Entry) -> None:
        user = {"client-certificate": self._store.current, "client-key": self._store.current}
        if entry.source == self._path and dict(entry.user) == user:
            return
        text = json.dumps(plan.kubeconfig(entry.whole_cluster(), self._store.current), indent=2)
        files.make_dirs(os.path.dirname(os.path.abspath(self._path)), 0o755)
        files.write_atomic(self._path, text.encode() + b"\n", 0o600)
        self._log.info("Kubeconfig written", kubeconfig=self._path, certificate=self._store.current)


def _stamp(path: str) -> object:
    try:
        return files.file_state(path)
    except files.FileError:
        return None
