"""Keeping secrets out of log lines: by the name of the field, and by the look of the text."""

from __future__ import annotations

import re
from typing import Any

MASKED = "--- masked ---"
_NAME = re.compile(
    r"(?:^|[_\-. ])(?:token|passwd|password|passphrase|authorization|credential|credentials|cookie|bearer"
    r"|privatekey|private_key|keydata|key_data|client_secret)$",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{6,}", re.IGNORECASE)
_USERINFO = re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")
_PEM = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)


def mask(value: Any, name: str = "") -> Any:
    """The value with whatever looks secret replaced by MASKED; mappings and lists are walked.

    name: the field that the value belongs to; a field called e.g. `token` or `api_password` is masked whole.
    """
    if name and value and _NAME.search(name):
        return MASKED
    if isinstance(value, dict):
        return {key: mask(item, str(key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [mask(item) for item in value]
    return mask_text(value) if isinstance(value, str) else value


def mask_text(text: str) -> str:
    """The text without bearer and basic credentials, passwords in URLs, and private keys."""
    text = _SCHEME.sub(lambda match: f"{match[1]} {MASKED}", text)
    text = _USERINFO.sub(MASKED, text)
    return _PEM.sub(MASKED, text)
