"""The http room: takes reports on its main thread, serves requests on gunicorn's."""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import os
import socket
import threading

from kubelet_mp.config import Settings
from kubelet_mp.host.cri import Runtime
from kubelet_mp.host.cri_metrics import RuntimeMetrics
from kubelet_mp.model import clock
from kubelet_mp.rooms.base import Room, RoomContext
from kubelet_mp.rooms.http import apps
from kubelet_mp.rooms.http.auth import Gate
from kubelet_mp.rooms.http.listeners import open_tcp, open_unix, source_addresses
from kubelet_mp.rooms.http.metrics import HttpMetrics
from kubelet_mp.rooms.http.podlogs import PodLogs
from kubelet_mp.rooms.http.pump import Pump
from kubelet_mp.rooms.http.runtimeview import RuntimeView
from kubelet_mp.rooms.http.serving import tls_files
from kubelet_mp.rooms.http.state import State
from kubelet_mp.rooms.http.streams import PodStreams
from kubelet_mp.rooms.http.streamviews import StreamViews
from kubelet_mp.rooms.http.tls import TlsContexts
from kubelet_mp.rooms.http.views import LocalViews, Views
from kubelet_mp.rooms.http.worker import LOOP_NAME, STOP_GRACE, Listener, Worker
from kubelet_mp.wire.messages import Message

SOCKET = "kubelet-mp.sock"  # below the root directory
LOOP_SILENCE = 5.0  # s after which the serving loop counts as stuck, and the room's heartbeat ends


class HttpRoom(Room):
    """The heartbeat stands for both: it stops when the main thread or the serving loop does."""

    name = "http"

    def __init__(self, context: RoomContext) -> None:
        super().__init__(dataclasses.replace(context, beat=self._beat))
        self._supervisors_beat = context.beat
        kubelet = self.settings.kubelet
        self.state = State()
        self.metrics = HttpMetrics(self.settings)
        observe = RuntimeMetrics(self.metrics.registry).observe
        self._runtime = Runtime(kubelet.container_runtime_endpoint, timeout=kubelet.runtime_request_timeout,
                                observe=observe)
        self._stop_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._worker: Worker | None = None
        self._thread: threading.Thread | None = None
        self.addresses: dict[str, tuple[str, int]] = {}  # field of the port → where it really listens
        self.serving = False

    def _beat(self) -> None:
        worker = self._worker
        if worker is None or clock.monotonic() - worker.beat_at < LOOP_SILENCE:
            self._supervisors_beat()

    def start(self) -> None:
        asked = RuntimeView(self._runtime)
        logs = PodLogs(self.state, asked.locate, self._stop_fd)
        views = Views(self.settings, self.state, logs, self.metrics, asked.running, self.context.parent)
        pump = Pump(self.fail)
        streams = StreamViews(PodStreams(self.state, self._runtime, self.stopping), pump)
        self._worker = Worker(self._listeners(views, streams), pump)
        self._thread = threading.Thread(target=self._serve_http, name=LOOP_NAME, daemon=True)
        self._thread.start()
        self.serving = True

    def handle(self, message: Message) -> None:
        self.state.apply(message)

    def replay(self, room: str) -> None:
        """`room` counts from zero again."""
        self.state.ledger.restarted(room)

    def close(self) -> None:
        os.eventfd_write(self._stop_fd, 1)
        if self._worker is not None and self._thread is not None:
            self._worker.stop(STOP_GRACE)
            self._thread.join(STOP_GRACE)
        self._runtime.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(socket_path(self.settings))

    def _serve_http(self) -> None:
        """The serving thread. Its end, for whatever reason, is the room's end."""
        assert self._worker is not None
        try:
            self._worker.run_here()
        except Exception as error:  # noqa: BLE001 - the edge of the thread: the main thread raises it again
            self.fail(error)
        else:
            if not self.stopping.is_set():
                self.fail(RuntimeError("the serving loop ended"))

    # ---- listeners ----

    def _listeners(self, views: Views, streams: StreamViews) -> list[Listener]:
        kubelet = self.settings.kubelet
        found = [self._local(views)]
        if kubelet.enable_server and kubelet.port >= 0:
            found.append(self._full(views, streams))
        if kubelet.read_only_port > 0:
            app = self.metrics.wrap(apps.read_only_app(views).wsgi_app, "readonly")
            found.append(Listener(self._open("readOnlyPort", kubelet.address, kubelet.read_only_port), app))
        if kubelet.healthz_port > 0:
            sock = self._open("healthzPort", kubelet.healthz_bind_address, kubelet.healthz_port)
            found.append(Listener(sock, apps.healthz_app(views).wsgi_app))
        return found

    def _local(self, views: Views) -> Listener:
        app = apps.local_app(views, LocalViews(self.settings, self.state))
        return Listener(open_unix(socket_path(self.settings)), app.wsgi_app)

    def _full(self, views: Views, streams: StreamViews) -> Listener:
        kubelet = self.settings.kubelet
        gate = Gate(kubelet)
        tls = TlsContexts(tls_files(self.settings, self._own_addresses), kubelet)
        app = apps.full_app(views, streams, gate, kubelet.enable_debugging_handlers)
        sock = self._open("port", kubelet.address, kubelet.port)
        return Listener(sock, self.metrics.wrap(app.wsgi_app, "readwrite"), tls.current)

    def _own_addresses(self) -> list[str]:
        """For the self-signed certificate: what the node is reached by, as far as it can be told."""
        given = [ip for ip in self.settings.node_ips if not ipaddress.ip_address(ip).is_unspecified]
        return list(dict.fromkeys(["127.0.0.1", *given, *source_addresses()]))

    def _open(self, field: str, address: str, port: int) -> socket.socket:
        sock = open_tcp(address, port, field, self.stopping.wait)
        self.addresses[field] = sock.getsockname()[:2]
        self.log.info("Listening", field=field, address=address, port=self.addresses[field][1])
        return sock


def socket_path(settings: Settings) -> str:
    return os.path.join(settings.root_dir, SOCKET)
