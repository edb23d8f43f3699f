"""The pods room with its neighbours played by a thread: a small pleg over the fake CRI, cgroups, volumes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from kubelet_mp.config import KubeletConfiguration, Settings
from kubelet_mp.errors import ApiError, RuntimeCallError
from kubelet_mp.host.cri.runtime import Runtime
from kubelet_mp.model.runtime import PodRuntime, newest_first
from kubelet_mp.rooms.pods.room import PodsRoom
from kubelet_mp.wire import messages as m
from tests.fakes.cri import FakeCRI
from tests.fakes.link import RoomRunner
from tests.support import FakeClock, wait_until

IMAGE = "docker.io/library/busybox:latest"


def container(name: str = "c", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": IMAGE, "imagePullPolicy": "IfNotPresent", "resources": {},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", **fields}


def make_pod(name: str = "web", uid: str = "", *, init: list[dict[str, Any]] | None = None,
             containers: list[dict[str, Any]] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": uid or f"uid-{name}",
                     "annotations": {"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "h"}},
        "spec": {"restartPolicy": "Always", "terminationGracePeriodSeconds": 5, "dnsPolicy": "Default",
                 "containers": containers or [container()],
                 **({"initContainers": init} if init else {}), **spec},
    }


def api_pod(name: str = "web", uid: str = "", *, status: dict[str, Any] | None = None, **fields: Any
            ) -> dict[str, Any]:
    """A pod as the API server has it: bound to the node, with the scheduler's condition in its status."""
    pod = make_pod(name, uid, **fields)
    meta = {"name": name, "namespace": "default", "uid": pod["metadata"]["uid"], "resourceVersion": "1",
            "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {**pod, "metadata": meta, "spec": {**pod["spec"], "nodeName": "node"},
            "status": status if status is not None else {"phase": "Pending", "conditions": [scheduled]}}


def deleted(pod: dict[str, Any], grace: int = 5) -> dict[str, Any]:
    return {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z",
                                "deletionGracePeriodSeconds": grace}}


NODE = {"metadata": {"name": "node", "labels": {"kubernetes.io/hostname": "node"}}, "spec": {},
        "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}}


class Api:
    """An API server's GET: `objects` by path."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.away = False

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        if self.away or path not in self.objects:
            raise ApiError(f"GET {path} failed", status=0 if self.away else 404)
        return self.objects[path]


class World:
    """`with World(fake, tmp_path) as world:`; messages of the room are in `world.runner.link`."""

    def __init__(self, fake: FakeCRI, root: Path, *, answer: bool = True, free: bool = True,
                 api: bool = False, node: dict[str, Any] | None = NODE, **config: Any) -> None:
        self.fake, self.clock, self.answer, self.free = fake, FakeClock(), answer, free
        self.state_ready, self.network_ready = True, True
        self.source, self.node = ("api" if api else "file"), (node if api else None)
        self.settings = Settings(
            node_name="node", kubeconfig="/nonexistent" if api else "", root_dir=str(root / "kubelet"),
            kubelet=KubeletConfiguration(container_runtime_endpoint=fake.endpoint, resolv_conf="",
                                         pod_logs_dir=str(root / "logs"), **config))
        self.root = root
        self._cri = Runtime(fake.endpoint)
        self._stop = threading.Event()
        self._seen: dict[str, PodRuntime] = {}
        self._read = 0
        self._desired: dict[str, dict[str, Any]] = {}
        self.api = Api()
        self.runner = RoomRunner(PodsRoom, self.settings, clock=self.clock, links=str(root / "links"),
                                 api=self.api if api else None)
        self._thread = threading.Thread(target=self._play, daemon=True)

    def __enter__(self) -> World:
        self.runner.__enter__()
        self.give_facts()
        if self.node is not None:
            self.runner.give(m.NodeObject(self.node))
        self._thread.start()
        return self

    def __exit__(self, *args: Any) -> None:
        self._stop.set()
        self._thread.join(5)
        self.fake.heal()
        self.runner.__exit__(*args)
        self._cri.close()

    # ---- what a test does ----

    def give_facts(self, **allocatable: int) -> None:
        have = {"cpu": 4000, "memory": 8 << 30, "pods": 110, "ephemeral-storage": 100 << 30, **allocatable}
        self.runner.give(m.NodeFacts(("192.0.2.1",), "node", 2, "cgroupfs", have, have))
        self.give_state()

    def give_state(self) -> None:
        state = self._cri.status()
        self.runner.give(m.RuntimeStateChanged(state))

    def want(self, *pods: dict[str, Any]) -> None:
        for pod in pods:
            self._desired[pod["metadata"]["uid"]] = pod
            self.runner.give(m.DesiredPod(pod["metadata"]["uid"], pod, self.source))
        self.tell_set()

    def drop(self, *pods: dict[str, Any]) -> None:
        for pod in pods:
            self._desired.pop(pod["metadata"]["uid"], None)
            self.runner.give(m.DesiredPod(pod["metadata"]["uid"], None, self.source))
        self.tell_set()

    def tell_set(self) -> None:
        self.runner.give(m.DesiredSet(frozenset(self._desired), True))

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.runner.room.wake()

    def status(self, pod: dict[str, Any]) -> dict[str, Any]:
        uid = pod["metadata"]["uid"]
        last = next((s for s in reversed(self.runner.link.of(m.PodStatus)) if s.uid == uid), None)
        return dict(last.pod["status"]) if last else {}

    def container(self, pod: dict[str, Any], name: str = "c") -> dict[str, Any]:
        status = self.status(pod)
        both = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
        return next((dict(c) for c in both if c["name"] == name), {})

    def waiting(self, pod: dict[str, Any], name: str = "c") -> dict[str, Any]:
        return dict(self.container(pod, name).get("state", {}).get("waiting") or {})

    def waits_for(self, pod: dict[str, Any]) -> str:
        uid = pod["metadata"]["uid"]
        return next((s.waiting_for for s in reversed(self.runner.link.of(m.PodStatus)) if s.uid == uid), "")

    def until(self, condition: Any, what: str, seconds: float = 5.0) -> Any:
        def check() -> Any:
            if self.runner.failure():
                raise AssertionError(f"room failed: {self.runner.failure()!r}") from self.runner.failure()
            return condition()

        return wait_until(check, seconds, what)

    def until_running(self, pod: dict[str, Any], restarts: int = 0, name: str = "c") -> None:
        def running() -> bool:
            status = self.container(pod, name)
            return "running" in status.get("state", {}) and status["restartCount"] == restarts

        self.until(running, f"{pod['metadata']['name']}/{name} to run")

    def forgotten(self, pod: dict[str, Any]) -> bool:
        return any(f.uid == pod["metadata"]["uid"] for f in self.runner.link.of(m.PodForgotten))

    def finished(self, pod: dict[str, Any]) -> dict[str, Any]:
        """The pod as in the last PodFinished about it."""
        found = [f.pod for f in self.runner.link.of(m.PodFinished) if f.uid == pod["metadata"]["uid"]]
        return found[-1] if found else {}

    def events(self, reason: str = "") -> list[m.Event]:
        return [e for e in self.runner.link.of(m.Event) if reason in ("", e.reason)]

    # ---- the neighbours ----

    def _play(self) -> None:
        self._list(set(), first=True)
        while not self._stop.wait(0.003):
            sent = self.runner.link.sent[self._read:]
            self._read += len(sent)
            self.runner.room.wake()
            self._list({msg.uid for _, msg in sent if isinstance(msg, m.RelistPod)})
            for _, msg in sent:
                if self.answer:
                    self._answer(msg)

    def _answer(self, msg: m.Message) -> None:
        if isinstance(msg, m.PodAdmitted):
            self.runner.give(m.PodCgroupReady(msg.uid, f"/kubepods/pod{msg.uid}", serial=msg.serial),
                             m.PodVolumesReady(msg.uid, {}))
        elif isinstance(msg, m.PodStopped) and self.free:
            self.runner.give(m.PodFreed(msg.uid, "cgroups"), m.PodFreed(msg.uid, "volumes"))

    def _list(self, asked: set[str], first: bool = False) -> None:
        try:
            now = self.clock.monotonic()
            self.clock.advance(0.004)
            pods = self._snapshot(now + 0.002)
        except RuntimeCallError:
            return
        for uid in set(pods) | set(self._seen) | asked:
            new, old = pods.get(uid, PodRuntime(uid, observed=now + 0.002)), self._seen.get(uid)
            if uid in asked or old is None or (new.sandboxes, new.containers) != (old.sandboxes, old.containers):
                self.runner.give(m.PodRuntimeChanged(uid, new))
            self._seen[uid] = new
        if first:
            self.runner.give(m.RelistDone(now, frozenset(pods)))

    def _snapshot(self, observed: float) -> dict[str, PodRuntime]:
        boxes = [self._cri.sandbox_status(s.id) for s in self._cri.list_sandboxes()]
        cons = [self._cri.container_status(c.id, c.sandbox_id) for c in self._cri.list_containers()]
        result = {}
        for uid in {s.uid for s in boxes} | {c.pod_uid for c in cons}:
            mine = tuple(sorted((s for s in boxes if s.uid == uid), key=lambda s: (s.created_at, s.id), reverse=True))
            own = newest_first(c for c in cons if c.pod_uid == uid)
            ips = next((s.ips for s in mine if s.ready), ())
            result[uid] = PodRuntime(uid, mine[0].name if mine else "", "default", mine, own, ips, observed)
        return result
