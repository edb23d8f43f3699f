"""Keys, certificate requests and certificates in files, as a kubelet keeps them in --cert-dir.

Source: Kubernetes 1.37 k8s.io/client-go/util/certificate (FileStore).
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

from kubelet_mp.errors import HostError
from kubelet_mp.host import files
from kubelet_mp.model import clock

_TIMEOUT = 60.0  # s; a fraction of one on an idle machine
_PROGRAM = os.path.join(os.path.dirname(__file__), "pkitool.py")
_LIMIT = files.MIB
_UNREADABLE = 3  # the program's exit code for a text that is no certificate or key


class PemError(HostError):
    """A text is not the certificate or private key that it should be."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a certificate says. Times in seconds since the epoch; `names`: DNS names and IP addresses it is for.

    public: its key in DER form (SubjectPublicKeyInfo); matches: whether the private key beside it is its own.
    """

    name: str
    organizations: tuple[str, ...]
    names: tuple[str, ...]
    not_before: float
    not_after: float
    public: bytes
    matches: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A certificate request as PEM and its private key; `public`: the key in DER form."""

    key: str = field(repr=False)
    request: str
    public: bytes


def make_request(name: str, organizations: tuple[str, ...], names: tuple[str, ...] = (), key: str = "") -> Request:
    """A request with subject CN `name`, O `organizations`, for `names`; with a new P-256 key if `key` is "".

    Raises PemError for a `key` that is no private key, HostError when there is no telling.
    """
    given = {"key": key, "name": name, "organizations": organizations, "names": names}
    made = _run("request", given, "make a certificate request")
    return Request(made["key"], made["request"], base64.b64decode(made["public"]))


def make_pod_key(kind: str) -> tuple[str, str]:
    """A new key of a PodCertificateRequest's keyType as PKCS#8 PEM, and an empty request signed by it (base64, DER).

    Raises PemError for a kind that there is none of, HostError when none can be made.
    """
    made = _run("podkey", {"kind": kind}, "make a key for a pod")
    return made["key"], made["request"]


def inspect(pem: bytes, what: str) -> Certificate:
    """What the first certificate of a PEM text says. `what` names it in errors.

    Raises PemError if there is none, HostError when there is no telling.
    """
    found = _run("inspect", {"pem": pem.decode("ascii", "replace")}, f"read the certificate in {what}")
    return Certificate(
        found["name"], tuple(found["organizations"]), tuple(found["names"]), found["not_before"],
        found["not_after"], base64.b64decode(found["public"]), found["matches"])


def _run(command: str, given: dict[str, Any], what: str) -> dict[str, Any]:
    try:
        done = subprocess.run(
            [sys.executable, "-P", _PROGRAM, command], input=json.dumps(given), capture_output=True, text=True,
            timeout=_TIMEOUT, check=True)
        return json.loads(done.stdout)
    except (subprocess.SubprocessError, OSError, ValueError) as error:
        detail = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1:]
        if getattr(error, "returncode", 0) == _UNREADABLE:
            raise PemError(f"cannot {what}: {' '.join(detail)}", "put a PEM text there, or remove it") from error
        raise HostError(f"cannot {what}: {' '.join(detail)}", "see whether memory or processes are short") from error


class PemStore:
    """The certificates of one purpose in a directory: PREFIX-<time>.pem, and a link PREFIX-current.pem to the newest.

    Each file holds the certificate, its chain and its private key.
    """

    def __init__(self, directory: str, prefix: str) -> None:
        self._directory, self._prefix = os.path.abspath(directory), prefix
        self.current = os.path.join(self._directory, f"{prefix}-current.pem")

    def save(self, chain: bytes, key: str, now: float) -> str:
        """Write a new file and make it the current one, each at once or not at all. Returns its path.

        now: seconds since the epoch. Raises FileError.
        """
        files.make_dirs(self._directory, 0o755)
        second = int(now)
        while os.path.lexists(path := self._path(second)):  # never over another one
            second += 1
        files.write_atomic(path, chain.rstrip(b"\n") + b"\n" + key.encode(), 0o600)
        self._link(path)
        return path

    def _path(self, second: int) -> str:
        stamp = clock.rfc3339(second * clock.NS)[:-1].replace("T", "-").replace(":", "-")
        return os.path.join(self._directory, f"{self._prefix}-{stamp}.pem")

    def _link(self, path: str) -> None:
        updated = os.path.join(self._directory, f"{self._prefix}-updated.pem")
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(updated)
            os.symlink(os.path.basename(path), updated)
            os.replace(updated, self.current)
            files.flush_directory(self._directory)
        except OSError as error:
            raise files.FileError.of("replace", self.current, error) from error

    def read(self) -> bytes:
        """The current file; b"" if there is none. Raises FileError."""
        try:
            return files.read_limited(self.current, _LIMIT)
        except files.MissingFile:
            return b""
