"""The programs of a control plane and their command lines; nothing is started here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ETCD, API, CONTROLLERS, SCHEDULER = "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"


@dataclass(frozen=True)
class Plan:
    """What the command lines need to know of each other.

    `services` is the address range of Services; its first address is the API server's own, so that the Service
    `kubernetes` works without a proxy for Services.
    """

    data: Path
    pki: Path
    address: str
    port: int
    services: str
    etcd_port: int
    etcd_peer_port: int

    @property
    def server(self) -> str:
        return f"https://{self.address}:{self.port}"

    @property
    def etcd(self) -> str:
        return f"http://127.0.0.1:{self.etcd_port}"

    def kubeconfig(self, name: str) -> Path:
        return self.data / f"{name}.kubeconfig"


def flags(plan: Plan) -> Mapping[str, Mapping[str, str]]:
    """Program name to its flags, without the leading dashes."""
    return {ETCD: _etcd(plan), API: _api(plan), CONTROLLERS: _controllers(plan), SCHEDULER: _scheduler(plan)}


def _etcd(plan: Plan) -> dict[str, str]:
    return {
        "data-dir": str(plan.data / "etcd"),
        "listen-client-urls": plan.etcd,
        "advertise-client-urls": plan.etcd,
        "listen-peer-urls": f"http://127.0.0.1:{plan.etcd_peer_port}",
        "initial-advertise-peer-urls": f"http://127.0.0.1:{plan.etcd_peer_port}",
        "initial-cluster": f"default=http://127.0.0.1:{plan.etcd_peer_port}",
        "unsafe-no-fsync": "true",  # the data lives for one run
        "log-level": "warn",
    }


def _api(plan: Plan) -> dict[str, str]:
    return {
        "etcd-servers": plan.etcd,
        "service-cluster-ip-range": plan.services,
        "bind-address": plan.address,
        "advertise-address": plan.address,
        "secure-port": str(plan.port),
        "tls-cert-file": f"{plan.pki}/apiserver.crt",
        "tls-private-key-file": f"{plan.pki}/apiserver.key",
        "client-ca-file": f"{plan.pki}/ca.crt",
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "enable-bootstrap-token-auth": "true",
        "service-account-key-file": f"{plan.pki}/sa.pub",
        "service-account-signing-key-file": f"{plan.pki}/sa.key",
        "service-account-issuer": "https://kubernetes.default.svc",
        "kubelet-client-certificate": f"{plan.pki}/kubelet-client.crt",
        "kubelet-client-key": f"{plan.pki}/kubelet-client.key",
        "kubelet-preferred-address-types": "InternalIP",
        "allow-privileged": "true",
        "endpoint-reconciler-type": "none",
    }


def _controllers(plan: Plan) -> dict[str, str]:
    return {
        "kubeconfig": str(plan.kubeconfig("controllers")),
        "service-account-private-key-file": f"{plan.pki}/sa.key",
        "root-ca-file": f"{plan.pki}/ca.crt",
        "cluster-signing-cert-file": f"{plan.pki}/ca.crt",
        "cluster-signing-key-file": f"{plan.pki}/ca.key",
        "use-service-account-credentials": "true",
        "controllers": "*,bootstrapsigner,tokencleaner",
        "leader-elect": "false",
        "secure-port": "0",
        "node-monitor-grace-period": "20s",  # instead of 50 s: tests wait for a node to be missed
        "kube-api-qps": "200",  # 20 would make the controllers the slowest part of a burst of pods
        "kube-api-burst": "400",
    }


def _scheduler(plan: Plan) -> dict[str, str]:
    return {
        "kubeconfig": str(plan.kubeconfig("scheduler")),
        "leader-elect": "false",
        "secure-port": "0",
        "kube-api-qps": "200",
        "kube-api-burst": "400",
    }
