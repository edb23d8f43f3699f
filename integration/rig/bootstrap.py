"""What a cluster needs so that nodes get their certificates by a bootstrap token: roles, and the token itself."""

from __future__ import annotations

import json
import secrets
from typing import Any

_RBAC = "rbac.authorization.k8s.io"
_CSR = "system:certificates.k8s.io:certificatesigningrequests"
# name of the binding, ClusterRole, group
_BINDINGS = (
    ("test:bootstrap", "system:node-bootstrapper", "system:bootstrappers"),
    ("test:approve-first-certificate", f"{_CSR}:nodeclient", "system:bootstrappers"),
    ("test:approve-renewed-certificate", f"{_CSR}:selfnodeclient", "system:nodes"),
)


def roles() -> str:
    """The ClusterRoleBindings, as a list to apply."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [_binding(*words) for words in _BINDINGS]})


def _binding(name: str, role: str, group: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": group}],
    }


def new_token() -> str:
    return f"{secrets.token_hex(3)}.{secrets.token_hex(8)}"


def secret(token: str) -> str:
    """The Secret that makes a token valid for authentication."""
    identity, _, password = token.partition(".")
    return json.dumps({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": f"bootstrap-token-{identity}", "namespace": "kube-system"},
        "stringData": {
            "token-id": identity,
            "token-secret": password,
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:test",
        },
    })
