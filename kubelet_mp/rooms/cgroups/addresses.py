"""Which addresses the node goes by (Kubernetes 1.37 pkg/kubelet/nodestatus)."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Callable, Iterable, Sequence

from kubelet_mp.errors import HostError
from kubelet_mp.host import netlink

LOOKUP_PATIENCE = 3.0  # s for the resolver, which has no deadline of its own


def choose(
    node_ips: Sequence[str], hostname: str, own: Iterable[str], resolve: Callable[[str], list[str]],
    defaults: Callable[[], list[str]],
) -> tuple[str, ...]:  # fmt: skip
    """--node-ip, else the host name if it is an address, else what it resolves to, else the default route's.

    `own`: the addresses of the host's interfaces. An unspecified --node-ip only prefers an IP family.
    Raises HostError where a --node-ip is not one of the host's.
    """
    given = [ip for ip in node_ips if not ipaddress.ip_address(ip).is_unspecified]
    if given:
        return tuple(_checked(ip, set(own)) for ip in given)
    versions = [ipaddress.ip_address(ip).version for ip in node_ips] or [4, 6]
    if _usable(hostname):
        return (hostname,)
    found = [ip for ip in resolve(hostname) if _usable(ip)] or defaults()
    ordered = sorted(found, key=lambda ip: (_rank(ip, versions), found.index(ip)))
    return tuple(ordered[:1])


def _rank(ip: str, versions: Sequence[int]) -> int:
    version = ipaddress.ip_address(ip).version
    return versions.index(version) if version in versions else len(versions)


def _checked(ip: str, own: set[str]) -> str:
    if not _usable(ip):
        raise HostError(f"node IP {ip} cannot be reached by other hosts", "give another --node-ip")
    if ip not in own:
        raise HostError(f"node IP: {ip!r} not found in the host's network interfaces",
                        "give an address of this host as --node-ip, or add it to an interface")
    return ip


def _usable(text: str) -> bool:
    try:
        return netlink.Address(text, 0, 0).usable
    except ValueError:
        return False


def resolve(hostname: str) -> list[str]:
    """The addresses of a name as the resolver orders them; none when it does not know or takes too long."""
    found: list[str] = []

    def ask() -> None:
        try:
            answers = socket.getaddrinfo(hostname, None, proto=socket.IPPROTO_TCP)
        except OSError:
            return
        found.extend(dict.fromkeys(str(answer[4][0]) for answer in answers))

    thread = threading.Thread(target=ask, name="resolve", daemon=True)
    thread.start()
    thread.join(LOOKUP_PATIENCE)
    return list(found)


def current(node_ips: Sequence[str], hostname: str) -> tuple[str, ...]:
    """The addresses now; () while there is none. Blocks for some seconds at most. Raises HostError."""
    own = [address.ip for address in netlink.addresses()]
    return choose(node_ips, hostname, own, resolve, netlink.default_addresses)
