"""A token becomes a certificate; certificates are renewed; a node with an expired one bootstraps again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.rig import certs, workloads
from integration.rig.agent import Agent
from integration.rig.cluster import Cluster, condition
from integration.rig.controlplane import CONTROLLERS
from integration.rig.manifests import pod, says


@pytest.fixture
def short_lived(cluster: Cluster) -> Iterator[None]:
    """Certificates that are signed meanwhile are valid for two minutes."""
    cluster.restart(CONTROLLERS, cluster_signing_duration="2m")
    yield
    cluster.restart(CONTROLLERS, cluster_signing_duration="24h")


def _bootstrapping(cluster: Cluster, node, name: str) -> Agent:
    made: Agent = node(name, start=False)
    made.flags = ["--kubeconfig", str(made.home / "kubeconfig"), "--node-ip", made.address,
                  "--bootstrap-kubeconfig", str(cluster.bootstrap())]
    return made


def _current(made: Agent) -> Path:
    return made.home / "pki" / "kubelet-client-current.pem"


def test_a_token_becomes_a_certificate(cluster: Cluster, node, namespace):
    """And a restart uses the certificate."""
    made = _bootstrapping(cluster, node, "boot-1")
    made.start()
    cluster.wait_node("boot-1")
    link = _current(made)
    assert link.is_symlink() and link.stat().st_mode & 0o077 == 0
    target = os.readlink(link)
    cluster.apply(workloads.placed(pod("first", says("x")), namespace))
    cluster.wait_pods(namespace, 1)
    made.restart()
    cluster.wait_node("boot-1")
    assert os.readlink(link) == target


def test_a_certificate_is_renewed(cluster: Cluster, node, short_lived, namespace):
    """kubelet.config rotateCertificates: the node stays Ready past the end of its first certificate."""
    made = _bootstrapping(cluster, node, "boot-2")
    made.configure({"rotateCertificates": True})
    made.start()
    cluster.wait_node("boot-2")
    first = os.readlink(_current(made))
    made.wait(lambda: os.readlink(_current(made)) != first, 150, "a renewed certificate")
    cluster.apply(workloads.placed(pod("after", says("x")), namespace))
    cluster.wait_pods(namespace, 1)
    assert condition(cluster.wait_node("boot-2"), "Ready") == "True"


def test_an_expired_certificate_leads_back_to_the_token(cluster: Cluster, node):
    made = _bootstrapping(cluster, node, "boot-3")
    made.start()
    cluster.wait_node("boot-3")
    made.stop()
    expired, key = cluster.authority.issue("expired", "system:node:boot-3", ["system:nodes"], hours=-1)
    link = _current(made)
    stale = link.parent / "stale.pem"
    stale.write_bytes(expired.read_bytes() + key.read_bytes())
    stale.chmod(0o600)
    link.unlink()
    link.symlink_to(stale)
    made.start()
    made.wait(lambda: link.resolve() != stale, 60, "a new certificate")
    made.wait(lambda: "expired" in made.log.read_text(), 5, "the log says so")


def test_a_serving_certificate_is_signed(cluster: Cluster, node):
    made = node("boot-4", config={"serverTLSBootstrap": True}, start=False)
    made.start(wait=False)
    cluster.wait_node("boot-4")

    def requested() -> list[str]:
        listed = cluster.get("/apis/certificates.k8s.io/v1/certificatesigningrequests")["items"]
        return [one["metadata"]["name"] for one in listed
                if one["spec"]["signerName"] == "kubernetes.io/kubelet-serving"
                and one["spec"]["username"] == "system:node:boot-4"]

    for name in cluster.wait(requested, 60, "a request for a serving certificate"):
        cluster.kubectl("certificate", "approve", name)
    made.wait_ready(60)
    served = made.home / "pki" / "kubelet-server-current.pem"
    assert certs.names(served.read_bytes()) >= {made.address, "boot-4"}
