"""Debian's own packages, unpacked into the cache instead of installed.

So no service of the machine is started, stopped or replaced, and another containerd (Docker's, say, whose
package conflicts with Debian's) is left alone.
"""

from __future__ import annotations

from pathlib import Path

from integration.rig import cache
from integration.rig.console import RigError, run, say

RUNTIME = ("containerd", "runc", "containernetworking-plugins")
IMAGES = ("busybox-static", "catatonit")

_APT = ("-o", "APT::Sandbox::User=root")


def ensure(kind: str, packages: tuple[str, ...]) -> Path:
    """Return a folder with the files of the packages below it, laid out as on an installed system."""
    digest = cache.key(*packages, Path("/etc/os-release"))
    return cache.ensure(f"debs-{kind}", digest, lambda target: _fetch(target, packages))


def _fetch(target: Path, packages: tuple[str, ...]) -> None:
    say(f"downloading Debian packages: {' '.join(packages)}")
    try:
        _download(target, packages)
    except RigError:
        say("fetching the package lists (apt-get update)")
        run(["apt-get", "-qq", "update"], timeout=300)
        _download(target, packages)
    for deb in sorted(target.glob("*.deb")):
        run(["dpkg", "-x", deb, target], timeout=120)
        deb.unlink()


def _download(target: Path, packages: tuple[str, ...]) -> None:
    run(["apt-get", *_APT, "-qq", "download", *packages], timeout=600, cwd=target)
