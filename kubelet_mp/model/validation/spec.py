"""Checks of the pod's spec as a whole."""

from __future__ import annotations

from typing import Any

from kubelet_mp.model.validation import names
from kubelet_mp.model.validation.containers import RESTART_POLICIES, PodFacts, check_containers
from kubelet_mp.model.validation.errors import Errors
from kubelet_mp.model.validation.metadata import check_labels
from kubelet_mp.model.validation.resources import check_overhead, check_pod_resources
from kubelet_mp.model.validation.security import check_pod_security
from kubelet_mp.model.validation.volumes import check_volumes

Json = dict[str, Any]

MAX_NAMESERVERS = 3
MAX_SEARCHES = 32
MAX_SEARCH_CHARS = 2048
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SUBDOMAINS = ("nodeName", "serviceAccountName", "priorityClassName", "runtimeClassName")
_LABELS = ("hostname", "subdomain")


def check_spec(spec: Json, errors: Errors) -> None:
    volumes = check_volumes(spec.get("volumes", []), errors)
    claims = frozenset(claim.get("name", "") for claim in spec.get("resourceClaims", []))
    facts = PodFacts(
        volumes, claims, spec["terminationGracePeriodSeconds"], spec.get("hostUsers", True),
        spec["restartPolicy"], spec.get("os", {}).get("name", ""),
    )
    check_containers(spec, facts, errors)
    if "resources" in spec:
        check_pod_resources(spec["resources"], "spec.resources", errors)
    check_overhead(spec.get("overhead", {}), "spec.overhead", errors)
    _host_network(spec, errors)
    errors.one_of("spec.restartPolicy", spec["restartPolicy"], RESTART_POLICIES)
    errors.one_of("spec.dnsPolicy", spec["dnsPolicy"], _DNS_POLICIES)
    check_labels(spec.get("nodeSelector", {}), "spec.nodeSelector", errors)
    check_pod_security(spec, errors)
    _dns_config(spec, errors)
    _names(spec, errors)
    _namespaces(spec, errors)
    _rest(spec, errors)


def _host_network(spec: Json, errors: Errors) -> None:
    if not spec.get("hostNetwork"):
        return
    for at, container in enumerate(spec.get("containers", [])):
        for number, port in enumerate(container.get("ports", [])):
            if port.get("hostPort", 0) != port.get("containerPort", 0):
                path = f"spec.containers[{at}].ports[{number}].hostPort"
                detail = "must match `containerPort` when `hostNetwork` is true"
                errors.invalid(path, port.get("hostPort", 0), detail)


def _dns_config(spec: Json, errors: Errors) -> None:
    config, path = spec.get("dnsConfig"), "spec.dnsConfig"
    if spec["dnsPolicy"] == "None":
        if config is None:
            errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        elif not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            errors.required(f"{path}.nameservers", detail)
    config = config or {}
    servers, searches = config.get("nameservers", []), config.get("searches", [])
    if len(servers) > MAX_NAMESERVERS:
        detail = f"must not have more than {MAX_NAMESERVERS} nameservers"
        errors.invalid(f"{path}.nameservers", servers, detail)
    for at, server in enumerate(servers):
        errors.each_invalid(f"{path}.nameservers[{at}]", server, names.ip_address(server))
    _searches(searches, f"{path}.searches", errors)
    for at, option in enumerate(config.get("options", [])):
        if not option.get("name"):
            errors.required(f"{path}.options[{at}]", "must not be empty")


def _searches(searches: list[str], path: str, errors: Errors) -> None:
    if len(searches) > MAX_SEARCHES:
        errors.invalid(path, searches, f"must not have more than {MAX_SEARCHES} search paths")
    if len(" ".join(searches)) > MAX_SEARCH_CHARS:
        detail = f"{MAX_SEARCH_CHARS} characters (including spaces) in the search list"
        errors.invalid(path, searches, f"must not have more than {detail}")
    for at, search in enumerate(searches):
        if search != ".":
            errors.each_invalid(f"{path}[{at}]", search, names.dns_search(search.removesuffix(".")))


def _names(spec: Json, errors: Errors) -> None:
    for field in _SUBDOMAINS:
        if spec.get(field):
            errors.each_invalid(f"spec.{field}", spec[field], names.dns_subdomain(spec[field]))
    for field in _LABELS:
        if spec.get(field):
            errors.each_invalid(f"spec.{field}", spec[field], names.dns_label(spec[field]))
    account = spec.get("serviceAccountName", "")
    if spec.get("serviceAccount", account) != account:
        detail = f'must be the same as serviceAccountName: "{account}"'
        errors.invalid("spec.deprecatedServiceAccount", spec["serviceAccount"], detail)
    for at, alias in enumerate(spec.get("hostAliases", [])):
        path = f"spec.hostAliases[{at}]"
        errors.each_invalid(f"{path}.ip", alias.get("ip", ""), names.ip_address(alias.get("ip", "")))
        for number, host in enumerate(alias.get("hostnames", [])):
            errors.each_invalid(f"{path}.hostnames[{number}]", host, names.dns_subdomain(host))
    _hostname_override(spec, errors)


def _hostname_override(spec: Json, errors: Errors) -> None:
    name, path = spec.get("hostnameOverride"), "spec.hostnameOverride"
    if name is None:
        return
    if spec.get("setHostnameAsFQDN"):
        errors.forbidden(path, "may not be specified when setHostnameAsFQDN is true")
    if spec.get("hostNetwork"):
        errors.forbidden(path, "may not be specified when hostNetwork is true")
    if len(name) > 64:
        errors.too_long(path, 64)
    errors.each_invalid(path, name, names.dns_subdomain(name))


def _namespaces(spec: Json, errors: Errors) -> None:
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.invalid("spec.shareProcessNamespace", True, detail)
    if spec.get("hostUsers", True):
        return
    for field in ("hostPID", "hostIPC"):
        if spec.get(field):
            errors.forbidden(f"spec.{field}", "when `hostUsers` is false")
    for kind in ("containers", "initContainers"):
        for at, container in enumerate(spec.get(kind, [])):
            if container.get("volumeDevices"):
                errors.forbidden(f"spec.{kind}[{at}].volumeDevices", "when `hostUsers` is false")


def _rest(spec: Json, errors: Errors) -> None:
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        errors.invalid("spec.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    for at, gate in enumerate(spec.get("readinessGates", [])):
        kind = gate.get("conditionType", "")
        errors.each_invalid(f"spec.readinessGates[{at}].conditionType", kind, names.qualified_name(kind))
    if "preemptionPolicy" in spec:
        errors.one_of("spec.preemptionPolicy", spec["preemptionPolicy"], ("PreemptLowerPriority", "Never"))
    if "os" in spec:
        errors.one_of("spec.os.name", spec["os"].get("name", ""), ("linux", "windows"))
    if spec.get("schedulingGates"):
        errors.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    for at, toleration in enumerate(spec.get("tolerations", [])):
        _toleration(toleration, f"spec.tolerations[{at}]", errors)


def _toleration(toleration: Json, path: str, errors: Errors) -> None:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    if key:
        errors.each_invalid(f"{path}.key", key, names.qualified_name(key))
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        errors.invalid(f"{path}.operator", operator, detail)
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        errors.invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in ("", "Equal"):
        errors.each_invalid(f"{path}.operator", value, names.label_value(value))
    elif operator != "Exists":
        errors.unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
    elif value:
        errors.invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    if effect and effect not in _EFFECTS:
        errors.unsupported(f"{path}.effect", effect, _EFFECTS)
