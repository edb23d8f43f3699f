"""Trust bundles and certificates of pods, with a signer that the test plays."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from integration.rig import workloads
from integration.rig.cluster import Cluster
from integration.rig.manifests import mounted, pod, shell

GROUP = "/apis/certificates.k8s.io/v1"


def test_a_pod_gets_trust_anchors_and_a_certificate(cluster: Cluster, node, namespace):
    node()
    signer = f"{namespace}.example/test"
    authority = ec.generate_private_key(ec.SECP256R1())
    root = _certificate(authority.public_key(), authority, "root", ca=True)
    cluster.apply({
        "apiVersion": "certificates.k8s.io/v1", "kind": "ClusterTrustBundle",
        "metadata": {"name": f"{signer.replace('/', ':')}:one", "labels": {"live": "yes"}},
        "spec": {"signerName": signer, "trustBundle": root}})
    sources = [
        {"clusterTrustBundle": {"signerName": signer, "labelSelector": {"matchLabels": {"live": "yes"}},
                                "path": "roots.pem"}},
        {"clusterTrustBundle": {"name": "none", "optional": True, "path": "none.pem"}},
        {"podCertificate": {"signerName": signer, "keyType": "ED25519", "credentialBundlePath": "mine.pem"}}]
    script = "wc -c < /v/none.pem; cat /v/roots.pem /v/mine.pem; sleep 3600"
    volume = {"name": "v", "projected": {"sources": sources}}
    cluster.apply(workloads.placed(
        pod("certified", shell("c", script, volumeMounts=[mounted("v", "/v")]), volumes=[volume]), namespace))
    path = f"{GROUP}/namespaces/{namespace}/podcertificaterequests"
    [request] = cluster.wait(lambda: cluster.get(path)["items"], 30, "a request")
    assert request["spec"]["podName"] == "certified" and request["spec"]["maxExpirationSeconds"] == 86400
    asked = x509.load_der_x509_csr(base64.b64decode(request["spec"]["stubPKCS10Request"]))
    leaf = _certificate(asked.public_key(), authority, "certified")
    _issue(cluster, namespace, request["metadata"]["name"], leaf)
    cluster.wait_pods(namespace, 1)
    printed = cluster.wait(lambda: cluster.kubectl("logs", "-n", namespace, "certified"), 20, "its output")
    empty, _, rest = printed.partition("\n")
    assert empty == "0" and rest.startswith(root) and rest.endswith(leaf)
    key = serialization.load_pem_private_key(rest[len(root):-len(leaf)].encode(), None)
    assert key.public_key() == asked.public_key()
    cluster.kubectl("delete", "clustertrustbundle", f"{signer.replace('/', ':')}:one")


def _certificate(public, authority: ec.EllipticCurvePrivateKey, name: str, *, ca: bool = False) -> str:
    now = datetime.now(UTC).replace(microsecond=0)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "root")])
    made = (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public)
            .serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(minutes=1))
            .not_valid_after(now + timedelta(hours=2))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True))
    return made.sign(authority, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def _issue(cluster: Cluster, namespace: str, name: str, leaf: str) -> None:
    parsed = x509.load_pem_x509_certificate(leaf.encode())

    def time(seconds: float) -> str:
        return (parsed.not_valid_before_utc + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

    status = {
        "conditions": [{"type": "Issued", "status": "True", "reason": "Tested", "message": "by a test",
                        "lastTransitionTime": time(60)}],
        "certificateChain": leaf, "notBefore": time(0), "beginRefreshAt": time(3600), "notAfter": time(7260)}
    cluster.request("PATCH", f"{GROUP}/namespaces/{namespace}/podcertificaterequests/{name}/status",
                    {"status": status}, kind="application/merge-patch+json")
