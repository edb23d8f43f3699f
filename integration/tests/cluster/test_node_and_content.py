"""The Node object, its lease and events; static pods in the API; content that comes from the API."""

from __future__ import annotations

import base64
import json

from integration.rig import workloads
from integration.rig.cluster import Cluster, condition
from integration.rig.manifests import mounted, pod, says, shell


def test_the_node_tells_about_itself(cluster: Cluster, node):
    made = node()
    seen = cluster.wait_node(made.node)
    status = seen["status"]
    assert {"cpu", "memory", "pods", "ephemeral-storage"} <= status["capacity"].keys() & status["allocatable"].keys()
    assert {"type": "InternalIP", "address": made.address} in status["addresses"]
    assert {"type": "Hostname", "address": made.node} in status["addresses"]
    assert status["nodeInfo"]["kubeletVersion"].startswith("v1.37.2")
    assert status["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://2.")
    assert {name: condition(seen, name) for name in ("MemoryPressure", "DiskPressure", "PIDPressure")} == {
        "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False",
    }
    labels = seen["metadata"]["labels"]
    assert labels["kubernetes.io/hostname"] == made.node and labels["kubernetes.io/os"] == "linux"
    assert made.address in cluster.kubectl("get", "nodes", "-o", "wide")
    assert "Allocated resources" in cluster.kubectl("describe", "node", made.node)


def test_the_lease_is_renewed(cluster: Cluster, node):
    made = node()
    path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{made.node}"
    first = cluster.wait(lambda: cluster.find(path), 20, "there is a lease")
    assert first["spec"]["holderIdentity"] == made.node and first["spec"]["leaseDurationSeconds"] == 40
    [owner] = cluster.wait(lambda: cluster.get(path)["metadata"].get("ownerReferences"), 30, "the Node owns it")
    assert owner["name"] == made.node
    renewed = first["spec"]["renewTime"]
    cluster.wait(lambda: cluster.get(path)["spec"]["renewTime"] > renewed, 30, "it is renewed")
    assert made.node in cluster.kubectl("get", "lease", "-n", "kube-node-lease")


def test_events_tell_a_pods_story(cluster: Cluster, node, namespace):
    node()
    cluster.apply(workloads.placed(pod("told", says("x")), namespace))
    cluster.wait_pods(namespace, 1)
    missing = pod("missing", {**says("x"), "image": "registry.invalid/none:1", "imagePullPolicy": "Never"})
    cluster.apply(workloads.placed(missing, namespace))

    def reasons(name: str) -> set[str]:
        listed = cluster.get(f"/api/v1/namespaces/{namespace}/events")["items"]
        return {event["reason"] for event in listed if event["involvedObject"]["name"] == name}

    cluster.wait(lambda: {"Scheduled", "Pulled", "Created", "Started"} <= reasons("told"), 20, "all four events")
    cluster.wait(lambda: "ErrImageNeverPull" in reasons("missing"), 20, "the missing image is told")
    assert "Started" in cluster.kubectl("get", "events", "-n", namespace)
    cluster.kubectl("delete", "pod", "told", "-n", namespace)
    cluster.wait(lambda: "Killing" in reasons("told"), 20, "the end is told")


def test_a_static_pod_has_a_mirror(cluster: Cluster, node):
    made = node(config={"fileCheckFrequency": "1s", "syncFrequency": "10s"})
    made.put("fixed", pod("fixed", says("x")))
    name, path = made.full_name("fixed"), f"/api/v1/namespaces/default/pods/{made.full_name('fixed')}"

    def ready() -> dict | None:
        found = cluster.find(path)
        return found if found and condition(found, "Ready") == "True" else None

    mirror = cluster.wait(ready, 60, "the mirror pod is Ready")
    [before] = made.cri.containers(pod=name, running=True)
    cluster.kubectl("delete", "pod", name)

    def renewed() -> dict | None:
        found = ready()
        return found if found and found["metadata"]["uid"] != mirror["metadata"]["uid"] else None

    again = cluster.wait(renewed, 60, "a new mirror pod is Ready")
    assert [one.id for one in made.cri.containers(pod=name, running=True)] == [before.id]
    mark = "kubernetes.io/config.mirror"
    assert again["metadata"]["annotations"][mark] == mirror["metadata"]["annotations"][mark]
    made.remove("fixed")
    cluster.wait(lambda: cluster.find(path) is None, 60, "the mirror is gone with the manifest")


def test_configuration_reaches_environment_and_files(cluster: Cluster, node, namespace):
    made = node(config={"configMapAndSecretChangeDetectionStrategy": "Watch", "syncFrequency": "10s"})
    cluster.apply(*_content(namespace, "one"), {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "front", "namespace": namespace},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "none"}},
    })
    script = "env; cat /config/key /secret/key /all/labels /all/token /all/key; echo END; sleep 3600"
    reader = shell("c", script, volumeMounts=[mounted(name, f"/{name}") for name in ("config", "secret", "all")])
    reader["envFrom"] = [{"configMapRef": {"name": "plain"}, "prefix": "FROM_"}]
    reader["env"] = [
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "hidden", "key": "key"}}},
        {"name": "NONE", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "x", "optional": True}}},
    ]
    labels = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    everything = {"projected": {"sources": [
        {"downwardAPI": {"items": [labels]}},
        {"serviceAccountToken": {"path": "token", "audience": "tests"}},
        {"configMap": {"name": "plain"}},
    ]}}
    volumes = [
        {"name": "config", "configMap": {"name": "plain"}},
        {"name": "secret", "secret": {"secretName": "hidden", "defaultMode": 0o400}},
        {"name": "all", **everything},
    ]
    cluster.apply(workloads.placed(pod("reader", reader, volumes=volumes), namespace, app="reader"))
    cluster.wait_pods(namespace, 1)

    def printed() -> str:
        log = cluster.kubectl("logs", "-n", namespace, "reader")
        return log if "END" in log else ""

    text = cluster.wait(printed, 20, "it prints")
    assert {"FROM_key=plain-one", "SECRET=hidden-one", "FRONT_SERVICE_PORT=80"} <= set(text.splitlines())
    assert "plain-onehidden-one" in text and 'app="reader"' in text and "NONE=" not in text
    [token] = [word for line in text.splitlines() for word in line.split('"') if word.count(".") == 2 and "eyJ" in word]
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["aud"] == ["tests"] and claims["kubernetes.io"]["pod"]["name"] == "reader"
    cluster.apply(*_content(namespace, "two"))
    [reading] = made.cri.containers(pod="reader", running=True)
    read = ("cat", "/config/key", "/secret/key", "/all/key")
    changed = "plain-twohidden-twoplain-two"
    made.wait(lambda: made.cri.exec(reading.id, *read).out == changed, 90, "changes reach the files")


def test_a_pod_waits_for_its_configuration(cluster: Cluster, node, namespace):
    node()
    waiting = shell("c", "echo $VALUE; sleep 3600")
    waiting["env"] = [{"name": "VALUE", "valueFrom": {"configMapKeyRef": {"name": "plain", "key": "key"}}}]
    cluster.apply(workloads.placed(pod("early", waiting), namespace))

    def reason() -> str:
        [status] = cluster.pods(namespace)[0]["status"].get("containerStatuses") or [{}]
        return status.get("state", {}).get("waiting", {}).get("reason", "")

    cluster.wait(lambda: reason() == "CreateContainerConfigError", 30, "the missing ConfigMap is told")
    cluster.apply(*_content(namespace, "late"))
    cluster.wait_pods(namespace, 1)
    assert cluster.kubectl("logs", "-n", namespace, "early") == "plain-late\n"


def _content(namespace: str, word: str) -> list[dict]:
    return [
        {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain", "namespace": namespace},
            "data": {"key": f"plain-{word}"},
        },
        {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hidden", "namespace": namespace},
            "stringData": {"key": f"hidden-{word}"},
        },
    ]
