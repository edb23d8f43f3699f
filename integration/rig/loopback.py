"""Addresses of the loopback interface that pods reach too: there is one machine, and more than one node on it."""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass

from integration.rig.console import run


@dataclass(frozen=True)
class Network:
    """A network of four /24 parts whose addresses this machine takes one by one."""

    cidr: str

    def part(self, number: int) -> str:
        """The /24 with a number from 0 to 3."""
        return str(list(ipaddress.ip_network(self.cidr).subnets(new_prefix=24))[number])

    def address(self, part: int, number: int) -> str:
        return str(ipaddress.ip_network(self.part(part))[number])

    def add(self, address: str) -> None:
        """Give an address to the machine; harmless when it has it."""
        if address not in self.taken():
            run(["ip", "address", "add", f"{address}/32", "dev", "lo"], timeout=10)

    def taken(self) -> list[str]:
        """The addresses of this network that the machine has."""
        shown = json.loads(run(["ip", "-json", "-4", "address", "show", "dev", "lo"], timeout=10))
        found = [entry["local"] for link in shown for entry in link.get("addr_info", [])]
        network = ipaddress.ip_network(self.cidr)
        return [address for address in found if ipaddress.ip_address(address) in network]

    def remove_all(self) -> None:
        for address in self.taken():
            run(["ip", "address", "del", f"{address}/32", "dev", "lo"], timeout=10)
