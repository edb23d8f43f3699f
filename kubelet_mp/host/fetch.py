"""Gets a document of limited size by HTTP, untouched by what the environment says of proxies and credentials."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

import requests
import urllib3

from kubelet_mp.errors import HostError
from kubelet_mp.model import clock

_CHUNK = 64 * 1024
_MAX_REDIRECTS = 10
_SYSTEM_ROOTS = (
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


class FetchError(HostError):
    """The document could not be had. status: the HTTP status, 0 when there was no answer."""

    def __init__(self, message: str, fix: str | None = None, *, status: int = 0) -> None:
        super().__init__(message, fix)
        self.status = status


def shown_url(url: str) -> str:
    """The URL without the user and password that it may carry."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


class Fetcher:
    """GETs one URL, over a kept connection. `timeout` in seconds for the whole; `limit` in bytes."""

    def __init__(self, url: str, headers: Mapping[str, str], *, timeout: float, limit: int) -> None:
        self._url, self._timeout, self._limit = url, timeout, limit
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.max_redirects = _MAX_REDIRECTS
        self._session.verify = next(filter(os.path.exists, _SYSTEM_ROOTS), True)
        self._session.headers.update({"Accept-Encoding": "identity", **headers})

    def get(self) -> bytes:
        """The body of a 200 answer. Raises FetchError."""
        deadline = clock.monotonic() + self._timeout
        try:
            with self._session.get(self._url, timeout=self._timeout, stream=True) as answer:
                if answer.status_code != requests.codes.ok:
                    raise self._failed(f"{answer.status_code} {answer.reason}", answer.status_code)
                return self._body(answer, deadline)
        except (requests.Timeout, urllib3.exceptions.TimeoutError) as error:
            raise self._failed(f"no answer within {self._timeout:g} s") from error
        except (requests.RequestException, urllib3.exceptions.HTTPError, ValueError) as error:
            raise self._failed(_reason(error)) from error

    def close(self) -> None:
        self._session.close()

    def _body(self, answer: requests.Response, deadline: float) -> bytes:
        body = bytearray()
        while chunk := answer.raw.read1(_CHUNK):  # read() would wait for a whole chunk of a dripping body
            body += chunk
            if len(body) > self._limit:
                raise self._failed(f"the answer is larger than {self._limit} bytes")
            if clock.monotonic() > deadline:
                raise self._failed(f"the answer did not end within {self._timeout:g} s")
        return bytes(body)

    def _failed(self, why: str, status: int = 0) -> FetchError:
        return FetchError(f"GET {shown_url(self._url)}: {why}", status=status)


def _reason(error: Exception) -> str:
    """The innermost reason, which says more in fewer words than the wrappings around it."""
    inner = error.args[0] if error.args else error
    inner = getattr(inner, "reason", inner)
    return str(inner).rpartition(": ")[2] or type(error).__name__
