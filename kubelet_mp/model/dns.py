"""resolv.conf of a pod (Kubernetes 1.37 pkg/kubelet/network/dns)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from kubelet_mp.model import podspec
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.podspec import Pod

MAX_SERVERS = 3
MAX_SEARCHES = 32
MAX_SEARCH_LIST = 2048
MAX_SEARCH = 255
CLUSTER_OPTIONS = ("ndots:5",)
CLUSTER_FIRST = "ClusterFirst"


class DNSWarning(NamedTuple):
    """A Warning event to emit on the pod."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class DNSResult:
    """What goes to the runtime as dns_config, and the Warning events that making it calls for."""

    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    warnings: tuple[DNSWarning, ...] = ()

    def as_config(self) -> dict[str, list[str]]:
        """DNSConfig with the field names of the CRI."""
        return {
            "servers": list(self.servers),
            "searches": list(self.searches),
            "options": list(self.options),
        }


def parse_resolv_conf(text: str) -> DNSResult:
    """A resolver file: all nameservers, the last search line (trailing dots cut, the root domain dropped),
    options of all lines with the last value of each."""
    servers: list[str] = []
    searches: list[str] = []
    options: list[str] = []
    for line in text.splitlines():
        keyword, *values = line.split() or [""]
        if keyword == "nameserver":
            servers += values[:1]
        elif keyword == "search":
            searches = [domain.removesuffix(".") for domain in values if domain != "."]
        elif keyword == "options":
            options += values
    return DNSResult(tuple(servers), tuple(searches), _merge_options(options))


def pod_dns(pod: Pod, node: NodeView) -> DNSResult:
    """The resolver of a pod by its dnsPolicy and dnsConfig, cut to what libc can take."""
    base = _by_policy(pod, node)
    return _fit(_with_config(base, podspec.spec(pod).get("dnsConfig") or {}))


def _by_policy(pod: Pod, node: NodeView) -> DNSResult:
    policy = podspec.spec(pod).get("dnsPolicy") or CLUSTER_FIRST
    if policy == "None":
        return DNSResult()
    if policy == "Default" or (policy == CLUSTER_FIRST and podspec.host_network(pod)):
        return _host(node)
    if node.cluster_dns:
        return _cluster(pod, node)
    host = _host(node)
    return DNSResult(host.servers, host.searches, host.options, (_no_cluster_dns(pod),))


def _cluster(pod: Pod, node: NodeView) -> DNSResult:
    searches = parse_resolv_conf(node.resolv_conf or "").searches
    domain = node.cluster_domain
    if domain:
        own = (f"{podspec.namespace(pod)}.svc.{domain}", f"svc.{domain}", domain)
        searches = _unique((*own, *searches))
    return DNSResult(tuple(node.cluster_dns), searches, CLUSTER_OPTIONS)


def _host(node: NodeView) -> DNSResult:
    """The node's own resolver; without one, a loopback address for each address of the node."""
    if node.resolv_conf is not None:
        return parse_resolv_conf(node.resolv_conf)
    loopback = tuple("::1" if ":" in ip else "127.0.0.1" for ip in node.node_ips) or ("127.0.0.1",)
    return DNSResult(loopback, (".",))


def _no_cluster_dns(pod: Pod) -> DNSWarning:
    return DNSWarning(
        "MissingClusterDNS",
        f'pod: "{podspec.describe(pod)}". kubelet does not have ClusterDNS IP configured and cannot create '
        'Pod using "ClusterFirst" policy. Falling back to "Default" policy.',
    )


def _with_config(base: DNSResult, config: Mapping[str, Any]) -> DNSResult:
    """The pod's dnsConfig added; an option of the same name replaces the base's."""
    added = [_option(entry) for entry in config.get("options") or []]
    return DNSResult(
        _unique((*base.servers, *(config.get("nameservers") or []))),
        _unique((*base.searches, *(config.get("searches") or []))),
        _merge_options([*base.options, *added]),
        base.warnings,
    )


def _option(entry: Mapping[str, Any]) -> str:
    value = entry.get("value")
    return f"{entry['name']}:{value}" if value else str(entry["name"])


def _merge_options(options: Iterable[str]) -> tuple[str, ...]:
    """One entry a name, the last given, in the order in which names first appear."""
    return tuple({option.partition(":")[0]: option for option in options}.values())


def _unique(entries: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entries))


def _fit(result: DNSResult) -> DNSResult:
    servers, searches = result.servers[:MAX_SERVERS], fitting_searches(result.searches)
    warnings = list(result.warnings)
    if servers != result.servers:
        warnings.append(_trimmed("Nameserver limits were exceeded, some nameservers", "nameserver", servers))
    if searches != result.searches:
        warnings.append(_trimmed("Search Line limits were exceeded, some search paths", "search", searches))
    return DNSResult(servers, searches, result.options, tuple(warnings))


def fitting_searches(searches: tuple[str, ...]) -> tuple[str, ...]:
    """At most 32 domains, none longer than 255 characters, 2048 characters in all with the spaces between."""
    kept = [domain for domain in searches[:MAX_SEARCHES] if len(domain) <= MAX_SEARCH]
    while len(" ".join(kept)) > MAX_SEARCH_LIST:
        kept.pop()
    return tuple(kept)


def _trimmed(what: str, line: str, kept: Iterable[str]) -> DNSWarning:
    text = f"{what} have been omitted, the applied {line} line is: {' '.join(kept)}"
    return DNSWarning("DNSConfigForming", text)


def check_limits(resolv_conf: str) -> list[str]:
    """What libc would cut from the node's resolver file (node event CheckLimitsForResolvConf)."""
    return [warning.message for warning in _fit(parse_resolv_conf(resolv_conf)).warnings]
