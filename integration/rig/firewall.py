"""The iptables rules that the CNI plugins left behind for pods of one network."""

from __future__ import annotations

import re
import shutil

from integration.rig.console import run
from integration.rig.layout import Layout

_OWN_CHAIN = re.compile(r"-[Aj] (CNI-(?:DN-|SN-)?[0-9a-f]{8,})\b")
_PATH = "/usr/sbin:/sbin:/usr/bin:/bin"


def rules(layout: Layout) -> list[str]:
    """The nat rules whose comment names the layout's network, in the form of iptables-save."""
    program = shutil.which("iptables-save", path=_PATH)
    if not program:
        return []
    return matching(run([program, "-t", "nat"], timeout=20), layout.network)


def matching(saved: str, network: str) -> list[str]:
    """Those lines of iptables-save's output that append a rule with a comment of this network."""
    mark = f'name: \\"{network}\\"'
    return [line for line in saved.splitlines() if line.startswith("-A ") and mark in line]


def removal(lines: list[str]) -> str:
    """The input of `iptables-restore --noflush` that removes these rules and the chains made for them."""
    chains = sorted({name for line in lines for name in _OWN_CHAIN.findall(line)})
    deletes = ["-D " + line.removeprefix("-A ") for line in lines]
    flushes = [f"-F {chain}" for chain in chains]
    drops = [f"-X {chain}" for chain in chains]
    return "\n".join(["*nat", *deletes, *flushes, *drops, "COMMIT", ""])


def remove(layout: Layout) -> None:
    lines = rules(layout)
    program = shutil.which("iptables-restore", path=_PATH)
    if lines and program:
        run([program, "--noflush"], timeout=20, text=removal(lines))
