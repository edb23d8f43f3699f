"""Whether a container is started again after it ended: the pod's policy, the container's own, and its rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubelet_mp.model.podspec import Pod, spec

RESTART = "Restart"
RESTART_ALL = "RestartAllContainers"


def is_sidecar(container: Mapping[str, Any]) -> bool:
    """An init container with restartPolicy Always (KEP-753); ask it of init containers only."""
    return container.get("restartPolicy") == "Always"


def policy_of(pod: Pod, container: Mapping[str, Any]) -> str:
    """Always, OnFailure or Never: the container's own policy before the pod's."""
    return container.get("restartPolicy") or spec(pod).get("restartPolicy") or "Always"


def matching_rule(container: Mapping[str, Any], exit_code: int) -> str | None:
    """The action of the first restartPolicyRule that matches (KEP-5307), None without one."""
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        inside = exit_code in (codes.get("values") or ())
        if inside == (codes.get("operator") == "In"):
            return str(rule.get("action", RESTART))
    return None


def restarts_after(pod: Pod, container: Mapping[str, Any], exit_code: int, *, init: bool = False) -> bool:
    """Is the container started again after it ended with `exit_code`?

    A regular init container that failed is tried again unless the policy is Never; one that succeeded is not.
    """
    if matching_rule(container, exit_code) is not None:
        return True
    policy = policy_of(pod, container)
    if init and not is_sidecar(container):
        return exit_code != 0 and policy != "Never"
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)
