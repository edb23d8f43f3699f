"""What to ask for and when: pure.

Source: Kubernetes 1.37 pkg/kubelet/certificate, k8s.io/client-go/util/certificate, k8s.io/client-go/util/csr.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubelet_mp.model.clock import NS, rfc3339

CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
SERVING_SIGNER = "kubernetes.io/kubelet-serving"
CLIENT_USAGES = ("digital signature", "client auth")
SERVING_USAGES = ("digital signature", "server auth")
ORGANIZATIONS = ("system:nodes",)
PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_RETRIES = (2.0, 4.0, 8.0, 16.0)  # s after the first failures
_RETRY = 32.0  # s after each later one

Json = Mapping[str, Any]


def user_name(node: str) -> str:
    """Whom the certificates of a node are for."""
    return f"system:node:{node}"


def request_name(public: bytes, node: str, usages: Sequence[str] = CLIENT_USAGES) -> str:
    """The name of the request for a first client certificate: the same for the same key (in DER form).

    So an agent that was restarted finds the request that it had made.
    """
    digest = hashlib.new("sha512_256")
    for part in (public, *(text.encode() for text in (user_name(node), *ORGANIZATIONS, *usages))):
        digest.update(_unpadded(part) + b"|")
    return "node-csr-" + _unpadded(digest.digest()).decode()


def _unpadded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def request_object(pem: str, signer: str, usages: Sequence[str], name: str = "") -> dict[str, Any]:
    """A CertificateSigningRequest; without a name the server makes one up."""
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name} if name else {"generateName": "csr-"},
        "spec": {"request": base64.b64encode(pem.encode()).decode(), "signerName": signer, "usages": list(usages)},
    }


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a request: `certificate` (PEM) once it is signed; `refused`: why it never will be.

    denied: somebody said no; else the signer could not.
    """

    certificate: bytes = b""
    refused: str = ""
    denied: bool = False


def verdict(found: Json) -> Verdict:
    """The state of a CertificateSigningRequest; empty while nobody has decided."""
    status = found.get("status") or {}
    conditions = {one.get("type"): one for one in status.get("conditions") or [] if one.get("status") != "False"}
    for kind in ("Denied", "Failed"):
        if kind in conditions:
            text = ": ".join(filter(None, (conditions[kind].get("reason"), conditions[kind].get("message"))))
            return Verdict(refused=f"{kind.lower()} ({text})" if text else kind.lower(), denied=kind == "Denied")
    if "Approved" in conditions and status.get("certificate"):
        return Verdict(certificate=base64.b64decode(status["certificate"]))
    return Verdict()


def due(not_before: float, not_after: float, chance: float) -> float:
    """When to renew a certificate: after 70 to 90 % of its life, as `chance` (0 to 1) says. Epoch seconds."""
    return not_before + (not_after - not_before) * (0.7 + 0.2 * chance)


def retry_after(failures: int, chance: float) -> float:
    """Seconds to wait after that many failures (at least 1) in a row."""
    pause = _RETRIES[failures - 1] if failures <= len(_RETRIES) else _RETRY
    return pause * (1 + 0.1 * chance)


def poll_after(waited: float) -> float:
    """Seconds until the next look at a request that was made `waited` s ago: soon at first, then ever less often."""
    return min(max(0.2, waited / 5), 10.0)


def unusable(not_after: float, matches: bool, now: float) -> str:
    """Why a certificate is of no use at `now` (epoch seconds), "" if it is.

    matches: whether the private key beside it is its own.
    """
    if now >= not_after:
        return f"the certificate has expired, at {rfc3339(int(not_after) * NS)}"
    return "" if matches else "the private key is not that of the certificate"


def serving_names(node: Json) -> tuple[str, ...]:
    """For which DNS names and IP addresses a Node is to serve, each sorted; () while no address is known."""
    hosts: set[str] = set()
    ips: set[str] = set()
    for entry in (node.get("status") or {}).get("addresses") or []:
        kind, address = entry.get("type"), str(entry.get("address") or "")
        if not address:
            continue
        if kind in ("InternalIP", "ExternalIP") or (kind == "Hostname" and _is_ip(address)):
            if _is_ip(address):
                ips.add(str(ipaddress.ip_address(address)))
        elif kind in ("Hostname", "InternalDNS", "ExternalDNS"):
            hosts.add(address)
    return (*sorted(hosts), *sorted(ips)) if ips else ()


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def satisfies(names: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether a certificate for `names` also serves all that are wanted."""
    return set(wanted) <= set(names)


def kubeconfig(cluster: Json, pem: str) -> dict[str, Any]:
    """A kubeconfig that reaches `cluster` with the certificate and key in the file `pem`."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default-cluster", "cluster": dict(cluster)}],
        "contexts": [{
            "name": "default-context",
            "context": {"cluster": "default-cluster", "namespace": "default", "user": "default-auth"},
        }],
        "current-context": "default-context",
        "users": [{"name": "default-auth", "user": {"client-certificate": pem, "client-key": pem}}],
        "preferences": {},
    }
