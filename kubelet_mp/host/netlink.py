"""Addresses and routes of the node, by netlink."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from kubelet_mp.errors import HostError

_MAIN_TABLE = 254
_FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}


@dataclass(frozen=True, slots=True)
class Address:
    """One address of an interface; `scope` is the kernel's number (0 global, 253 link, 254 host)."""

    ip: str
    interface: int
    scope: int

    @property
    def usable(self) -> bool:
        """Whether other hosts may reach the node by it."""
        ip = ipaddress.ip_address(self.ip)
        return not (ip.is_loopback or ip.is_link_local or ip.is_multicast or ip.is_unspecified)


@dataclass(frozen=True, slots=True)
class DefaultRoute:
    """A default route of the main table; `source` is its preferred source address or ""."""

    interface: int
    metric: int
    source: str = ""


def addresses() -> list[Address]:
    """All addresses of all interfaces in the kernel's order. Raises HostError."""
    try:
        with IPRoute() as netlink:
            return _addresses(netlink.get_addr())
    except (OSError, NetlinkError) as error:
        raise HostError(f"cannot list the node's addresses: {error}") from error


def default_addresses() -> list[str]:
    """For IPv4, then IPv6: the address of the interface with the default route. Raises HostError."""
    try:
        with IPRoute() as netlink:
            known = _addresses(netlink.get_addr())
            routes = {version: netlink.get_default_routes(family=family)
                      for version, family in _FAMILIES.items()}
            return choose(known, {version: _routes(found) for version, found in routes.items()})
    except (OSError, NetlinkError) as error:
        raise HostError(f"cannot find the default route: {error}") from error


def choose(known: Iterable[Address], routes: Mapping[int, Iterable[DefaultRoute]]) -> list[str]:
    """By IP version the address behind the default route with the lowest metric; none without a route."""
    usable = [address for address in known if address.usable]
    chosen = []
    for version, candidates in sorted(routes.items()):
        for route in sorted(candidates, key=lambda candidate: candidate.metric):
            found = _behind(route, version, usable)
            if found:
                chosen.append(found)
                break
    return chosen


def _behind(route: DefaultRoute, version: int, usable: list[Address]) -> str:
    own = [a.ip for a in usable
           if a.interface == route.interface and ipaddress.ip_address(a.ip).version == version]
    return route.source if route.source in own else next(iter(own), "")


def _addresses(records: Iterable[Any]) -> list[Address]:
    found = []
    for record in records:
        ip = record.get_attr("IFA_LOCAL") or record.get_attr("IFA_ADDRESS")
        if ip:
            found.append(Address(ip, record["index"], record["scope"]))
    return found


def _routes(records: Iterable[Any]) -> list[DefaultRoute]:
    return [
        DefaultRoute(oif, record.get_attr("RTA_PRIORITY") or 0, record.get_attr("RTA_PREFSRC") or "")
        for record in records
        if (oif := record.get_attr("RTA_OIF")) is not None
        and (record.get_attr("RTA_TABLE") or record["table"]) == _MAIN_TABLE
    ]
