"""Log directories of pods that are gone, and links in /var/log/containers that lead nowhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable

from kubelet_mp import log
from kubelet_mp.host.files import FileError, remove_file

_log = log.get("housekeeping")


def pod_of_directory(name: str) -> str:
    """The UID in NAMESPACE_NAME_UID; "" for a name of another kind."""
    parts = name.split("_")
    return parts[2] if len(parts) == 3 and all(parts) else ""


def pods_with_logs(logs_dir: str) -> dict[str, str]:
    """UID → path of each pod's log directory."""
    found = {}
    for entry in _scan(logs_dir):
        uid = pod_of_directory(entry.name)
        if uid and entry.is_dir(follow_symlinks=False):
            found[uid] = entry.path
    return found


def remove_directories(paths: Iterable[str]) -> int:
    """Remove whole log directories. Returns how many went."""
    removed = 0
    for path in paths:
        try:
            shutil.rmtree(path)
            removed += 1
        except FileNotFoundError:
            continue
        except OSError as error:
            _log.warning("cannot remove the log directory of a pod that is gone", path=path, err=str(error))
    return removed


def dangling_links(links_dir: str, logs_dir: str) -> dict[str, str]:
    """Path → container id (as far as the name tells) of each link into `logs_dir` whose log is not there.

    Links to elsewhere belong to another agent of this machine.
    """
    found = {}
    for entry in _scan(links_dir):
        if entry.name.endswith(".log") and _leads_into(entry, logs_dir) and not os.path.exists(entry.path):
            found[entry.path] = entry.name[: -len(".log")].rpartition("-")[2]
    return found


def _leads_into(entry: os.DirEntry[str], directory: str) -> bool:
    try:
        return os.readlink(entry.path).startswith(directory.rstrip("/") + "/")
    except OSError:
        return False


def remove_links(links: dict[str, str], running: Callable[[str], bool]) -> int:
    """Remove dangling links, but not of running containers: their log may just be rotated."""
    removed = 0
    for path, container_id in links.items():
        if running(container_id):
            continue
        try:
            removed += remove_file(path)
        except FileError as error:
            _log.warning("cannot remove a dangling log link", err=str(error))
    return removed


def _scan(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
    except OSError as error:
        _log.warning("cannot list a log directory", path=directory, err=str(error))
        return []
