"""The virtual environment with everything that setup.cfg asks for; as a program it prints its interpreter.

The project itself is not installed in it: PYTHONPATH points to the tree, so that the code in front of you
runs and nothing is written beside it.
"""

from __future__ import annotations

import configparser
import sys
import venv
from pathlib import Path

from integration.rig import cache
from integration.rig.console import RigError, run, say

_CONSTRAINTS = cache.TREE / "integration" / "constraints.txt"
_SETUP = cache.TREE / "setup.cfg"


def requirements() -> list[str]:
    """The requirements of setup.cfg: run time and `dev`."""
    setup = configparser.ConfigParser()
    setup.read(_SETUP)
    lines = setup["options"]["install_requires"] + "\n" + setup["options.extras_require"]["dev"]
    return [line.strip() for line in lines.splitlines() if line.strip() and not line.startswith("#")]


def ensure() -> Path:
    """Return the interpreter of the environment, made on the first call (about a minute)."""
    digest = cache.key(_SETUP, _CONSTRAINTS, sys.version, sys.base_prefix)
    return cache.ensure("venv", digest, _build) / "bin" / "python"


def _build(target: Path) -> None:
    wanted = requirements()
    say(f"making a Python environment with {len(wanted)} requirements in {target}")
    venv.create(target, with_pip=True)
    pip: list[str | Path] = [target / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "install", "--quiet", "--no-input", "-c", _CONSTRAINTS, *wanted], timeout=1200)


def main() -> int:
    try:
        print(ensure())
    except RigError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
