"""Fetch and build the parts that integration tests need, so that no test spends its time on that.

As a program: with the word `cluster` also the control plane.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from integration.rig import images, layout
from integration.rig.console import RigError


def main(words: Sequence[str]) -> int:
    try:
        layout.built_binaries()
        layout.debian_binaries()
        images.ensure()
        if "cluster" in words:
            layout.cluster_programs()
    except RigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
