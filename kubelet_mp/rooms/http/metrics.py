"""The room's own metrics, and /metrics as the sum of all rooms.

Source of names: Kubernetes 1.37 pkg/kubelet/server/metrics, pkg/kubelet/metrics.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from kubelet_mp.config import Settings
from kubelet_mp.host import procfs, procstat
from kubelet_mp.model import clock
from kubelet_mp.rooms.http.exposition import Families, Family, parse, render
from kubelet_mp.rooms.http.state import State

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"})
_PATHS = frozenset({
    "pods", "runningpods", "healthz", "configz", "containerLogs", "exec", "attach", "portForward", "run", "stats",
    "metrics", "metrics/cadvisor", "metrics/resource", "metrics/probes", "metrics/slis", "logs", "debug",
    "checkpoint", "statusz", "flagz",
})
_LONG = frozenset({"exec", "attach", "debug"})
_LABELS = ("method", "path", "server_type", "long_running")


class HttpMetrics:
    """Counts requests; `wrap` goes around a WSGI application."""

    def __init__(self, settings: Settings) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter("kubelet_http_requests", "Number of the http requests received since the server "
                                 "started", _LABELS, registry=self.registry)
        self._inflight = Gauge("kubelet_http_inflight_requests", "Number of the inflight http requests", _LABELS,
                               registry=self.registry)
        self._seconds = Histogram("kubelet_http_requests_duration_seconds", "Duration in seconds to serve http "
                                  "requests", _LABELS, registry=self.registry)
        Gauge("kubelet_node_name", "The node's name. The count is always 1.", ("node",),
              registry=self.registry).labels(settings.node_name).set(1)
        Gauge("kubernetes_build_info", "The version that this agent follows.",
              ("git_version", "platform", "implementation"), registry=self.registry,
              ).labels(settings.kubernetes_version, f"linux/{platform.machine()}", "kubelet-mp").set(1)

    def wrap(self, app: Callable[..., Iterable[bytes]], server_type: str) -> Callable[..., Iterable[bytes]]:
        """server_type: readwrite or readonly."""

        def counted(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
            labels = request_labels(environ["REQUEST_METHOD"], environ["PATH_INFO"], server_type)
            self._requests.labels(*labels).inc()
            self._inflight.labels(*labels).inc()
            began = clock.monotonic()

            def done() -> None:
                self._inflight.labels(*labels).dec()
                self._seconds.labels(*labels).observe(clock.monotonic() - began)

            try:
                return _Body(app(environ, start_response), done)
            except BaseException:
                done()
                raise

        return counted

    def own(self) -> Families:
        return parse(generate_latest(self.registry).decode())


class _Body:
    """A WSGI body that tells when it was closed."""

    def __init__(self, body: Iterable[bytes], done: Callable[[], None]) -> None:
        self._body, self._done = body, done

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._body)

    def close(self) -> None:
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            self._done()


def request_labels(method: str, path: str, server_type: str) -> tuple[str, str, str, str]:
    """The labels of a request; what is not known becomes "other", so that clients cannot make series."""
    parts = path.strip("/").split("/")
    two = "/".join(parts[:2])
    known = two if two in _PATHS else parts[0] if parts[0] in _PATHS else "other"
    return (method if method in _METHODS else "other", known, server_type, str(parts[0] in _LONG).lower())


def page(state: State, own: HttpMetrics, supervisor: int) -> str:
    """The whole of /metrics. `supervisor`: the pid of the process above the rooms."""
    rooms, _ = state.rooms()
    pids = [supervisor, *(room.pid for room in rooms if room.pid)] if rooms else [os.getpid()]
    return render(state.ledger.families(own.own(), process_families(pids)))


def process_families(pids: list[int]) -> Families:
    """process_* for the whole tree of processes; the first pid is its root."""
    used = procstat.usage(pids)
    values = {
        "process_cpu_seconds_total": ("counter", "CPU time of all processes of the agent in seconds.", used.cpu),
        "process_resident_memory_bytes": ("gauge", "Memory of all processes of the agent, shared pages counted "
                                          "once.", float(used.memory)),
        "process_start_time_seconds": ("gauge", "Start of the agent in seconds since the epoch.",
                                       procfs.boot_time() + used.started),
    }
    return {name: Family(name, text, kind, {name: value}) for name, (kind, text, value) in values.items()}
