"""Taking down all volumes of a pod, by what the mount table and the directories show.

Nothing is remembered of how a volume was set up, so that it works the same after any death.
"""

from __future__ import annotations

import os

from kubelet_mp.host import mounts
from kubelet_mp.host.files import FileError
from kubelet_mp.host.removal import remove_tree
from kubelet_mp.rooms.volumes.dirs import EMPTY_DIR, Dirs, escape

# plugins whose directory is the agent's own, so its content goes with the volume; any other must be empty
OWNED = tuple(map(escape, (EMPTY_DIR, "kubernetes.io/downward-api", "kubernetes.io/projected",
                           "kubernetes.io/configmap", "kubernetes.io/secret")))  # fmt: skip
FORCED = "nfs"  # file systems whose server may be gone: unmounted by force when they hang on


def free(dirs: Dirs, uid: str) -> None:
    """Unmount and remove the pod's sub-paths and volumes. Raises HostError; calling again goes on."""
    if not os.path.isdir(dirs.pod(uid)):
        return
    pod = os.path.realpath(dirs.pod(uid))
    for mount in mounts.under(mounts.mount_table(only=pod), pod):
        mounts.umount(mount.path, force=mount.fs_type.startswith(FORCED))
    remove_tree(dirs.subpaths(uid))
    for plugin in _names(dirs.volumes(uid)):
        _free_plugin(dirs, uid, plugin)


def _free_plugin(dirs: Dirs, uid: str, plugin: str) -> None:
    base = f"{dirs.volumes(uid)}/{plugin}"
    for name in _names(base):
        # the marker goes first: with it and without its directory the volume would pass for set up
        remove_tree(dirs.marker(uid, name if plugin == escape(EMPTY_DIR) else f"wrapped_{name}"))
        if plugin in OWNED:
            remove_tree(f"{base}/{name}")
        else:
            _remove_directory(f"{base}/{name}")
    _remove_directory(base)


def remove_pod(dirs: Dirs, uid: str) -> None:
    """Free the volumes, then remove the pod's whole directory. Raises HostError."""
    free(dirs, uid)
    remove_tree(dirs.pod(uid))


def known_pods(dirs: Dirs) -> list[str]:
    """The UIDs that have a directory."""
    return _names(dirs.pods)


def _names(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise FileError.of("list", directory, error) from error


def _remove_directory(path: str) -> None:
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise FileError.of("remove directory", path, error) from error
