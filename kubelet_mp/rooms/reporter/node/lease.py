"""The node's lease: a small object that is renewed often, so that the Node need not be.

Source: Kubernetes 1.37 k8s.io/component-helpers/apimachinery/lease and pkg/kubelet (nodelease).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from kubelet_mp.errors import ApiError
from kubelet_mp.model import clock
from kubelet_mp.rooms.reporter.duty import Api, DutyContext
from kubelet_mp.rooms.reporter.node.loop import LAST, Loop, Steps

COLLECTION = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
FRACTION = 0.25  # of its duration, after which a lease is renewed
JITTER = 1.04

Lease = dict[str, Any]


def renewed(lease: Mapping[str, Any], name: str, duration: int, uid: str, now: str) -> Lease:
    """The lease to write. `lease`: as it is, {} for a new one; duration: s; uid: the Node's, "" if not known yet."""
    meta = {"name": name, "namespace": "kube-node-lease", **(lease.get("metadata") or {})}
    if uid and not meta.get("ownerReferences"):
        meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}]
    spec = {**(lease.get("spec") or {}), "holderIdentity": name, "leaseDurationSeconds": duration, "renewTime": now}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}


class LeaseKeeper:
    """Renews in a thread of its own, whatever the rest of the agent waits for."""

    def __init__(self, context: DutyContext, crashed: Callable[[Exception], None]) -> None:
        self._context, self._name = context, context.settings.node_name
        kubelet = context.settings.kubelet
        self._duration = kubelet.node_lease_duration_seconds
        self._period = self._duration * FRACTION
        self._timeout = min(kubelet.node_status_update_frequency, self._duration)
        self._uid, self._lease, self._problem = "", None, ""  # type: tuple[str, Lease | None, str]
        self._steps = Steps(min(LAST, self._period))
        self._loop = Loop("node-lease", self._turn, crashed)

    def start(self) -> None:
        self._loop.start()

    def close(self) -> None:
        self._loop.close()

    def know(self, uid: str) -> None:
        """The Node's uid; a lease is created only with its owner."""
        if uid != self._uid:
            self._uid = uid
            self._loop.wake()

    # ---- the thread ----

    def _turn(self) -> float:
        try:
            self._lease = self._renew(self._context.api())
        except ApiError as error:
            return self._failed(error)
        self._problem = ""
        self._steps.reset()
        return self._period * random.uniform(1, JITTER)

    def _failed(self, error: ApiError) -> float:
        """A lease that another one changed, or that is gone, is read again."""
        self._lease = None
        if error.message != self._problem and not self._loop.closed:
            self._context.log.warning("cannot renew the lease of the node; trying on", lease=self._name, err=str(error))
        self._problem = error.message
        return self._steps.next(error.retry_after)

    def _renew(self, api: Api) -> Lease | None:
        """None where there is no lease and no Node that could own it. Raises ApiError."""
        lease = self._lease if self._lease is not None else self._found(api)
        uid = self._uid
        if not lease and not uid:
            return None
        now = clock.rfc3339_micro(self._context.time.wall_time_ns())
        body = renewed(lease, self._name, self._duration, uid, now)
        if not lease:
            return api.create(COLLECTION, body, timeout=self._timeout)
        return api.update(f"{COLLECTION}/{self._name}", body, timeout=self._timeout)

    def _found(self, api: Api) -> Lease:
        """{} where there is none."""
        try:
            return api.get(f"{COLLECTION}/{self._name}", timeout=self._timeout)
        except ApiError as error:
            if error.not_found:
                return {}
            raise
