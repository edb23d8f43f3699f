"""Setting up the volumes of admitted pods: attempts, retries, and what is told of them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

from kubelet_mp import log
from kubelet_mp.errors import HostError
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.podspec import Pod, describe
from kubelet_mp.rooms.timers import Timers
from kubelet_mp.rooms.volumes.content.store import ApiContent
from kubelet_mp.rooms.volumes.crew import Crew
from kubelet_mp.rooms.volumes.dirs import Dirs
from kubelet_mp.rooms.volumes.kinds import Job, Kind, kind_of
from kubelet_mp.rooms.volumes.plan import from_api, own_facts, unsupported
from kubelet_mp.rooms.volumes.podstate import PodState, VolumeState
from kubelet_mp.wire.messages import PodVolumesReady

SLOW = 10.0  # s after which a set-up that still runs is told of
_log = log.get("volumes")


class SetUps:
    """All pods that are to have volumes. Every method runs on the room's main thread.

    tell: send a report. fail: (pod, text) a FailedMount event. post: have the main thread run something.
    ended: a set-up of this pod has ended (a take-down may wait for it). content: None without an API server.
    """

    def __init__(
        self,
        dirs: Dirs,
        timers: Timers,
        *,
        tell: Callable[[PodVolumesReady], None],
        fail: Callable[[Pod, str], None],
        post: Callable[[Callable[[], None]], None],
        ended: Callable[[str], None],
        content: ApiContent | None = None,
    ) -> None:
        self._dirs, self._timers, self._content = dirs, timers, content
        self._crew = Crew()
        self._tell, self._fail, self._post, self._ended = tell, fail, post, ended
        self._serial = itertools.count(1)
        self._hanging: dict[str, int] = {}  # uid → set-ups below the pod's directory that still run
        self.pods: dict[str, PodState] = {}
        self.node: NodeView | None = None

    # ---- what the room asks for ----

    def take(self, uid: str, pod: Pod) -> None:
        """A pod was admitted, or an admitted one changed."""
        state = self.pods.get(uid)
        if state is None:
            state = self.pods[uid] = PodState(pod, api=self._content is not None)
        before, changed = own_facts(state.pod), state.take(pod)
        if self._content is not None and any(from_api(each.volume) for each in state.volumes.values()):
            self._content.hold(uid, state.references(), certificates=state.has_certificates())
        for name in list(state.volumes):
            self._begin_where_needed(uid, name, changed, stale=before != own_facts(pod))
        self._report(uid, always=True)

    def use(self, node: NodeView) -> None:
        """The node became known; pods that came before it are set up now."""
        self.node = node
        for uid, state in list(self.pods.items()):
            for name in list(state.volumes):
                self._begin_where_needed(uid, name, False)

    def refresh(self, wanted: Callable[[str, PodState, VolumeState], bool]) -> None:
        """Set the volumes up again of which `wanted` (UID, pod, volume) says so: what they are made of changed."""
        for uid, state in list(self.pods.items()):
            for name, volume in list(state.volumes.items()):
                if self.node is None or not wanted(uid, state, volume) or unsupported(volume.volume, api=state.api):
                    continue
                if volume.running:
                    volume.again = True
                else:
                    self._begin(uid, name, volume)

    def drop(self, uid: str) -> None:
        """The pod needs its volumes no more. What still runs for it is left to end."""
        self.pods.pop(uid, None)
        if self._content is not None:
            self._content.drop(uid)

    def busy(self, uid: str) -> bool:
        """Whether something may still be written below the pod's directory."""
        return self._hanging.get(uid, 0) > 0

    def replay(self) -> list[PodVolumesReady]:
        """What was told of each pod last."""
        return [state.told for state in self.pods.values() if state.told is not None]

    # ---- one attempt ----

    def _begin_where_needed(self, uid: str, name: str, changed: bool, *, stale: bool = False) -> None:
        state = self.pods[uid].volumes[name]
        why = unsupported(state.volume, api=self._content is not None)
        if why and changed:
            self._fail(self.pods[uid].pod, _text(name, why))
        if why or self.node is None:
            return
        stale = stale and kind_of(state.volume).follows_pod
        if state.running:
            state.again = state.again or stale
        elif (state.path is None and not state.retry) or stale:
            self._begin(uid, name, state)

    def _begin(self, uid: str, name: str, state: VolumeState) -> None:
        assert self.node is not None
        state.retry = state.again = False
        kind = kind_of(state.volume)
        job = Job(self.pods[uid].pod, state.volume, self._dirs, self.node, self._content)
        if kind.quick(job):
            self._finish(uid, name, state, *_attempt(kind, job))
            return
        serial = state.running = next(self._serial)
        if kind.in_pod_dir:
            self._hanging[uid] = self._hanging.get(uid, 0) + 1
        if from_api(state.volume):
            self._crew.run(lambda: self._work(uid, name, state, kind, job))
        else:
            threading.Thread(target=self._work, args=(uid, name, state, kind, job), name=f"volume-{name}",
                             daemon=True).start()
        self._timers.after(SLOW, lambda: self._tell_slow(uid, state, serial, kind.doing(job)))

    def _work(self, uid: str, name: str, state: VolumeState, kind: Kind, job: Job) -> None:
        path, problem = _attempt(kind, job)
        self._post(lambda: self._come_back(uid, name, state, kind, path, problem))

    def _come_back(
        self, uid: str, name: str, state: VolumeState, kind: Kind, path: str | None, problem: str
    ) -> None:
        state.running = 0
        if kind.in_pod_dir:
            self._hanging[uid] -= 1
            if not self._hanging[uid]:
                del self._hanging[uid]
        pod = self.pods.get(uid)
        if pod is None or pod.volumes.get(name) is not state:
            self._ended(uid)
            return
        again = state.again
        self._finish(uid, name, state, path, problem)
        if again:
            self._begin(uid, name, state)

    def _finish(self, uid: str, name: str, state: VolumeState, path: str | None, problem: str) -> None:
        pod = self.pods[uid]
        if path is not None:
            state.stand(path)
        else:
            text = _text(name, problem)
            delay = state.fail(text, kind_of(state.volume).longest)
            _log.warning("volume not set up", pod=describe(pod.pod), volume=name, err=problem, retry=delay)
            self._fail(pod.pod, text)
            self._timers.after(delay, lambda: self._retry(uid, name, state))
        self._report(uid)

    def _retry(self, uid: str, name: str, state: VolumeState) -> None:
        pod = self.pods.get(uid)
        if pod is not None and pod.volumes.get(name) is state and state.retry and not state.running:
            self._begin(uid, name, state)

    def _tell_slow(self, uid: str, state: VolumeState, serial: int, doing: str) -> None:
        if state.running == serial and uid in self.pods and state.path is None:
            state.problem = f"{doing} has not ended after {SLOW:.0f} s"
            _log.warning("volume takes long", pod=describe(self.pods[uid].pod), what=doing)
            self._report(uid)

    def _report(self, uid: str, *, always: bool = False) -> None:
        """Tell what is new; `always`: tell it again even when it is not."""
        state = self.pods[uid]
        report = state.report(uid)
        if report is not None and (always or report != state.told):
            state.told = report
            self._tell(report)


def _attempt(kind: Kind, job: Job) -> tuple[str | None, str]:
    """(path, "") or (None, why not)."""
    try:
        return kind.set_up(job), ""
    except HostError as error:
        return None, error.message
    except OSError as error:
        return None, f"{error.filename or job.name}: {error.strerror}"


def _text(name: str, problem: str) -> str:
    return f'MountVolume.SetUp failed for volume "{name}" : {problem}'
