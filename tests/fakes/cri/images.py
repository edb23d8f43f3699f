"""The image half of the fake runtime."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import grpc
from cri_api.v1 import api_pb2 as pb


class Refused(Exception):
    """An RPC is answered with this gRPC code and text."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = grpc.StatusCode[code], message


@dataclass(frozen=True)
class ImageSpec:
    """An image in the store or in the registry; `uid`/`username` from its config, size in bytes."""

    name: str
    size: int = 4096
    uid: int | None = 0
    username: str = ""
    pinned: bool = False


def full_name(name: str) -> str:
    """The name with registry, library and tag written out."""
    host = name.split("/")[0]
    if "/" not in name:
        name = f"docker.io/library/{name}"
    elif "." not in host and ":" not in host and host != "localhost":
        name = f"docker.io/{name}"
    return name if "@" in name or ":" in name.rsplit("/", 1)[1] else f"{name}:latest"


@dataclass
class Images:
    """`registry`: what PullImage can fetch (by full name); `images`: what is in the store, by id."""

    bare_image_ids: bool = False
    registry: dict[str, ImageSpec] = field(default_factory=dict)
    images: dict[str, pb.Image] = field(default_factory=dict)
    image_bytes: int = 1 << 20
    image_fs: str = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs"

    def add_image(self, name: str, **details: Any) -> pb.Image:
        """Put an image into the store; `details`: the fields of ImageSpec."""
        return self._store(ImageSpec(full_name(name), **details))

    def add_to_registry(self, name: str, **details: Any) -> None:
        self.registry[full_name(name)] = ImageSpec(full_name(name), **details)

    def find_image(self, name: str) -> pb.Image | None:
        if name in self.images:
            return self.images[name]
        wanted = full_name(name)
        return next((i for i in self.images.values() if wanted in (*i.repo_tags, *i.repo_digests)), None)

    def ImageStatus(self, request: pb.ImageStatusRequest) -> pb.ImageStatusResponse:
        image = self.find_image(request.image.image)
        return pb.ImageStatusResponse(image=image) if image else pb.ImageStatusResponse()

    def ListImages(self, request: pb.ListImagesRequest) -> pb.ListImagesResponse:
        return pb.ListImagesResponse(images=list(self.images.values()))

    def PullImage(self, request: pb.PullImageRequest) -> pb.PullImageResponse:
        name = full_name(request.image.image)
        spec = self.registry.get(name)
        if spec is None:
            raise Refused("NOT_FOUND", f'failed to pull and unpack image "{name}": '
                                       f'failed to resolve reference "{name}": {name}: not found')
        return pb.PullImageResponse(image_ref=self._store(spec).id)

    def RemoveImage(self, request: pb.RemoveImageRequest) -> pb.RemoveImageResponse:
        image = self.find_image(request.image.image)
        if image is not None:
            del self.images[image.id]
        return pb.RemoveImageResponse()

    def ImageFsInfo(self, request: pb.ImageFsInfoRequest) -> pb.ImageFsInfoResponse:
        usage = pb.FilesystemUsage(fs_id=pb.FilesystemIdentifier(mountpoint=self.image_fs),
                                   used_bytes=pb.UInt64Value(value=self.image_bytes),
                                   inodes_used=pb.UInt64Value(value=100))
        return pb.ImageFsInfoResponse(image_filesystems=[usage], container_filesystems=[usage])

    def _store(self, spec: ImageSpec) -> pb.Image:
        digest = hashlib.sha256(spec.name.encode()).hexdigest()
        repository = spec.name.split("@")[0].rsplit(":", 1)[0]
        image = pb.Image(id=digest if self.bare_image_ids else f"sha256:{digest}",
                         repo_tags=[] if "@" in spec.name else [spec.name],
                         repo_digests=[spec.name if "@" in spec.name else f"{repository}@sha256:{digest}"],
                         size=spec.size, username=spec.username, pinned=spec.pinned)
        if spec.uid is not None:
            image.uid.value = spec.uid
        self.images[image.id] = image
        return image
