"""PEM texts that others wrote, made uniform. Pure."""

from __future__ import annotations

import base64
import binascii
import re
import ssl
from collections.abc import Iterator

_BLOCK = re.compile(r"^-----BEGIN ([A-Z0-9 ]+)-----[ \t\r]*\n(.*?)^-----END \1-----[ \t\r]*$", re.DOTALL | re.MULTILINE)
_HEADERS = re.compile(r"\A(?:[^\n:]+:[^\n]*\n)+\s*\n")


def blocks(text: str) -> Iterator[bytes]:
    """The content of each block in order; what is no block, and a block that is not base64, is passed over."""
    for found in _BLOCK.finditer(text):
        body = "".join(_HEADERS.sub("", found[2].replace("\r", "")).split())
        try:
            yield base64.b64decode(body, validate=True)
        except binascii.Error:
            continue


def certificate(der: bytes) -> str:
    """One block of a certificate."""
    return ssl.DER_cert_to_PEM_cert(der)


def clean_chain(text: str) -> str:
    """The certificates in their order, without anything between and in front of them."""
    return "".join(map(certificate, blocks(text)))
