"""Fetch and build every part that the integration tests need, so that no test spends its time on that."""

from __future__ import annotations

import sys

from integration.rig import images, layout
from integration.rig.console import RigError


def main() -> int:
    try:
        layout.built_binaries()
        layout.debian_binaries()
        images.ensure()
    except RigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
