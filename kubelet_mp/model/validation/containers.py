"""Checks of regular, init and ephemeral containers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kubelet_mp.model.validation import names
from kubelet_mp.model.validation.env import check_env, check_env_from
from kubelet_mp.model.validation.errors import Errors
from kubelet_mp.model.validation.handlers import check_lifecycle, check_probes
from kubelet_mp.model.validation.mounts import check_host_ports, check_mounts, check_ports
from kubelet_mp.model.validation.resources import check_container_resources
from kubelet_mp.model.validation.security import check_container_security
from kubelet_mp.model.validation.volumes import PULL_POLICIES

Json = dict[str, Any]

RESTART_POLICIES = ("Always", "Never", "OnFailure")
_ONLY_SIDECARS = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
_ACTIONS = ("Restart", "RestartAllContainers")
_OPERATORS = ("In", "NotIn")


@dataclass(frozen=True)
class PodFacts:
    """What the containers are judged against. `volumes`: the valid ones by name; `grace` in seconds."""

    volumes: dict[str, Json]
    claims: frozenset[str]
    grace: int
    host_users: bool
    restart_policy: str
    os_name: str


def check_containers(spec: Json, facts: PodFacts, errors: Errors) -> None:
    containers = spec.get("containers", [])
    if not containers:
        errors.required("spec.containers")
    for path, container in _paths("containers", containers):
        _common(container, facts, path, errors)
        _hooks_and_probes(container, facts, path, errors)
        _restart_rules(container, path, errors)
    check_host_ports(list(_paths("containers", containers)), errors)
    _init_containers(spec.get("initContainers", []), facts, errors)
    _unique_names(spec, errors)
    if spec.get("ephemeralContainers"):
        errors.forbidden("spec.ephemeralContainers", "cannot be set on create")


def _paths(field: str, containers: list[Json]) -> Iterator[tuple[str, Json]]:
    for at, container in enumerate(containers):
        yield f"spec.{field}[{at}]", container


def _unique_names(spec: Json, errors: Errors) -> None:
    seen: set[str] = set()
    for field in ("containers", "initContainers"):
        for path, container in _paths(field, spec.get(field, [])):
            name = container.get("name", "")
            if name and name in seen:
                errors.duplicate(f"{path}.name", name)
            seen.add(name)


def _common(container: Json, facts: PodFacts, path: str, errors: Errors) -> None:
    name = container.get("name", "")
    if not name:
        errors.required(f"{path}.name")
    else:
        errors.each_invalid(f"{path}.name", name, names.dns_label(name))
    _image(container.get("image", ""), f"{path}.image", errors)
    policy = container["terminationMessagePolicy"]
    errors.one_of(f"{path}.terminationMessagePolicy", policy, ("File", "FallbackToLogsOnError"))
    errors.one_of(f"{path}.imagePullPolicy", container["imagePullPolicy"], PULL_POLICIES)
    check_ports(container.get("ports", []), f"{path}.ports", errors)
    check_env(container.get("env", []), facts.volumes, f"{path}.env", errors)
    check_env_from(container.get("envFrom", []), f"{path}.envFrom", errors)
    check_mounts(container, facts.volumes, path, errors)
    check_container_resources(container["resources"], f"{path}.resources", errors, facts.claims)
    _resize_policy(container.get("resizePolicy", []), facts, f"{path}.resizePolicy", errors)
    check_container_security(
        container.get("securityContext", {}), f"{path}.securityContext", errors, host_users=facts.host_users
    )


def _image(image: str, path: str, errors: Errors) -> None:
    if not image:
        errors.required(path)
    elif image != image.strip():
        errors.invalid(path, image, "must not have leading or trailing whitespace")


def _hooks_and_probes(container: Json, facts: PodFacts, path: str, errors: Errors) -> None:
    lifecycle = container.get("lifecycle", {})
    check_lifecycle(lifecycle, f"{path}.lifecycle", errors, grace=facts.grace, os_name=facts.os_name)
    check_probes(container, path, errors)


def _init_containers(containers: list[Json], facts: PodFacts, errors: Errors) -> None:
    for path, container in _paths("initContainers", containers):
        _common(container, facts, path, errors)
        _restart_rules(container, path, errors)
        check_host_ports([(path, container)], errors)
        if container.get("restartPolicy") == "Always":
            _hooks_and_probes(container, facts, path, errors)
            continue
        for field in _ONLY_SIDECARS:
            if field in container:
                detail = "may not be set for init containers without restartPolicy=Always"
                errors.forbidden(f"{path}.{field}", detail)
        for at, policy in enumerate(container.get("resizePolicy", [])):
            if policy.get("restartPolicy") == "RestartContainer":
                detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                where = f"{path}.resizePolicy[{at}].restartPolicy"
                errors.invalid(where, "RestartContainer", detail)


def _restart_rules(container: Json, path: str, errors: Errors) -> None:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules", [])
    if policy is None and rules:
        errors.required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    elif policy is not None and policy not in RESTART_POLICIES:
        errors.unsupported(f"{path}.restartPolicy", policy, RESTART_POLICIES)
    if len(rules) > 20:
        errors.too_many(f"{path}.restartPolicyRules", len(rules), 20)
    for at, rule in enumerate(rules):
        _restart_rule(rule, f"{path}.restartPolicyRules[{at}]", errors)


def _restart_rule(rule: Json, path: str, errors: Errors) -> None:
    if rule.get("action", "") not in _ACTIONS:
        errors.unsupported(f"{path}.action", rule.get("action", ""), _ACTIONS)
    codes = rule.get("exitCodes")
    if codes is None:
        errors.required(f"{path}.exitCodes", "must be specified")
        return
    if codes.get("operator", "") not in _OPERATORS:
        errors.unsupported(f"{path}.exitCodes.operator", codes.get("operator", ""), _OPERATORS)
    if len(codes.get("values", [])) > 255:
        errors.too_many(f"{path}.exitCodes.values", len(codes["values"]), 255)


def _resize_policy(policies: list[Json], facts: PodFacts, path: str, errors: Errors) -> None:
    seen: set[str] = set()
    for at, policy in enumerate(policies):
        resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            errors.duplicate(f"{path}[{at}]", resource)
        seen.add(resource)
        errors.one_of(path, resource, ("cpu", "memory"))
        errors.one_of(path, restart, ("NotRequired", "RestartContainer"))
        if facts.restart_policy == "Never" and restart != "NotRequired":
            errors.invalid(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")
