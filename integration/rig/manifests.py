"""Pod manifests for tests, small and complete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from integration.rig import images

PATIENT = "trap 'exit 0' TERM; echo {word}; while :; do sleep 1; done"


def container(name: str = "c", *command: str, **more: Any) -> dict[str, Any]:
    """A busybox container; without a command it sleeps."""
    return {
        "name": name,
        "image": images.BUSYBOX,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command) or ["sleep", "3600"],
        **more,
    }


def shell(name: str, script: str, **more: Any) -> dict[str, Any]:
    """A busybox container that runs a shell script."""
    return container(name, "sh", "-c", script, **more)


def says(word: str, **more: Any) -> dict[str, Any]:
    """A container that prints a word and ends at once on SIGTERM."""
    return shell("c", PATIENT.format(word=word), **more)


def pod(name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A pod in the namespace default that is stopped within a second unless `spec` says otherwise."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": list(containers) or [container()], **spec},
    }


def host_folder(path: Path, name: str = "out") -> dict[str, Any]:
    """A hostPath volume."""
    return {"name": name, "hostPath": {"path": str(path)}}


def mounted(name: str = "out", path: str = "/out") -> dict[str, str]:
    return {"name": name, "mountPath": path}
