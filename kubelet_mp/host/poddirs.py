"""Directories and files of a pod under the root directory and the log directory.

Source: Kubernetes 1.37 pkg/kubelet/kubelet_getters.go and pkg/kubelet/kuberuntime (log paths, log links).
Modes are exact. Roots are passed in, so that tests use a temporary directory.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kubelet_mp.host import files
from kubelet_mp.model.criname import log_link_name

_LOG_NAME = re.compile(r"(\d+)\.log")


def log_directory(logs_dir: str, namespace: str, name: str, uid: str) -> str:
    """The CRI log_directory of a pod."""
    return f"{logs_dir}/{namespace}_{name}_{uid}"


@dataclass(frozen=True, slots=True)
class PodDirs:
    """root: the kubelet's root directory; logs: podLogsDir; links: /var/log/containers."""

    root: str
    logs: str
    links: str = "/var/log/containers"

    def pod(self, uid: str) -> str:
        return f"{self.root}/pods/{uid}"

    def etc_hosts(self, uid: str) -> str:
        return f"{self.pod(uid)}/etc-hosts"

    def make(self, namespace: str, name: str, uid: str) -> None:
        """Make the pod's data and log directories. Raises FileError."""
        files.make_dirs(f"{self.root}/pods", 0o750)
        for part in ("", "/volumes", "/plugins", "/containers"):
            files.make_dirs(self.pod(uid) + part, 0o750)
        files.make_dirs(self.logs, 0o750)
        files.make_dirs(log_directory(self.logs, namespace, name, uid), 0o755)

    def write_etc_hosts(self, uid: str, text: str) -> str:
        """Write the hosts file in place (a running container has it mounted: the inode must stay)."""
        path = self.etc_hosts(uid)
        try:
            with open(path, "w", encoding="utf-8") as file:
                os.fchmod(file.fileno(), 0o644)
                file.write(text)
        except OSError as error:
            raise files.FileError.of("write", path, error) from error
        return path

    def make_termination_log(self, uid: str, container: str) -> str:
        """A new world-writable file for one instance's termination message; its path. Raises FileError."""
        directory = f"{self.pod(uid)}/containers/{container}"
        files.make_dirs(directory, 0o750)
        path = f"{directory}/{secrets.token_hex(4)}"
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            os.fchmod(fd, 0o666)
            os.close(fd)
        except OSError as error:
            raise files.FileError.of("make", path, error) from error
        return path

    def remove_termination_log(self, uid: str, host_paths: Iterable[str]) -> None:
        """Remove the message file of an instance that is gone: the one of its mounts that we made."""
        for path in host_paths:
            if path.startswith(f"{self.pod(uid)}/containers/") and ".." not in path:
                files.remove_file(path)

    def make_log_dir(self, namespace: str, name: str, uid: str, container: str) -> str:
        directory = f"{log_directory(self.logs, namespace, name, uid)}/{container}"
        files.make_dirs(directory, 0o755)
        return directory

    def highest_log(self, namespace: str, name: str, uid: str, container: str) -> int | None:
        """The highest N of the N.log files of a container; None without any."""
        directory = f"{log_directory(self.logs, namespace, name, uid)}/{container}"
        try:
            names = os.listdir(directory)
        except OSError:
            return None
        return max((int(m[1]) for m in map(_LOG_NAME.match, names) if m), default=None)

    def link_log(self, pod: str, namespace: str, container: str, container_id: str, target: str) -> bool:
        """Link the log file into /var/log/containers; False if the file is not there. Raises FileError."""
        if not os.path.exists(target):
            return False
        files.make_dirs(self.links, 0o755)
        path = Path(self.links) / log_link_name(pod, namespace, container, container_id)
        try:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
            path.symlink_to(target)
        except OSError as error:
            raise files.FileError.of("link", path, error) from error
        return True

    def remove_container_logs(self, pod: str, namespace: str, container: str, container_id: str, target: str) -> None:
        """Remove the link, and the log file with its rotated ones. Raises FileError."""
        files.remove_file(f"{self.links}/{log_link_name(pod, namespace, container, container_id)}")
        if not target:
            return
        directory, name = os.path.split(target)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            for entry in os.listdir(directory):
                if entry == name or entry.startswith(f"{name}."):
                    files.remove_file(f"{directory}/{entry}")

    def remove(self, uid: str) -> bool:
        """Remove what the pods room made of a pod; False if something (a volume) is still there.

        Never descends into volumes: a mount that is still up must not be emptied.
        """
        base = self.pod(uid)
        for part in ("containers", "plugins"):
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(f"{base}/{part}")
        for name in ("etc-hosts", "kubelet-mp.json"):
            files.remove_file(f"{base}/{name}")
        for part in ("volumes", "volume-subpaths", "volumeDevices"):
            _remove_empty_tree(f"{base}/{part}")
        try:
            os.rmdir(base)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True


def _remove_empty_tree(path: str) -> None:
    """Remove a directory of which only empty directories are left (rmdir stops at mounts and files)."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for entry in os.scandir(path):
            if entry.is_dir(follow_symlinks=False):
                _remove_empty_tree(entry.path)
    with contextlib.suppress(OSError):
        os.rmdir(path)
