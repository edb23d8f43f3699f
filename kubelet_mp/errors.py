"""The tree of errors. Every error says what failed, on which object, and (as `fix`) what to do about it.

What belongs here: exception classes that more than one package raises or catches.
What may not live here: formatting for a terminal, logging, exit codes.
"""

from __future__ import annotations

from collections.abc import Iterable


class KubeletError(Exception):
    """Base of all errors of our own.

    message: what failed and on which object, one sentence.
    fix: what the operator can do, or None when there is nothing to do but wait or report it.
    """

    def __init__(self, message: str, fix: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message} (fix: {self.fix})" if self.fix else self.message


class BootError(KubeletError):
    """Starting is impossible and trying again changes nothing: report it and exit, never loop."""


class ConfigError(BootError):
    """The configuration (flags, files, or what the host allows) is refused.

    problems: one text per problem when several were found together; never empty.
    """

    def __init__(self, message: str, fix: str | None = None, problems: Iterable[str] = ()) -> None:
        super().__init__(message, fix)
        self.problems: tuple[str, ...] = tuple(problems) or (message,)

    @classmethod
    def aggregate(cls, head: str, problems: Iterable[str]) -> ConfigError:
        """One error from many: `head`, then one problem a line."""
        lines = tuple(problems)
        return cls("\n  ".join([f"{head}:", *lines]), problems=lines)


class StartError(BootError):
    """Something needed at start is missing or taken: the runtime, a port, a directory."""


class LockedError(StartError):
    """Another instance holds the lock of this root directory or the lock file."""


class ManifestError(KubeletError):
    """A pod manifest cannot be read, decoded, or is invalid."""


class RuntimeCallError(KubeletError):
    """A CRI call failed. method: the CRI method; code: the gRPC code's name, e.g. UNAVAILABLE.

    detail: the runtime's own words; the message is the same with the code before it, as upstream writes it.
    """

    def __init__(
        self, message: str, fix: str | None = None, *, method: str = "", code: str = "", detail: str = ""
    ) -> None:
        super().__init__(message, fix)
        self.method = method
        self.code = code
        self.detail = detail or message


class RuntimeUnavailable(RuntimeCallError):
    """The runtime's socket is missing, refuses, or the connection broke."""


class RuntimeTimeout(RuntimeCallError):
    """The runtime did not answer within the deadline."""


class RuntimeNotFound(RuntimeCallError):
    """The runtime does not know the sandbox, container or image."""


class RuntimeUnimplemented(RuntimeCallError):
    """The runtime lacks this call."""


class HostError(KubeletError):
    """A file, mount, cgroup, or kernel interface of the host refused."""


class CgroupError(HostError):
    """A cgroup could not be made, written, read or removed."""


class MountError(HostError):
    """A mount or unmount failed."""


class ApiError(KubeletError):
    """The API server refused or could not be reached, or there are no credentials for it yet.

    status: the HTTP status, 0 when there was no answer. reason: the Status object's, e.g. NotFound, "" without.
    retry_after: seconds that the server asked to wait, or None.
    """

    def __init__(
        self, message: str, fix: str | None = None, *, status: int = 0, reason: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, fix)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after

    @property
    def not_found(self) -> bool:
        return self.status == 404

    @property
    def conflict(self) -> bool:
        """The object changed meanwhile, or a precondition does not hold."""
        return self.status == 409 and self.reason != "AlreadyExists"

    @property
    def already_exists(self) -> bool:
        return self.status == 409 and self.reason == "AlreadyExists"

    @property
    def gone(self) -> bool:
        """The resourceVersion asked for is too old: list again."""
        return self.status == 410

    @property
    def forbidden(self) -> bool:
        return self.status == 403


class WireError(KubeletError):
    """A message between rooms could not be encoded, decoded or delivered."""


class DeadlineError(KubeletError):
    """A wait ended by its (monotonic) deadline."""


class Unsupported(KubeletError):
    """Asked for something that is not implemented; it is refused rather than pretended."""


class ContainerConfigError(KubeletError):
    """A container cannot be configured as its pod asks: its waiting reason is CreateContainerConfigError."""
