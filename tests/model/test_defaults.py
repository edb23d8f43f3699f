"""Defaults of the API server, field by field."""

import pytest

from kubelet_mp.model.defaults import image_tag, set_pod_defaults


def defaulted(**spec):
    pod = {"spec": {"containers": [{"name": "c", "image": "i:1"}], **spec}}
    set_pod_defaults(pod)
    return pod["spec"]


def test_a_bare_pod_gets_every_default():
    assert defaulted() == {
        "containers": [{
            "name": "c", "image": "i:1", "imagePullPolicy": "IfNotPresent", "resources": {},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        }],
        "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
        "securityContext": {}, "enableServiceLinks": True, "terminationGracePeriodSeconds": 30,
    }


def test_defaulting_twice_changes_nothing_and_given_values_stay():
    pod = {"spec": {
        "containers": [{"name": "c", "image": "i", "livenessProbe": {"httpGet": {"port": 1}, "periodSeconds": 7}}],
        "volumes": [{"name": "v"}, {"name": "h", "hostPath": {"path": "/x", "type": "File"}}],
        "enableServiceLinks": False, "terminationGracePeriodSeconds": 0, "restartPolicy": "Never",
    }}
    set_pod_defaults(pod)
    once = repr(pod)
    set_pod_defaults(pod)
    assert repr(pod) == once
    spec = pod["spec"]
    assert (spec["enableServiceLinks"], spec["terminationGracePeriodSeconds"]) == (False, 0)
    assert spec["containers"][0]["livenessProbe"]["periodSeconds"] == 7
    assert spec["volumes"][1]["hostPath"]["type"] == "File"


@pytest.mark.parametrize(
    ("image", "tag", "policy"),
    [
        ("busybox", "latest", "Always"), ("busybox:latest", "latest", "Always"), ("busybox:1", "1", "IfNotPresent"),
        ("host:5000/a/b", "latest", "Always"), ("host:5000/a/b:v1.2-x", "v1.2-x", "IfNotPresent"),
        ("a@sha256:" + "0" * 64, "", "IfNotPresent"), ("a:latest@sha256:" + "0" * 64, "latest", "Always"),
        ("[::1]:5000/a", "latest", "Always"), ("BusyBox:latest", "", "IfNotPresent"), ("", "", "IfNotPresent"),
        ("a b", "", "IfNotPresent"), ("a/b_c__d-e.f", "latest", "Always"), ("a" * 5000, "", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_the_tag(image, tag, policy):
    assert image_tag(image) == tag
    assert defaulted(containers=[{"name": "c", "image": image}])["containers"][0]["imagePullPolicy"] == policy


def test_requests_default_to_limits_in_regular_and_init_containers():
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}
    spec = defaulted(initContainers=[{"name": "i", "image": "x", "resources": resources}])
    assert spec["initContainers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}


def test_amounts_are_rounded_up_to_a_thousandth():
    spec = defaulted(containers=[{"name": "c", "image": "x", "resources": {"limits": {"cpu": "100u"}}}])
    assert spec["containers"][0]["resources"] == {"limits": {"cpu": "1m"}, "requests": {"cpu": "1m"}}


def test_ports_and_the_host_network():
    ports = [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP", "hostPort": 53}]
    spec = defaulted(hostNetwork=True, containers=[{"name": "c", "image": "x", "ports": ports}])
    assert spec["containers"][0]["ports"] == [
        {"containerPort": 80, "protocol": "TCP", "hostPort": 80},
        {"containerPort": 53, "protocol": "UDP", "hostPort": 53},
    ]


def test_probes_and_hooks():
    container = {
        "name": "c", "image": "x", "startupProbe": {"grpc": {"port": 1}}, "readinessProbe": {"httpGet": {"port": 2}},
        "lifecycle": {"preStop": {"httpGet": {"port": 3, "path": "/x"}}},
        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "B", "valueFrom": {"fileKeyRef": {"key": "k"}}}],
    }
    got = defaulted(containers=[container])["containers"][0]
    times = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    assert got["startupProbe"] == {"grpc": {"port": 1, "service": ""}, **times}
    assert got["readinessProbe"] == {"httpGet": {"port": 2, "path": "/", "scheme": "HTTP"}, **times}
    assert got["lifecycle"]["preStop"]["httpGet"] == {"port": 3, "path": "/x", "scheme": "HTTP"}
    assert got["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert got["env"][1]["valueFrom"]["fileKeyRef"]["optional"] is False


def test_volumes():
    item = {"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}
    spec = defaulted(volumes=[
        {"name": "none"}, {"name": "h", "hostPath": {"path": "/"}}, {"name": "c", "configMap": {"name": "x"}},
        {"name": "d", "downwardAPI": {"items": [dict(item)]}}, {"name": "i", "image": {"reference": "a"}},
        {"name": "p", "projected": {"sources": [{"downwardAPI": {"items": [dict(item)]}},
                                                {"serviceAccountToken": {"path": "t"}}]}},
    ])
    none, host, config, downward, image, projected = spec["volumes"]
    assert none["emptyDir"] == {} and host["hostPath"]["type"] == "" and config["configMap"]["defaultMode"] == 420
    assert downward["downwardAPI"]["defaultMode"] == projected["projected"]["defaultMode"] == 420
    assert downward["downwardAPI"]["items"][0]["fieldRef"]["apiVersion"] == "v1"
    assert image["image"]["pullPolicy"] == "Always"
    assert projected["projected"]["sources"][1]["serviceAccountToken"]["expirationSeconds"] == 3600


def test_odd_values_are_mended_as_the_api_server_does():
    assert defaulted(terminationGracePeriodSeconds=-5)["terminationGracePeriodSeconds"] == 1
    assert defaulted(serviceAccount="x")["serviceAccountName"] == "x"
    assert defaulted(dnsPolicy="", restartPolicy="")["dnsPolicy"] == "ClusterFirst"
