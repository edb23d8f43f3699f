"""Which duties the reporter has."""

from __future__ import annotations

from collections.abc import Sequence

from kubelet_mp.config import Settings
from kubelet_mp.rooms.reporter.duty import MakeDuty
from kubelet_mp.rooms.reporter.timelines import Timelines


def duties(settings: Settings) -> Sequence[MakeDuty]:
    """In the order in which they get each message. What only an API server needs is imported only with one."""
    if settings.standalone:
        return (Timelines,)
    from kubelet_mp.rooms.reporter.apievents import ApiEvents
    from kubelet_mp.rooms.reporter.certificates import duty as certificates
    from kubelet_mp.rooms.reporter.mirrors import Mirrors
    from kubelet_mp.rooms.reporter.node.duty import NodeKeeper
    from kubelet_mp.rooms.reporter.podstatus import PodStatuses

    found: list[MakeDuty] = [Timelines, NodeKeeper, PodStatuses, Mirrors, ApiEvents]
    if certificates.wanted(settings):
        found.append(certificates.Certificates)
    return found
