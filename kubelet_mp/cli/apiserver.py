"""What `kubelet-mp check` asks about the API server: can the kubeconfig be used, and does the server answer?"""

from __future__ import annotations

from dataclasses import replace

from kubelet_mp.cli.checks import ApiFacts
from kubelet_mp.config import Settings, kubeconfig
from kubelet_mp.errors import ApiError, ConfigError, KubeletError
from kubelet_mp.host import pki
from kubelet_mp.host.kubeapi import KubeApi, Kubeconfig
from kubelet_mp.host.kubeapi.credentials import read_entry

_TIMEOUT = 5.0  # s


def ask(settings: Settings, now: float, timeout: float = _TIMEOUT) -> ApiFacts | None:
    """What can be told at `now` (seconds since the epoch); None where the agent is to be standalone."""
    if settings.standalone:
        return None
    try:
        kubeconfig.check_either(settings.kubeconfig, settings.bootstrap_kubeconfig)
    except ConfigError as error:
        return ApiFacts(settings.kubeconfig, problem=error.message, fix=error.fix or "")
    found = _certificate(settings.kubeconfig, now)
    if found.unusable and settings.bootstrap_kubeconfig:
        found = ApiFacts(settings.bootstrap_kubeconfig, bootstrap_because=found.unusable)
    return found if found.unusable else _version(found, timeout)


def _certificate(path: str, now: float) -> ApiFacts:
    """The client certificate of a kubeconfig, if it has one, and whether it can be used."""
    found = ApiFacts(path)
    try:
        pem = read_entry(path).identity()
        if not pem:
            return found
        certificate = pki.inspect(pem, path)
    except KubeletError as error:
        return replace(found, unusable=error.message)
    unusable = "" if certificate.matches else "the private key is not that of the client certificate"
    if now >= certificate.not_after:
        unusable = "the client certificate has expired"
    return replace(found, unusable=unusable, user=certificate.name, not_after=certificate.not_after)


def _version(found: ApiFacts, timeout: float) -> ApiFacts:
    """What the server says of itself to that user."""
    api: KubeApi | None = None
    try:
        credentials = Kubeconfig(found.kubeconfig)
        server = credentials.current().server
        api = KubeApi(credentials, timeout=timeout)
        version = str(api.get("/version").get("gitVersion", "unknown"))
    except ApiError as error:
        return replace(found, problem=error.message, fix=error.fix or "see whether the API server runs")
    finally:
        if api is not None:
            api.close()
    return replace(found, server=server, version=version)
