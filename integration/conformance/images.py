"""The images that upstream's specs name, made from a few static programs: no registry is asked for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from integration.rig import cache, certs, debs, goparts
from integration.rig.console import run
from integration.rig.images import Tree, archive

_TESTS = "registry.k8s.io/e2e-test-images/"
_PATH = {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}
_PROGRAMS = ("busybox-static", "bash-static")
_FOLDERS = ("bin", "etc", "root", "usr", "usr/bin", "usr/local", "usr/local/bin", "var", "uploads", "home")
_USERS = {"root": 0, "user-defined-in-image": 1000, "nobody": 65534}
_GROUPS = """root:x:0:
user-defined-in-image:x:1000:
group-defined-in-image:x:50000:user-defined-in-image
nogroup:x:65534:
"""
# curl by busybox: options are dropped but the one that trusts any certificate
_CURL = b"""#!/bin/sh
trust= url=
for word; do case "$word" in -k | --insecure) trust=--no-check-certificate ;; -*) ;; *) url=$word ;; esac; done
exec wget -q -O - $trust "$url"
"""


class Parts:
    """The programs that go into the images."""

    def __init__(self) -> None:
        specs, packages = goparts.ensure_specs(), debs.ensure("specs", _PROGRAMS)
        self.agnhost = (specs / "agnhost").read_bytes()
        self.stand_in = (specs / "stand-in").read_bytes()
        box = packages / "bin" / "busybox"
        self.busybox, self.applets = box.read_bytes(), run([box, "--list"], timeout=10).split()
        self.bash = (packages / "bin" / "bash-static").read_bytes()

    def base(self) -> Tree:
        """A root file system with a shell and the usual commands."""
        tree = Tree()
        for name in _FOLDERS:
            tree.folder(name)
        tree.folder("tmp", 0o1777)
        tree.file("etc/passwd", "".join(f"{u}:x:{n}:{n}::/:/bin/sh\n" for u, n in _USERS.items()).encode())
        tree.file("etc/group", _GROUPS.encode())
        tree.file("bin/busybox", self.busybox, 0o755)
        for applet in self.applets:
            if applet not in ("busybox", "sh", "nmeter", "curl"):
                tree.link(f"bin/{applet}", "busybox")
        tree.file("bin/bash", self.bash, 0o755)
        tree.file("bin/sh", self.stand_in, 0o755)
        tree.link("bin/nmeter", "sh")
        tree.file("bin/curl", _CURL, 0o755)
        return tree

    def with_agnhost(self, certificate: bytes = b"", key: bytes = b"") -> Tree:
        tree = self.base()
        tree.file("agnhost", self.agnhost, 0o755)
        tree.link("agnhost-2", "agnhost")
        tree.file("localhost.crt", certificate)
        tree.file("localhost.key", key)
        return tree

    def plus(self, name: str, mode: int = 0o755) -> Tree:
        """The usual commands and a program of ours under another name."""
        tree = self.base()
        tree.file(name, self.stand_in, mode)
        return tree


def ensure() -> Path:
    """Return a folder with the images as archives. Raises RigError."""
    specs, packages = goparts.ensure_specs(), debs.ensure("specs", _PROGRAMS)
    digest = cache.key(Path(__file__), specs.name, packages.name)
    return cache.ensure("spec-images", digest, _write)


def _write(target: Path) -> None:
    parts = Parts()
    authority = certs.Authority(target / "pki")
    pair = authority.issue("localhost", "localhost", hosts=["localhost", "127.0.0.1"], hours=10 * 365 * 24)
    agnhost = {**_PATH, "Entrypoint": ["/agnhost"], "Cmd": ["pause"]}
    web = {**_PATH, "Entrypoint": ["/agnhost"], "Cmd": ["netexec", "--http-port=80"]}
    pause = {**_PATH, "Entrypoint": ["/pause"]}
    shell = {**_PATH, "Cmd": ["sh"]}
    for version in ("2.66.1", "2.63.0", "2.55"):
        tree = parts.with_agnhost(*(path.read_bytes() for path in pair))
        _archive(target, f"{_TESTS}agnhost:{version}", tree, agnhost)
    for version in ("1.27.0-2", "1.28.0-2"):
        _archive(target, f"{_TESTS}nginx:{version}", parts.with_agnhost(), web)
    for name in (f"{_TESTS}busybox:1.37.0-2", f"{_TESTS}glibc-dns-testing:2.1.1", "docker.io/library/busybox:latest"):
        _archive(target, name, parts.base(), shell)
    for version in ("3.10.1", "3.10.2"):
        tree = Tree()
        tree.file("pause", parts.stand_in, 0o755)
        _archive(target, f"registry.k8s.io/pause:{version}", tree, pause | {"User": "65535:65535"})
    _archive(target, f"{_TESTS}nonroot:1.5", parts.plus("pause"), pause | {"User": "1234"})
    _archive(target, f"{_TESTS}nonewprivs:1.4", parts.plus("nnp", 0o4755), {**_PATH, "Entrypoint": ["/nnp"]})


def _archive(target: Path, name: str, tree: Tree, config: Mapping[str, Any]) -> None:
    file = name.rpartition("/")[2].replace(":", "-")
    (target / f"{file}.tar").write_bytes(archive(name, tree, config))
