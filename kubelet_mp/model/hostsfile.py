"""Text of a pod's /etc/hosts (Kubernetes 1.37 pkg/kubelet/kubelet_pods.go)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kubelet_mp.model import podspec
from kubelet_mp.model.hostname import Hostname
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.podspec import Pod

_MANAGED = """\
# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""
_HOST_NETWORK = "# Kubernetes-managed hosts file (host network).\n"


def hosts_text(pod: Pod, node: NodeView, hostname: Hostname, pod_ips: Sequence[str]) -> str:
    """The whole file: the node's own for a pod on the host network, else one with the pod's addresses."""
    if podspec.host_network(pod):
        head = _HOST_NETWORK + node.hosts_file
    else:
        head = _MANAGED + "".join(_entry(ip, hostname) for ip in pod_ips)
    return head + _aliases(podspec.spec(pod).get("hostAliases") or [])


def _entry(ip: str, hostname: Hostname) -> str:
    names = [hostname.fqdn, hostname.name] if hostname.domain else [hostname.name]
    return "\t".join([ip, *names]) + "\n"


def _aliases(aliases: Iterable[Mapping[str, Any]]) -> str:
    lines = ["\t".join([alias["ip"], *(alias.get("hostnames") or [])]) + "\n" for alias in aliases]
    return "\n# Entries added by HostAliases.\n" + "".join(lines) if lines else ""
