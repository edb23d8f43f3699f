"""The duty: a thread for each certificate that is managed, and their metrics."""

from __future__ import annotations

from collections.abc import Callable

from kubelet_mp.config import Settings
from kubelet_mp.rooms.reporter.certificates import plan
from kubelet_mp.rooms.reporter.certificates.client import ClientCertificate, Connect, connect
from kubelet_mp.rooms.reporter.certificates.figures import Figures
from kubelet_mp.rooms.reporter.certificates.serving import ServingCertificate
from kubelet_mp.rooms.reporter.certificates.turner import Turner
from kubelet_mp.rooms.reporter.duty import DutyContext
from kubelet_mp.wire.messages import Message, Metrics, NodeObject

METRICS_PERIOD = 30.0  # s; the seconds until a certificate's end change all the time


def manages_client(settings: Settings) -> bool:
    return bool(settings.bootstrap_kubeconfig) or settings.kubelet.rotate_certificates


def manages_serving(settings: Settings) -> bool:
    return settings.kubelet.server_tls_bootstrap and settings.kubelet.enable_server


def wanted(settings: Settings) -> bool:
    """Whether there is anything to do for this duty."""
    return not settings.standalone and (manages_client(settings) or manages_serving(settings))


class Certificates:
    """connect: to the API server of a kubeconfig; retry: seconds after a number of failures, as plan.retry_after."""

    def __init__(
        self, context: DutyContext, connect: Connect = connect, retry: Callable[[int, float], float] = plan.retry_after
    ) -> None:
        settings = context.settings
        self._context, self._retry = context, retry
        self._turners: list[Turner] = []
        self._figures = Figures(client=manages_client(settings), server=manages_serving(settings))
        self._serving: ServingCertificate | None = None
        self._serving_turner: Turner | None = None
        if manages_client(settings):
            turner = self._turner("client", lambda: client.turn())
            client = ClientCertificate(context, self._figures, turner.pause, connect)
        if manages_serving(settings):
            self._serving_turner = turner = self._turner("serving", lambda: serving.turn())
            self._serving = serving = ServingCertificate(context, self._figures, turner.pause)

    def _turner(self, name: str, turn: Callable[[], float]) -> Turner:
        figure = {"client": "client", "serving": "server"}[name]

        def turn_and_tell() -> float:
            pause = turn()
            self._context.post(self._send_metrics)
            return pause

        turner = Turner(
            f"{name} certificate", turn_and_tell, self._context.log, failed=lambda: self._figures.failed(figure),
            crashed=self._context.fail, retry=self._retry)
        self._turners.append(turner)
        return turner

    def start(self) -> None:
        for turner in self._turners:
            turner.start()
        self._context.timers.every(METRICS_PERIOD, self._send_metrics, jitter=0.1)

    def handle(self, message: Message) -> None:
        if not isinstance(message, NodeObject) or self._serving is None or self._serving_turner is None:
            return
        if self._serving.wants(plan.serving_names(message.node)):
            self._serving_turner.wake()

    def replay(self, room: str) -> None:
        if room == "http":
            self._send_metrics()

    def close(self) -> None:
        for turner in self._turners:
            turner.close()

    def _send_metrics(self) -> None:
        self._context.send(Metrics("certificates", self._figures.text(self._context.time.wall_time())))
