"""Find and remove what a private runtime and an agent may leave on the machine.

Only things under the layout's own folders, cgroup and bridge are touched.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from integration.rig import firewall
from integration.rig.console import RigError, poll, run
from integration.rig.layout import Layout

_MNT_DETACH = 2
_CNI_RESULTS = Path("/var/lib/cni/results")
_CONTAINER_LINKS = Path("/var/log/containers")


def mounts(*roots: Path) -> list[str]:
    """Mount points at or below the roots, the deepest first."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4].encode().decode("unicode_escape") for line in lines]
    return [point for point in reversed(points) if any(_below(point, root) for root in roots)]


def _below(path: str, root: Path) -> bool:
    return path == str(root) or path.startswith(f"{root}/")


def unmount(*roots: Path) -> None:
    """Unmount everything at or below the roots, lazily where something still holds it."""
    libc = ctypes.CDLL(None, use_errno=True)
    for point in mounts(*roots):
        if libc.umount2(point.encode(), 0) and libc.umount2(point.encode(), _MNT_DETACH):
            raise RigError(f"{point} cannot be unmounted: {os.strerror(ctypes.get_errno())}")


def cgroup_roots() -> list[Path]:
    """The mount point of every cgroup hierarchy, v1 and v2."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        words = line.split()
        if words[words.index("-") + 1] in ("cgroup", "cgroup2"):
            found.append(Path(words[4]))
    return found


def cgroups(name: str) -> Iterator[Path]:
    """Every cgroup folder at or below NAME in every hierarchy, the deepest first."""
    for root in cgroup_roots():
        for folder, _, _ in os.walk(root / name.strip("/"), topdown=False):
            yield Path(folder)


def make_cgroup(name: str) -> None:
    """Create cgroup NAME in every hierarchy, ready for children with limits (v1 cpuset, v2 controllers)."""
    for root in cgroup_roots():
        folder = root
        for part in name.strip("/").split("/"):
            _delegate(folder)
            folder = folder / part
            folder.mkdir(exist_ok=True)
            for inherited in ("cpuset.cpus", "cpuset.mems"):
                if (folder.parent / "cpuset.sched_load_balance").exists():  # v1: empty in a new cgroup
                    (folder / inherited).write_text((folder.parent / inherited).read_text())


def _delegate(folder: Path) -> None:
    """Give the children of a v2 cgroup all the controllers that it has itself."""
    controllers = folder / "cgroup.controllers"
    if controllers.exists():
        wanted = " ".join(f"+{name}" for name in controllers.read_text().split())
        (folder / "cgroup.subtree_control").write_text(wanted)


def remove_cgroup(name: str) -> None:
    """Kill what still runs in cgroup NAME and remove it, with its children."""

    def gone() -> bool:
        for folder in cgroups(name):
            _remove_one(folder)
        return not any(cgroups(name))

    if not poll(gone, 10):
        raise RigError(f"these cgroups cannot be removed: {' '.join(map(str, cgroups(name)))}")


def _remove_one(folder: Path) -> None:
    try:
        for pid in (folder / "cgroup.procs").read_text().split():
            kill(int(pid))
        folder.rmdir()
    except OSError:
        pass  # a process is still ending, or it is gone already: the caller looks again


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # already gone, as wanted


def command_line(pid: int) -> str:
    """The words of a process's command line, empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def processes(*needles: str) -> dict[int, str]:
    """Process ids and command lines of those whose command line contains a needle; never this process."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            words = command_line(int(entry.name))
            if any(needle in words for needle in needles):
                found[int(entry.name)] = words
    return found


def shims(layout: Layout) -> dict[int, str]:
    """The runtime's daemon-less helpers: shims and runc calls of this layout."""
    return processes(f"-address {layout.socket}", f"--root {layout.run}/runc")


def leftovers(layout: Layout) -> list[str]:
    """One line for each thing of this layout that is still on the machine."""
    found = [f"mount {point}" for point in mounts(layout.run, layout.data)]
    found += [f"process {pid} {words[:100]}" for pid, words in sorted(shims(layout).items())]
    found += [f"cgroup {folder}" for folder in cgroups(layout.cgroup)]
    found += [f"link {link}" for link in _log_links(layout)]
    found += [f"firewall rule {rule}" for rule in firewall.rules(layout)]
    found += [f"network result {path}" for path in _results(layout)]
    if Path(f"/sys/class/net/{layout.bridge}").exists():
        found.append(f"interface {layout.bridge}")
    return found


def sweep(layout: Layout) -> None:
    """Remove everything that `leftovers` lists. The daemon itself must be down."""
    for pid in shims(layout):
        kill(pid)
    remove_cgroup(layout.cgroup)
    unmount(layout.run, layout.data)
    for path in [*_results(layout), *_log_links(layout)]:
        path.unlink(missing_ok=True)
    firewall.remove(layout)
    remove_bridge(layout)


def after_agent(layout: Layout, home: Path) -> None:
    """What an agent that is stopped leaves by design: mounts below its root, and links to logs of its pods."""
    unmount(home)
    for link in _log_links(layout):
        link.unlink(missing_ok=True)


def remove_bridge(layout: Layout) -> None:
    """Delete the pods' bridge, which no CNI plugin ever does."""
    if Path(f"/sys/class/net/{layout.bridge}").exists():
        run(["ip", "link", "delete", layout.bridge], timeout=10)


def _results(layout: Layout) -> list[Path]:
    """Results that the CNI library keeps for pods whose network namespace is in the layout's folder."""
    if not _CNI_RESULTS.exists():
        return []
    return [path for path in _CNI_RESULTS.iterdir() if f"{layout.run}/" in _text(path)]


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except FileNotFoundError:
        return ""  # removed meanwhile by its owner


def _log_links(layout: Layout) -> list[Path]:
    """Links to container logs whose target lies in the layout's folders."""
    if not _CONTAINER_LINKS.exists():
        return []
    roots = (layout.run, layout.data, layout.log)
    return [
        link
        for link in _CONTAINER_LINKS.iterdir()
        if link.is_symlink() and any(_below(os.readlink(link), root) for root in roots)
    ]
