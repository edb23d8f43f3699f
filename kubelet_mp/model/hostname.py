"""Host name and domain of a pod (Kubernetes 1.37 pkg/kubelet/kubelet_pods.go)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kubelet_mp.errors import ContainerConfigError
from kubelet_mp.model import podspec
from kubelet_mp.model.podspec import Pod

MAX_LABEL = 63
MAX_FQDN = 64
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Hostname:
    """name: the short name. domain: "" or SUBDOMAIN.NAMESPACE.svc.CLUSTERDOMAIN. kernel: as in uname."""

    name: str
    domain: str = ""
    kernel: str = ""

    @property
    def fqdn(self) -> str:
        return f"{self.name}.{self.domain}" if self.domain else self.name


def pod_hostname(pod: Pod, cluster_domain: str) -> Hostname:
    """The pod's names; raises ContainerConfigError for one that is no DNS label or too long."""
    spec = podspec.spec(pod)
    if override := spec.get("hostnameOverride"):
        return Hostname(override, "", override)
    given = spec.get("hostname") or ""
    name = _label(given, "hostname", pod) if given else truncate(podspec.name(pod))
    if not name:
        raise ContainerConfigError(
            f"hostname of pod {podspec.describe(pod)} is empty once cut to {MAX_LABEL} characters"
        )
    hostname = Hostname(name, _domain(pod, cluster_domain), name)
    return _fully_qualified(hostname) if spec.get("setHostnameAsFQDN") else hostname


def truncate(name: str) -> str:
    """At most 63 characters, without a trailing `-`, `.` or `_`."""
    return name if len(name) <= MAX_LABEL else name[:MAX_LABEL].rstrip("-._")


def _domain(pod: Pod, cluster_domain: str) -> str:
    subdomain = podspec.spec(pod).get("subdomain") or ""
    if not subdomain:
        return ""
    return f"{_label(subdomain, 'subdomain', pod)}.{podspec.namespace(pod)}.svc.{cluster_domain}"


def _label(text: str, field: str, pod: Pod) -> str:
    if len(text) > MAX_LABEL or not _LABEL.fullmatch(text):
        raise ContainerConfigError(
            f'pod {field} "{text}" of {podspec.describe(pod)} is not a valid DNS label',
            f"use at most {MAX_LABEL} of a-z, 0-9 and -",
        )
    return text


def _fully_qualified(hostname: Hostname) -> Hostname:
    fqdn = hostname.fqdn
    if len(fqdn) > MAX_FQDN:
        raise ContainerConfigError(
            f"failed to construct FQDN from pod hostname and cluster domain, FQDN {fqdn} is too long "
            f"({MAX_FQDN} characters is the max, {len(fqdn)} characters requested)"
        )
    return Hostname(hostname.name, hostname.domain, fqdn)
