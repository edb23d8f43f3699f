"""What the room knows of one pod's volumes, and what follows from it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubelet_mp.model import podspec
from kubelet_mp.model.podspec import Pod
from kubelet_mp.rooms.volumes.content.keys import Key
from kubelet_mp.rooms.volumes.plan import Volume, has_certificates, needed, references, unsupported
from kubelet_mp.wire.messages import PodVolumesReady

FIRST, LONGEST = 0.5, 122.0  # s between two attempts at one volume


@dataclass(slots=True)
class VolumeState:
    """One volume: `path` once it stands (""for an image volume), `problem` while it does not.

    running: the serial of the set-up under way, 0 for none. again: run it once more when that has ended.
    retry: a new attempt is set for later, after `delay` s.
    """

    volume: Volume
    path: str | None = None
    problem: str = ""
    running: int = 0
    again: bool = False
    retry: bool = False
    delay: float = 0.0

    def fail(self, problem: str, longest: float = LONGEST) -> float:
        """Note a failed attempt; seconds until the next one."""
        self.problem, self.retry = problem, True
        self.delay = min(2 * self.delay, longest) if self.delay else FIRST
        return self.delay

    def stand(self, path: str) -> None:
        """Note a success."""
        self.path, self.problem, self.delay, self.retry = path, "", 0.0, False


@dataclass(slots=True)
class PodState:
    """One admitted pod and the volumes that it needs, by name. api: whether there is an API server."""

    pod: Pod
    api: bool = False
    volumes: dict[str, VolumeState] = field(default_factory=dict)
    told: PodVolumesReady | None = None

    def take(self, pod: Pod) -> bool:
        """Take the pod's newest form. Returns whether it differs; what stands already keeps standing."""
        changed = pod != self.pod or not self.volumes
        self.pod = pod
        wanted = needed(pod)
        for name in [name for name in self.volumes if wanted.get(name) != self.volumes[name].volume]:
            del self.volumes[name]
        for name, volume in wanted.items():
            if name not in self.volumes:
                why = unsupported(volume, api=self.api)
                self.volumes[name] = VolumeState(volume, problem=why and f'volume "{name}": {why}')
        return changed

    def report(self, uid: str) -> PodVolumesReady | None:
        """What the pods room is to know: all paths, or a problem; None while work goes on without one."""
        pending = tuple(sorted(name for name, state in self.volumes.items() if state.path is None))
        problems = [self.volumes[name].problem for name in pending if self.volumes[name].problem]
        if pending and not problems:
            return None
        paths = {name: state.path for name, state in self.volumes.items() if state.path is not None}
        return PodVolumesReady(uid, paths, "; ".join(problems), pending)

    def references(self) -> frozenset[Key]:
        """The objects of the API server that its volumes are made of."""
        namespace = podspec.namespace(self.pod)
        return frozenset(key for state in self.volumes.values() for key in references(state.volume, namespace))

    def has_certificates(self) -> bool:
        return any(has_certificates(state.volume) for state in self.volumes.values())

    def busy(self) -> bool:
        """Whether a set-up is under way."""
        return any(state.running for state in self.volumes.values())
