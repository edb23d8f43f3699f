"""Puts together what the passes of this room act through."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from kubelet_mp.config import Settings
from kubelet_mp.host.cri.runtime import Runtime
from kubelet_mp.host.cri_metrics import RuntimeMetrics
from kubelet_mp.host.poddirs import PodDirs
from kubelet_mp.model.clock import Clock
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.rooms.lateapi import LateApi, connect
from kubelet_mp.rooms.pods.content import PodContent
from kubelet_mp.rooms.pods.env import Env, EventSink
from kubelet_mp.rooms.pods.images import Images
from kubelet_mp.rooms.pods.metrics import PodMetrics
from kubelet_mp.rooms.pods.pool import Pool
from kubelet_mp.rooms.pods.pullsecrets import PullSecrets, no_auth
from kubelet_mp.rooms.pods.runtimeclass import RuntimeClasses
from kubelet_mp.rooms.pods.services import Services
from kubelet_mp.rooms.pods.slots import Slots
from kubelet_mp.rooms.timers import Timers

START_SLOTS = 2  # heavy calls at once, for each core
STOP_SLOTS = 8  # StopContainer calls at once, for each core
STOP_STALE = 1.0  # s after which one that merely waits for a grace period no longer counts


def build(settings: Settings, clock: Clock, runtime: Any, links: str, event: EventSink,
          api: Any = None) -> Env:
    """`runtime` None: a client of the configured endpoint, which opens its channel with the first call.

    `api` None: that of the kubeconfig, none standalone.
    """
    api = api or connect(settings, "pods")
    config, metrics = settings.kubelet, PodMetrics()
    runtime = runtime or Runtime(
        config.container_runtime_endpoint, image_endpoint=config.image_service_endpoint,
        timeout=config.runtime_request_timeout, observe=RuntimeMetrics(metrics.registry).observe)
    cores, now = os.cpu_count() or 1, clock.monotonic
    content = PodContent(api.get, now, Services()) if api else None
    auth = PullSecrets(content).auth if content else no_auth
    return Env(
        settings, clock, runtime, Images(runtime, settings, now, auth),
        PodDirs(settings.root_dir, config.pod_logs_dir, links), Pool("pod"), Slots(START_SLOTS * cores),
        Slots(STOP_SLOTS * cores, stale=STOP_STALE), event, metrics, NodeView(node_name=settings.node_name),
        api, RuntimeClasses(api.get if api else None, now), content)


def follow_services(env: Env, timers: Timers, crashed: Callable[[BaseException], None]) -> None:
    """Begin to watch the services. `crashed` gets a fault of ours in the watch.

    With an API server that can only be asked (a test's) there are none.
    """
    if env.content is None:
        return
    if isinstance(env.api, LateApi):
        env.content.services.watch(env.api, timers, crashed)
    else:
        env.content.services.take_list([])
