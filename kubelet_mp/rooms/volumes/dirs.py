"""Where a pod's volumes are below the root directory. Pure."""

from __future__ import annotations

from dataclasses import dataclass

EMPTY_DIR = "kubernetes.io/empty-dir"


@dataclass(frozen=True, slots=True)
class Dirs:
    """Paths below the kubelet's root directory `root`. `plugin` is a name like kubernetes.io/empty-dir."""

    root: str

    @property
    def pods(self) -> str:
        return f"{self.root}/pods"

    def pod(self, uid: str) -> str:
        return f"{self.pods}/{uid}"

    def volumes(self, uid: str) -> str:
        return f"{self.pod(uid)}/volumes"

    def volume(self, uid: str, plugin: str, name: str) -> str:
        return f"{self.volumes(uid)}/{escape(plugin)}/{name}"

    def plugins(self, uid: str) -> str:
        return f"{self.pod(uid)}/plugins"

    def marker(self, uid: str, name: str) -> str:
        """The directory whose file `ready` says that the emptyDir `name` was set up."""
        return f"{self.plugins(uid)}/{escape(EMPTY_DIR)}/{name}"

    def subpaths(self, uid: str) -> str:
        return f"{self.pod(uid)}/volume-subpaths"


def escape(plugin: str) -> str:
    """A plugin's name as a directory: kubernetes.io/nfs → kubernetes.io~nfs."""
    return plugin.replace("/", "~")


def is_safe(uid: str) -> bool:
    """Whether a UID can be the name of a directory."""
    return bool(uid) and uid not in (".", "..") and "/" not in uid and "\0" not in uid
