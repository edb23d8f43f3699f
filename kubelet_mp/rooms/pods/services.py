"""All services of the cluster, for the variables that name them. What is kept of one is what those need.

Source: Kubernetes 1.37 pkg/kubelet (serviceLister, getServiceEnvVarMap).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from kubelet_mp import log
from kubelet_mp.errors import ApiError
from kubelet_mp.model import podspec
from kubelet_mp.model.servicevars import MASTER
from kubelet_mp.rooms.lateapi import LateApi
from kubelet_mp.rooms.timers import Timers

PATH = "/api/v1/services"
AGAIN = 1.0  # s between two tries to get a client
Service = dict[str, Any]
_log = log.get("pods")


class Services:
    """Read from any thread; filled by `watch`, or by `take_list` and `take_event` in a test."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listed = threading.Event()
        self._known: dict[str, dict[str, Service]] = {}  # namespace → name → service
        self._watch: Any = None
        self._closed = False

    def watch(self, api: LateApi, timers: Timers, crashed: Callable[[BaseException], None]) -> None:
        """Follow the API server as soon as there is a client. On the main thread; `crashed` from another."""
        if self._closed:
            return
        try:
            client = api()
        except ApiError:
            timers.after(AGAIN, lambda: self.watch(api, timers, crashed))
            return
        from kubelet_mp.host.kubeapi import ListWatch

        self._watch = ListWatch(client, PATH, on_list=self.take_list, on_event=self.take_event,
                                on_problem=_tell, on_crash=crashed, name="services")
        self._watch.start()

    def close(self) -> None:
        self._closed = True
        if self._watch is not None:
            self._watch.stop()

    def take_list(self, items: list[Service]) -> None:
        known: dict[str, dict[str, Service]] = {}
        for item in items:
            known.setdefault(podspec.namespace(item), {})[podspec.name(item)] = slim(item)
        with self._lock:
            self._known = known
        self._listed.set()

    def take_event(self, kind: str, item: Service) -> None:
        namespace, name = podspec.namespace(item), podspec.name(item)
        with self._lock:
            inside = self._known.setdefault(namespace, {})
            if kind == "DELETED":
                inside.pop(name, None)
            else:
                inside[name] = slim(item)
            if not inside:
                del self._known[namespace]

    def of(self, namespace: str, wait: float = 0.0) -> list[Service] | None:
        """Those that a pod of the namespace may be told of; None while there was no list yet, for `wait` s."""
        if not self._listed.is_set() and not self._listed.wait(wait):
            return None
        with self._lock:
            found = list(self._known.get(namespace, {}).values())
            master = self._known.get(MASTER[0], {}).get(MASTER[1])
        return found if namespace == MASTER[0] or master is None else [*found, master]


def slim(service: Mapping[str, Any]) -> Service:
    """What variables are made of."""
    spec = podspec.spec(service)
    ports = [{k: p[k] for k in ("name", "port", "protocol") if p.get(k)} for p in spec.get("ports") or ()]
    return {
        "metadata": {"namespace": podspec.namespace(service), "name": podspec.name(service)},
        "spec": {"clusterIP": spec.get("clusterIP") or "", "ports": ports},
    }


def _tell(problem: str) -> None:
    if problem:
        _log.warning("services are not followed", err=problem)
