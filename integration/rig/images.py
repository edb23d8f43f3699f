"""Container images made from static programs of Debian, as OCI archives: no image registry is needed."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from integration.rig import cache, debs
from integration.rig.console import run

BUSYBOX = "docker.io/library/busybox:latest"
PAUSE = "registry.k8s.io/pause:3.10"

_OCI = "application/vnd.oci.image"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_PASSWD = b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
_GROUP = b"root:x:0:\nnogroup:x:65534:\n"


class Tree:
    """The files of an image, in the order in which they go into its one layer."""

    def __init__(self) -> None:
        self._out = io.BytesIO()
        self._tar = tarfile.TarFile(fileobj=self._out, mode="w")

    def folder(self, name: str, mode: int = 0o755) -> None:
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        self._tar.addfile(entry)

    def file(self, name: str, data: bytes, mode: int = 0o644) -> None:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = len(data), mode
        self._tar.addfile(entry, io.BytesIO(data))

    def link(self, name: str, target: str) -> None:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = tarfile.SYMTYPE, target
        self._tar.addfile(entry)

    def layer(self) -> bytes:
        """The layer as an uncompressed tar archive; nothing can be added afterwards."""
        self._tar.close()
        return self._out.getvalue()


def busybox(program: bytes, applets: list[str]) -> Tree:
    """A root file system with one static busybox and a link for each of its commands."""
    tree = Tree()
    for name in ("bin", "etc", "root", "home", "var"):
        tree.folder(name)
    tree.folder("tmp", 0o1777)
    tree.file("etc/passwd", _PASSWD)
    tree.file("etc/group", _GROUP)
    tree.file("bin/busybox", program, 0o755)
    for applet in applets:
        if applet != "busybox":
            tree.link(f"bin/{applet}", "busybox")
    return tree


def pause(program: bytes) -> Tree:
    """A file system with one program that waits for ever."""
    tree = Tree()
    tree.file("pause", program, 0o755)
    return tree


def archive(name: str, tree: Tree, config: Mapping[str, Any]) -> bytes:
    """Return an OCI archive with one image.

    `name` is the full reference with registry and tag, `config` the image's run configuration
    (`Env`, `Cmd`, `Entrypoint`, `User`). Format: OCI image layout 1.0.0.
    """
    blobs: dict[str, bytes] = {}

    def add(media: str, data: bytes, **more: Any) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": f"{_OCI}.{media}", "digest": f"sha256:{digest}", "size": len(data), **more}

    layer = add("layer.v1.tar", tree.layer())
    image = {
        "architecture": _ARCHITECTURES.get(os.uname().machine, os.uname().machine),
        "os": "linux",
        "config": dict(config),
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.manifest.v1+json",
        "config": add("config.v1+json", _json(image)),
        "layers": [layer],
    }
    names = {
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": name.rsplit(":", 1)[1],
    }
    index = {"schemaVersion": 2, "manifests": [add("manifest.v1+json", _json(manifest), annotations=names)]}
    layout = Tree()
    layout.file("oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
    layout.file("index.json", _json(index))
    for path, data in blobs.items():
        layout.file(path, data)
    return layout.layer()


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode()


def ensure() -> Path:
    """Return a folder with `busybox.tar` and `pause.tar`."""
    programs = debs.ensure("images", debs.IMAGES)
    digest = cache.key(Path(__file__), programs.name)
    return cache.ensure("images", digest, lambda target: _write(target, programs))


def _write(target: Path, programs: Path) -> None:
    box = programs / "bin" / "busybox"
    applets = run([box, "--list"], timeout=10).split()
    tree = busybox(box.read_bytes(), applets)
    shell = {"Env": ["PATH=/bin"], "Cmd": ["sh"]}
    (target / "busybox.tar").write_bytes(archive(BUSYBOX, tree, shell))
    waiter = pause((programs / "usr" / "bin" / "catatonit").read_bytes())
    (target / "pause.tar").write_bytes(archive(PAUSE, waiter, {"Entrypoint": ["/pause", "-P"]}))
