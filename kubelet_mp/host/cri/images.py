"""The calls of CRI's image service."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from cri_api.v1 import api_pb2 as pb

from kubelet_mp.errors import RuntimeCallError
from kubelet_mp.host.cri import convert
from kubelet_mp.host.cri.channel import Channel
from kubelet_mp.model.runtime import FilesystemUse, Image


class ImageCalls:
    """The half of `Runtime` that may live at another endpoint."""

    def __init__(self, channel: Channel, timeout: float) -> None:
        self._images, self._image_timeout = channel, timeout

    def close(self) -> None:
        self._images.close()

    def _ask(self, name: str, operation: str, request: Any) -> Any:
        return self._images.call(name, operation, request, self._image_timeout)

    def image_status(self, image: str, annotations: Mapping[str, str] | None = None) -> Image | None:
        """The image of that name or id, None if it is not in the store."""
        spec = pb.ImageSpec(image=image, annotations=annotations)
        answer = self._ask("ImageStatus", "image_status", pb.ImageStatusRequest(image=spec))
        if not answer.HasField("image"):
            return None
        convert.require("ImageStatus", id=answer.image.id, size=answer.image.size)
        return convert.image(answer.image)

    def pull_image(
        self, image: str, *, annotations: Mapping[str, str] | None = None,
        auth: Mapping[str, str] | None = None, sandbox_config: Mapping[str, Any] | None = None,
        cancel: threading.Event | None = None,
    ) -> str:
        """Fetch an image; its reference. No deadline: it ends when `cancel` is set.

        auth: AuthConfig as a dict. Raises RuntimeCallError, code CANCELLED after `cancel`; where the runtime
        gave no better code than Unknown, its words are the whole message.
        """
        request = pb.PullImageRequest(
            image=pb.ImageSpec(image=image, annotations=annotations),
            auth=convert.message(pb.AuthConfig, auth, "PullImage") if auth else None,
            sandbox_config=convert.message(pb.PodSandboxConfig, sandbox_config, "PullImage"))
        try:
            answer = self._images.call("PullImage", "pull_image", request, None, cancel)
        except RuntimeCallError as error:
            if error.code == "UNKNOWN":
                raise RuntimeCallError(error.detail, error.fix, method="PullImage", code=error.code) from error
            raise
        convert.require("PullImage", image_ref=answer.image_ref)
        return str(answer.image_ref)

    def list_images(self) -> list[Image]:
        answer = self._ask("ListImages", "list_images", pb.ListImagesRequest())
        return [convert.image(item) for item in answer.images]

    def remove_image(self, image_id: str) -> None:
        self._ask("RemoveImage", "remove_image", pb.RemoveImageRequest(image=pb.ImageSpec(image=image_id)))

    def image_fs_info(self) -> tuple[tuple[FilesystemUse, ...], tuple[FilesystemUse, ...]]:
        """Filesystems of the images and of the containers' writable layers."""
        answer = self._ask("ImageFsInfo", "image_fs_info", pb.ImageFsInfoRequest())
        return (tuple(convert.filesystem(item) for item in answer.image_filesystems),
                tuple(convert.filesystem(item) for item in answer.container_filesystems))
