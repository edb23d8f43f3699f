"""The rig itself: the control plane comes up, serves the upstream kubelet as a node, and leaves nothing."""

from __future__ import annotations

import base64
import json

import pytest

from integration.rig import certs, layout
from integration.rig.cluster import Cluster, condition
from integration.rig.console import RigError, run
from integration.rig.controlplane import API, CONTROLLERS
from integration.rig.manifests import pod, says

VERSION = "v1.37.2"


def test_the_versions_are_the_pinned_ones(cluster: Cluster):
    assert cluster.get("/version")["gitVersion"] == VERSION
    for program in ("kube-controller-manager", "kube-scheduler", "kubelet"):
        assert run([cluster.programs / program, "--version"], timeout=30).strip() == f"Kubernetes {VERSION}"
    assert json.loads(cluster.kubectl("version", "-o", "json"))["clientVersion"]["gitVersion"] == VERSION
    assert "3.7.3" in run([cluster.programs / "etcd", "--version"], timeout=30)


def test_an_upstream_node_runs_a_pod(cluster: Cluster, node, namespace):
    made = node("upstream-1", upstream=True)
    seen = cluster.wait_node("upstream-1")
    assert seen["status"]["nodeInfo"]["kubeletVersion"] == VERSION
    cluster.apply(_placed(pod("hello", says("HELLO"), nodeName="upstream-1"), namespace))
    [running] = cluster.wait_pods(namespace, 1)
    assert running["status"]["podIP"]
    log = cluster.wait(lambda: cluster.kubectl("logs", "-n", namespace, "hello"), 20, "the log is there")
    assert log == "HELLO\n"
    assert made.cri.containers(pod="hello", running=True)
    cluster.kubectl("delete", "pod", "hello", "-n", namespace)
    assert cluster.pods(namespace) == []
    assert not made.cri.containers(pod="hello", running=True)


def test_pods_reach_the_api_server(cluster: Cluster, node, namespace):
    """Through its Service's address: nothing else serves Services here."""
    if cluster.plan.port != 443:
        pytest.skip("port 443 is taken on this machine: the Service's own port cannot be served")
    node("upstream-1", upstream=True)
    script = "nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT < /dev/null && echo REACHED; sleep 3600"
    caller = pod("caller", {**says("x"), "command": ["sh", "-c", script]}, nodeName="upstream-1")
    cluster.apply(_placed(caller, namespace))
    cluster.wait_pods(namespace, 1)
    cluster.wait(lambda: "REACHED" in cluster.kubectl("logs", "-n", namespace, "caller"), 20, "the API answers")


def test_a_node_may_do_only_what_nodes_may(cluster: Cluster, node, namespace):
    """Node authorization and NodeRestriction are on: a list of all secrets and another node's labels are refused."""
    node("upstream-1", upstream=True)
    words = ("--kubeconfig", str(cluster.node("upstream-1")))
    program = cluster.programs / "kubectl"
    for refused in (["get", "secrets", "-A"], ["label", "node", "upstream-1", "node-role.kubernetes.io/x=y"]):
        with pytest.raises(RigError, match="orbidden"):
            run([program, *words, *refused], timeout=30)
    assert "upstream-1" in run([program, *words, "get", "node", "upstream-1"], timeout=30)


def test_a_bootstrap_token_gives_a_certificate(cluster: Cluster, node):
    """The upstream kubelet registers with nothing but a token."""
    token = cluster.bootstrap()
    made = node("upstream-boot", upstream=True, start=False)
    made.flags = ["--kubeconfig", str(made.home / "kubeconfig"), "--bootstrap-kubeconfig", str(token)]
    made.start()
    cluster.wait_node("upstream-boot")
    assert (made.home / "pki" / "kubelet-client-current.pem").exists()


def test_the_signing_duration_can_be_changed(cluster: Cluster):
    """As rotation tests need it."""
    cluster.restart(CONTROLLERS, cluster_signing_duration="2m")
    try:
        assert _signed_minutes(cluster) <= 8  # upstream dates a certificate back by up to five minutes
    finally:
        cluster.restart(CONTROLLERS, cluster_signing_duration="24h")


def test_an_outage_of_the_api_server(cluster: Cluster):
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "b"}})
    cluster.stop_api()
    try:
        with pytest.raises(OSError):
            cluster.get("/version")
    finally:
        cluster.start_api()
    assert cluster.get("/api/v1/namespaces/default/configmaps/kept")["data"] == {"a": "b"}
    cluster.kubectl("delete", "configmap", "kept")


def test_two_nodes_on_one_machine(cluster: Cluster, node, second_runtime, namespace):
    """Each with its own containerd and subnet; pods of one reach those of the other."""
    node("upstream-1", upstream=True)
    node("upstream-2", upstream=True, runtime=second_runtime)
    serve = ["nc", "-ll", "-p", "8080", "-e", "echo", "SERVED"]
    server = pod("server", {**says("x"), "command": serve}, nodeName="upstream-1")
    cluster.apply(_placed(server, namespace))
    [serving] = cluster.wait_pods(namespace, 1)
    script = f"nc -w 5 {serving['status']['podIP']} 8080; sleep 3600"
    client = pod("client", {**says("x"), "command": ["sh", "-c", script]}, nodeName="upstream-2")
    cluster.apply(_placed(client, namespace))
    cluster.wait_pods(namespace, 2)
    cluster.wait(lambda: "SERVED" in cluster.kubectl("logs", "-n", namespace, "client"), 20, "the server answers")
    assert all(condition(one, "Ready") == "True" for one in cluster.get("/api/v1/nodes")["items"])


def test_nothing_is_left(cluster: Cluster):
    """A second control plane, on other folders and addresses, comes and goes beside the first."""
    other = Cluster(layout.debian_tests(), cluster.programs)
    other.start()
    assert len(other.processes()) == 4 and other.network.taken()
    assert other.stop() == []
    assert other.processes() == {} and other.network.taken() == []
    assert not other.data.exists() and not other.run.exists()


def _placed(manifest: dict, namespace: str) -> dict:
    return manifest | {"metadata": manifest["metadata"] | {"namespace": namespace}}


def _signed_minutes(cluster: Cluster) -> float:
    """How long a certificate is valid that the controllers sign now, in minutes."""
    request = certs.signing_request("system:node:signed", ["system:nodes"])
    name = "signed"
    cluster.apply({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "request": base64.b64encode(request).decode(),
            "usages": ["digital signature", "client auth"],
        },
    })
    cluster.kubectl("certificate", "approve", name)
    path = f"/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}"
    pem = cluster.wait(lambda: cluster.get(path)["status"].get("certificate"), 30, "it is signed", CONTROLLERS, API)
    cluster.kubectl("delete", "csr", name)
    return certs.minutes(base64.b64decode(pem))
