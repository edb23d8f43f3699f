"""Who gets which message. A star: rooms speak only through the supervisor, which looks here."""

from __future__ import annotations

from collections.abc import Mapping

ROUTES: Mapping[str, tuple[str, ...]] = {
    # from sources
    "DesiredPod": ("pods", "reporter"),
    "DesiredSet": ("pods", "reporter"),
    "SourceProblem": ("http", "reporter"),
    "MirrorPod": ("reporter",),
    "MirrorSet": ("reporter",),
    # from pleg
    "PodRuntimeChanged": ("pods", "probes", "housekeeping"),
    "RelistDone": ("pods", "housekeeping", "http", "reporter"),
    "RuntimeStateChanged": ("pods", "cgroups", "http", "reporter"),
    # from pods
    "RelistPod": ("pleg",),
    "PodAdmitted": ("cgroups", "volumes", "probes"),
    "PodStopping": ("probes",),
    "PodStopped": ("cgroups", "volumes", "probes"),
    "PodFinished": ("reporter",),
    "PodForgotten": ("cgroups", "volumes", "probes", "housekeeping", "reporter"),
    "AdmittedSet": ("cgroups", "volumes", "probes", "housekeeping"),
    "PodStatus": ("reporter", "http"),
    "StatusSet": ("reporter", "http", "housekeeping"),
    "ProbeNow": ("probes",),
    # from cgroups and volumes
    "PodCgroupReady": ("pods",),
    "PodVolumesReady": ("pods",),
    "PodFreed": ("pods",),
    "NodeFacts": ("pods", "volumes", "probes", "http", "reporter"),
    # from housekeeping
    "NodeImages": ("reporter",),
    # from probes
    "ProbeResult": ("pods",),
    # from reporter
    "NodeObject": ("pods", "sources", "volumes", "http"),
    # from everyone
    "Event": ("reporter",),
    "Timeline": ("http",),
    "Metrics": ("http",),
    # from the supervisor itself
    "Health": ("http",),
}


def receivers(kind: str, to: str, sender: str) -> tuple[str, ...]:
    """The rooms that get a message of `kind`; `to` overrides the table. KeyError for a kind nobody routes."""
    rooms = (to,) if to else ROUTES[kind]
    return tuple(room for room in rooms if room != sender)
