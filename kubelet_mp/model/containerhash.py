"""The hash by which a changed container definition is noticed (io.kubernetes.container.hash)."""

from __future__ import annotations

from kubelet_mp.model.gotext import go_json
from kubelet_mp.model.podspec import ContainerSpec

_OFFSET = 0x811C9DC5
_PRIME = 0x01000193


def fnv32a(data: bytes) -> int:
    """FNV-1a, 32 bits."""
    value = _OFFSET
    for byte in data:
        value = (value ^ byte) * _PRIME & 0xFFFFFFFF
    return value


def container_hash(container: ContainerSpec) -> str:
    """Lower-case hex without padding, of the container's image and name alone.

    The hashed text is Go's dump of the bytes of `{"image":…,"name":…}`.
    """
    picked = {"image": container.get("image") or "", "name": container.get("name") or ""}
    numbers = " ".join(str(byte) for byte in go_json(picked).encode())
    return f"{fnv32a(f'([]uint8)[{numbers}]'.encode()):x}"
