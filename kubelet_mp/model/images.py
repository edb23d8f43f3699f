"""Image names: the reference grammar, the default tag and pull policy (github.com/distribution/reference)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kubelet_mp.errors import KubeletError

DEFAULT_DOMAIN = "docker.io"
LEGACY_DOMAIN = "index.docker.io"
DEFAULT_TAG = "latest"
MAX_NAME = 255

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[(?:[a-fA-F0-9:]+)\])"
_NAME = rf"(?:{_HOST}(?::[0-9]+)?/)?{_PART}(?:/{_PART})*"
_TAG = r"[\w][\w.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE = re.compile(rf"({_NAME})(?::({_TAG}))?(?:@({_DIGEST}))?", re.ASCII)
_IDENTIFIER = re.compile(r"[a-f0-9]{64}")
_DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}


class InvalidImageName(KubeletError):
    """An image name cannot be parsed; the container waits with the reason InvalidImageName."""


@dataclass(frozen=True, slots=True)
class Reference:
    """name: domain and path, normalised. tag and digest: "" when absent."""

    name: str
    tag: str = ""
    digest: str = ""


def parse(image: str) -> Reference:
    """The normalised reference of an image name; raises ValueError with the reason as its text."""
    if _IDENTIFIER.fullmatch(image):
        raise ValueError(f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings")
    domain, rest = _split_domain(image)
    path = rest.partition(":")[0]
    if path != path.lower():
        raise ValueError(f"invalid reference format: repository name ({path}) must be lowercase")
    match = _REFERENCE.fullmatch(f"{domain}/{rest}")
    if not match or not rest:
        raise ValueError("invalid reference format")
    name, tag, digest = match.groups()
    if len(name.partition("/")[2]) > MAX_NAME:
        raise ValueError(f"repository name must not be more than {MAX_NAME} characters")
    if digest:
        _check_digest(digest)
    return Reference(name, tag or "", digest or "")


def _split_domain(image: str) -> tuple[str, str]:
    """The registry and the rest; a first part that cannot be a host belongs to the rest."""
    first, slash, rest = image.partition("/")
    is_host = slash and (any(c in first for c in ".:") or first == "localhost" or first.lower() != first)
    domain, path = (first, rest) if is_host else (DEFAULT_DOMAIN, image)
    if domain == LEGACY_DOMAIN:
        domain = DEFAULT_DOMAIN
    if domain == DEFAULT_DOMAIN and "/" not in path and path:
        path = f"library/{path}"
    return domain, path


def _check_digest(digest: str) -> None:
    algorithm, _, hexadecimal = digest.partition(":")
    length = _DIGEST_LENGTHS.get(algorithm)
    if length is None:
        raise ValueError("unsupported digest algorithm")
    if len(hexadecimal) != length:
        raise ValueError("invalid checksum digest length")
    if hexadecimal != hexadecimal.lower():
        raise ValueError("invalid checksum digest format")


def with_default_tag(image: str) -> str:
    """The name to ask the runtime for: `:latest` added where there is neither tag nor digest, else as it is.

    Raises InvalidImageName.
    """
    try:
        reference = parse(image)
    except ValueError as error:
        raise InvalidImageName(
            f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": {error}'
        ) from error
    return image if reference.tag or reference.digest else f"{image}:{DEFAULT_TAG}"


def default_pull_policy(image: str) -> str:
    """Always for the tag `latest` or none, else IfNotPresent; IfNotPresent for what cannot be parsed."""
    try:
        reference = parse(image)
    except ValueError:
        return "IfNotPresent"
    latest = reference.tag == DEFAULT_TAG or not (reference.tag or reference.digest)
    return "Always" if latest else "IfNotPresent"
