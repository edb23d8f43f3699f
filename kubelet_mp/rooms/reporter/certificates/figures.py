"""Metrics of the certificates (Kubernetes 1.37 pkg/kubelet/certificate), as Prometheus text."""

from __future__ import annotations

import threading
from bisect import bisect_left

_PREFIX = "kubelet_"
_BUCKETS = (60, 3600, 14400, 21600, 43200, 86400, 345600, 604800, 2592000, 7776000, 15552000, 31104000, 124416000)
"""s: a minute, an hour, 4, 6, 12, a day, 4 days, a week, a month, 3, 6 months, a year, 4 years."""


class Figures:
    """Set from any thread. Ends of certificates are in seconds since the epoch, None where there is none."""

    def __init__(self, *, client: bool, server: bool) -> None:
        """client, server: whether that certificate is managed, and so shown."""
        self._lock = threading.Lock()
        self._shown = {name for name, on in (("client", client), ("server", server)) if on}
        self._ends: dict[str, float | None] = {"client": None, "server": None}
        self._errors = {"client": 0, "server": 0}
        self._ages = [0] * (len(_BUCKETS) + 1)
        self._sum = 0.0

    def client(self, not_after: float | None) -> None:
        self._end("client", not_after)

    def server(self, not_after: float | None) -> None:
        self._end("server", not_after)

    def _end(self, name: str, not_after: float | None) -> None:
        with self._lock:
            self._ends[name] = not_after

    def failed(self, name: str) -> None:
        with self._lock:
            self._errors[name] += 1

    def rotated(self, age: float) -> None:
        """A serving certificate was replaced that was `age` seconds old."""
        with self._lock:
            self._ages[bisect_left(_BUCKETS, age)] += 1
            self._sum += age

    def text(self, now: float) -> str:
        with self._lock:
            parts = [self._ttl(name, now) + self._failures(name) for name in sorted(self._shown)]
            if "server" in self._shown:
                parts.append(self._rotations())
            return "".join(parts)

    def _ttl(self, name: str, now: float) -> str:
        end = self._ends[name]
        value = "+Inf" if end is None else repr(float(end - now))
        return _sample(f"certificate_manager_{name}_ttl_seconds", "gauge",
                       f"Seconds until the {name} certificate expires, below 0 afterwards, +Inf without one", value)

    def _failures(self, name: str) -> str:
        metric = {"client": "certificate_manager_client_expiration_renew_errors",
                  "server": "server_expiration_renew_errors"}[name]
        return _sample(metric, "counter", f"Failed attempts to get a {name} certificate", str(self._errors[name]))

    def _rotations(self) -> str:
        metric = f"{_PREFIX}certificate_manager_server_rotation_seconds"
        lines = [f"# HELP {metric} Seconds that a serving certificate had been valid when it was replaced\n"
                 f"# TYPE {metric} histogram\n"]
        count = 0
        for bound, ages in zip((*map(str, _BUCKETS), "+Inf"), self._ages, strict=True):
            count += ages
            lines.append(f'{metric}_bucket{{le="{bound}"}} {count}\n')
        return "".join([*lines, f"{metric}_sum {self._sum}\n{metric}_count {count}\n"])


def _sample(name: str, kind: str, text: str, value: str) -> str:
    name = _PREFIX + name
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n{name} {value}\n"
