from __future__ import annotations

import pytest

from kubelet_mp.errors import ContainerConfigError
from kubelet_mp.model.environment import environment
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.servicevars import service_variables

NODE = NodeView(
    node_name="node-1",
    node_ips=("192.0.2.7", "2001:db8::7"),
    allocatable={"cpu": 1930, "memory": 8 << 30, "ephemeral-storage": 10 << 30},
)
STATIC = {"kubernetes.io/config.source": "file"}


def make(env=(), env_from=(), *, annotations=None, resources=None, **spec):
    container = {"name": "c", "env": list(env), "envFrom": list(env_from), "resources": resources or {}}
    metadata = {
        "name": "p",
        "namespace": "ns",
        "uid": "u-1",
        "labels": {"app": "web"},
        "annotations": annotations or {},
    }
    return {"metadata": metadata, "spec": {"containers": [container], **spec}}


def run(pod, **given):
    return environment(pod, pod["spec"]["containers"][0], NODE, **given)


class Objects:
    """A lookup with what it is made of."""

    def __init__(self, maps=None, secrets=None, files=None):
        self.maps, self.secrets, self.files = maps or {}, secrets or {}, files or {}

    def config_map(self, namespace, name):
        return self.maps.get(f"{namespace}/{name}")

    def secret(self, namespace, name):
        return self.secrets.get(f"{namespace}/{name}")

    def file(self, volume, path):
        return self.files.get(f"{volume}:{path}")


def test_dollar_signs_references_escapes_order():
    env = [
        ("A", "one"),
        ("B", "$(A)-$(C)"),
        ("C", "three"),
        ("D", "$$(A)"),
        ("E", "$$$(A)"),
        ("F", "$(A"),
        ("G", "${A} $A $"),
        ("H", "$()x$$y"),
        ("I", "$(B)"),
        ("J", "p"),
        ("J", "$(J)q"),
    ]
    assert run(make([{"name": n, "value": v} for n, v in env])) == {
        "A": "one",
        "B": "one-$(C)",
        "C": "three",
        "D": "$(A)",
        "E": "$one",
        "F": "$(A",
        "G": "${A} $A $",
        "H": "$()x$y",
        "I": "one-$(C)",
        "J": "pq",
    }


def field(path):
    return {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "ns"),
        ("metadata.uid", "u-1"),
        ("metadata.labels['app']", "web"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['kubernetes.io/config.source']", "file"),
        ("spec.nodeName", "node-1"),
        ("spec.serviceAccountName", ""),
        ("status.hostIP", "192.0.2.7"),
        ("status.hostIPs", "192.0.2.7,2001:db8::7"),
        ("status.podIP", "10.1.0.2"),
        ("status.podIPs", "10.1.0.2,fd00::2"),
    ],
)
def test_field_refs(path, value):
    pod = make([field(path)], annotations=STATIC, nodeName="node-1")
    assert run(pod, pod_ips=("10.1.0.2", "fd00::2")) == {"X": value}


def test_on_the_host_network_the_pod_has_the_addresses_of_the_node():
    assert run(make([field("status.podIP")], hostNetwork=True), pod_ips=()) == {"X": "192.0.2.7"}


@pytest.mark.parametrize("path", ["metadata.labels", "status.phase", "spec.nodename", ""])
def test_unknown_field_refs_are_refused(path):
    with pytest.raises(ContainerConfigError, match="unsupported fieldPath"):
        run(make([field(path)]))


def resource(name, divisor=None, container=None):
    ref = {"resource": name, "divisor": divisor, "containerName": container}
    return {"name": "X", "valueFrom": {"resourceFieldRef": {k: v for k, v in ref.items() if v is not None}}}


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        (resource("limits.cpu"), "1"),
        (resource("limits.cpu", "0"), "1"),
        (resource("limits.cpu", "1m"), "250"),
        (resource("requests.cpu", "1m"), "250"),
        (resource("limits.memory"), "33554432"),
        (resource("limits.memory", "1Gi"), "1"),
        (resource("limits.memory", "1Mi"), "32"),
        (resource("limits.hugepages-2Mi", "1Mi"), "4"),
        (resource("limits.ephemeral-storage", "1Gi"), "10"),
        (resource("requests.ephemeral-storage"), "0"),
    ],
)
def test_resource_refs_round_up_and_default_to_the_node(entry, value):
    limits = {"cpu": "250m", "memory": "32Mi", "hugepages-2Mi": "4Mi"}
    assert run(make([entry], resources={"limits": limits})) == {"X": value}


def test_resource_refs_without_limits():
    assert run(make([resource("limits.cpu")])) == {"X": "2"}
    assert run(make([resource("limits.cpu", "1m")])) == {"X": "1930"}
    assert run(make([resource("limits.memory", "1Gi")])) == {"X": "8"}
    pod = make([resource("limits.memory", "1Gi")])
    pod["spec"]["resources"] = {"limits": {"memory": "2Gi"}}
    assert run(pod) == {"X": "2"}


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (resource("limits.gpu"), "unsupported container resource: limits.gpu"),
        (resource("limits.cpu", container="zz"), "container zz not found"),
        (resource("limits.cpu", "-1"), "below zero"),
        (resource("limits.cpu", "1x"), "not a quantity"),
    ],
)
def test_bad_resource_refs(entry, text):
    with pytest.raises(ContainerConfigError, match=text):
        run(make([entry]))


FILES = {"v:f.env": "K='file'", "v:bad.env": "K"}
LOOKUP = Objects({"ns/cm": {"a": "1", "b.c": "2"}}, {"ns/s": {"a": "hidden"}}, FILES)
OPTIONAL = {"optional": True}


def key(kind, **ref):
    return {"name": "X", "valueFrom": {kind: ref}}


def test_env_over_env_from_over_services():
    services = [
        {"metadata": {"name": "a", "namespace": "ns"}, "spec": {"clusterIP": "10.0.0.1", "ports": []}}
    ]
    sources = [
        {"configMapRef": {"name": "cm"}},
        {"prefix": "S_", "secretRef": {"name": "s"}},
        {"secretRef": {"name": "s"}},
        {"configMapRef": {"name": "gone", "optional": True}},
    ]
    env = [{"name": "b.c", "value": "own"}, {"name": "REF", "value": "$(S_a) $(a) $(A_SERVICE_HOST)"}]
    assert run(make(env, sources), lookup=LOOKUP, services=services) == {
        "a": "hidden",
        "b.c": "own",
        "S_a": "hidden",
        "REF": "hidden hidden 10.0.0.1",
        "A_SERVICE_HOST": "10.0.0.1",
    }


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        (key("configMapKeyRef", name="cm", key="a"), {"X": "1"}),
        (key("secretKeyRef", name="s", key="a"), {"X": "hidden"}),
        (key("fileKeyRef", volumeName="v", path="f.env", key="K"), {"X": "file"}),
        (key("configMapKeyRef", name="cm", key="z", **OPTIONAL), {}),
        (key("configMapKeyRef", name="zz", key="a", **OPTIONAL), {}),
        (key("secretKeyRef", name="zz", key="a", **OPTIONAL), {}),
        (key("fileKeyRef", volumeName="v", path="none", key="K", **OPTIONAL), {}),
    ],
)
def test_references_to_objects(entry, value):
    assert run(make([entry]), lookup=LOOKUP, files=LOOKUP.file) == value


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (key("configMapKeyRef", name="cm", key="z"), "couldn't find key z in ConfigMap ns/cm"),
        (key("secretKeyRef", name="s", key="z"), "couldn't find key z in Secret ns/s"),
        (key("configMapKeyRef", name="zz", key="a"), 'configmap "zz" not found'),
        (key("secretKeyRef", name="zz", key="a"), 'secret "zz" not found'),
        (key("fileKeyRef", volumeName="v", path="f.env", key="Z"), 'key "Z" not found in file "f.env"'),
        (key("fileKeyRef", volumeName="v", path="none", key="K"), 'key "K" not found in file "none"'),
        (key("fileKeyRef", volumeName="v", path="bad.env", key="K", **OPTIONAL), "couldn't parse env file"),
        (key("somethingNew", name="x"), "unknown source somethingNew"),
    ],
)
def test_missing_objects_and_keys(entry, text):
    with pytest.raises(ContainerConfigError, match=text):
        run(make([entry]), lookup=LOOKUP, files=LOOKUP.file)


@pytest.mark.parametrize(
    "pod",
    [
        make([key("secretKeyRef", name="s", key="a")]),
        make([], [{"configMapRef": {"name": "s"}}]),
    ],
)
def test_without_an_api_server_references_are_refused(pod):
    with pytest.raises(ContainerConfigError, match="needs the API server") as caught:
        run(pod)
    assert "kubeconfig" in caught.value.fix


def test_services_that_were_never_read():
    with pytest.raises(ContainerConfigError, match="services have not yet been read"):
        run(make(), services=None)
    assert run(make([{"name": "A"}], annotations=STATIC), services=None) == {"A": ""}


# ---------------------------------------------------------------- services


def service(name, namespace="ns", ip="10.0.0.1", ports=()):
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterIP": ip, "ports": list(ports)},
    }


def test_variables_of_a_service():
    ports = [{"name": "web-ui", "port": 80}, {"port": 53, "protocol": "UDP"}]
    assert service_variables(make(), [service("my-svc", ports=ports)]) == {
        "MY_SVC_SERVICE_HOST": "10.0.0.1",
        "MY_SVC_SERVICE_PORT": "80",
        "MY_SVC_SERVICE_PORT_WEB_UI": "80",
        "MY_SVC_PORT": "tcp://10.0.0.1:80",
        "MY_SVC_PORT_80_TCP": "tcp://10.0.0.1:80",
        "MY_SVC_PORT_80_TCP_PROTO": "tcp",
        "MY_SVC_PORT_80_TCP_PORT": "80",
        "MY_SVC_PORT_80_TCP_ADDR": "10.0.0.1",
        "MY_SVC_PORT_53_UDP": "udp://10.0.0.1:53",
        "MY_SVC_PORT_53_UDP_PROTO": "udp",
        "MY_SVC_PORT_53_UDP_PORT": "53",
        "MY_SVC_PORT_53_UDP_ADDR": "10.0.0.1",
    }


def test_an_address_of_version_6_is_bracketed():
    found = service_variables(make(), [service("s", ip="fd00::1", ports=[{"port": 1}])])
    assert found["S_PORT"] == "tcp://[fd00::1]:1"


def test_which_services_are_told():
    listed = [
        service("a"),
        service("kubernetes", "default", "10.0.0.2"),
        service("b", "other"),
        service("headless", ip="None"),
        service("external", ip=""),
    ]
    assert service_variables(make(), listed) == {
        "A_SERVICE_HOST": "10.0.0.1",
        "KUBERNETES_SERVICE_HOST": "10.0.0.2",
    }
    assert service_variables(make(enableServiceLinks=False), listed) == {
        "KUBERNETES_SERVICE_HOST": "10.0.0.2"
    }
    own = service("kubernetes", "ns", "10.0.0.3")
    for order in ([*listed, own], [own, *listed]):
        assert service_variables(make(), order)["KUBERNETES_SERVICE_HOST"] == "10.0.0.3"
