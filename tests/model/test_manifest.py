"""Manifests from bytes to static pods: types, unknown fields, names, uids, refusals."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.model.manifest import InvalidManifest, decode, static_pods
from kubelet_mp.model.podschema import TYPES
from kubelet_mp.model.staticpod import Origin, fnv128a

FILE = Origin("file", "/m/web.yaml", "edge-01")
HTTP = Origin("http", "http://h/pods", "edge-01")
BASE = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "c", "image": "busybox:1"}]},
}


def manifest(**spec):
    return {**BASE, "spec": {**BASE["spec"], **spec}}


def static(pod, origin=FILE, **more):
    return static_pods(yaml.safe_dump(pod).encode(), origin, "T", **more).pods[0]


def refused(data, **more):
    with pytest.raises(InvalidManifest) as caught:
        static_pods(data if isinstance(data, bytes) else json.dumps(data).encode(), FILE, "T", **more)
    assert str(caught.value).startswith('cannot use manifest "/m/web.yaml": ')
    return caught.value


def test_a_static_pod_belongs_to_its_node():
    pod = static(BASE)
    uid = pod["metadata"]["uid"]
    assert len(uid) == 32 and int(uid, 16)
    assert pod["metadata"] == {
        "name": "web-edge-01", "namespace": "default", "uid": uid,
        "annotations": {"kubernetes.io/config.hash": uid, "kubernetes.io/config.source": "file",
                        "kubernetes.io/config.seen": "T"},
    }
    assert pod["spec"]["nodeName"] == "edge-01"
    assert pod["spec"]["tolerations"] == [{"operator": "Exists", "effect": "NoExecute"}]
    assert pod["status"] == {"phase": "Pending"}


def test_the_toleration_is_for_files_only_and_not_doubled():
    assert "tolerations" not in static(BASE, HTTP)["spec"]
    given_ = [{"key": "a", "operator": "Exists"},
              {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]
    assert static(manifest(tolerations=given_))["spec"]["tolerations"] == [
        {"key": "a", "operator": "Exists"}, {"operator": "Exists", "effect": "NoExecute"},
    ]


def test_the_uid_is_stable_and_follows_content_and_origin():
    uids = {
        static(pod, origin)["metadata"]["uid"]
        for pod in (BASE, manifest(hostNetwork=True))
        for origin in (FILE, HTTP, Origin("file", "/m/b", "edge-01"), Origin("file", "/m/web.yaml", "other"))
    }
    assert len(uids) == 8
    # pinned: a new version that gives another uid restarts every static pod
    assert static(BASE)["metadata"]["uid"] == "f9721646cbf2577a647cd800cbc00fb7"
    same = b"spec: {containers: [{image: 'busybox:1', name: c}], restartPolicy: Always}\n# formatted otherwise\n" \
           b"metadata: {name: web}\nkind: Pod\napiVersion: v1\n"
    assert static_pods(same, FILE, "later").pods[0]["metadata"]["uid"] == static(BASE)["metadata"]["uid"]
    # an http source does not mix the node's name in
    assert static(BASE, HTTP)["metadata"]["uid"] == static(BASE, Origin("http", HTTP.place, "n2"))["metadata"]["uid"]


def test_fnv128a_matches_its_published_vectors():
    assert f"{fnv128a(b''):032x}" == "6c62272e07bb014262b821756295c58d"
    assert f"{fnv128a(b'a'):032x}" == "d228cb696f1a8caf78912b704e4a8964"
    assert f"{fnv128a(b'foobar'):032x}" == "343e1662793c64bf6f0d3597ba446f18"
    assert fnv128a(b"bar", fnv128a(b"foo")) == fnv128a(b"foobar")


def test_a_given_uid_stays_if_it_is_safe():
    pod = {**BASE, "metadata": {"name": "web", "uid": "my-uid.1"}}
    assert static(pod)["metadata"]["annotations"]["kubernetes.io/config.hash"] == "my-uid.1"
    for uid in ("../../etc", "..", "a/b", "a\nb", "x" * 129):
        assert "metadata.uid: Invalid value" in str(refused({**BASE, "metadata": {"name": "web", "uid": uid}}))


def test_what_only_a_live_object_has_is_dropped():
    live = {**BASE, "status": {"phase": "Running"}, "metadata": {
        "name": "web", "deletionTimestamp": "2020-01-01T00:00:00Z", "managedFields": [{"manager": "x"}],
        "annotations": {"kubernetes.io/config.mirror": "x", "a": "b"}, "creationTimestamp": None}}
    pod = static(live)
    assert pod["metadata"]["annotations"].keys() - static(BASE)["metadata"]["annotations"].keys() == {"a"}
    assert not pod["metadata"].keys() & {"deletionTimestamp", "managedFields", "creationTimestamp"}
    assert pod["status"] == {"phase": "Pending"}


def test_types_are_checked_with_the_path_of_the_field():
    pod = manifest(hostNetwork="yes", terminationGracePeriodSeconds=1.5, containers=[{
        "name": True, "image": "x", "env": [{"name": "A", "value": "x"}, {"name": "B", "value": True},
                                            {"name": "C", "value": 8080}],
        "ports": [{"containerPort": "80"}, {"containerPort": 2**31}], "resources": {"limits": {"cpu": "x"}},
        "args": "text", "command": [["a"]], "livenessProbe": {"httpGet": {"port": []}}, "securityContext": 3}])
    got = refused(pod)
    assert list(got.problems) == [
        "spec.containers[0].name: Invalid value: true: must be text, not a boolean; quote it in YAML",
        "spec.containers[0].env[1].value: Invalid value: true: must be text, not a boolean; quote it in YAML",
        "spec.containers[0].env[2].value: Invalid value: 8080: must be text, not a number; quote it in YAML",
        'spec.containers[0].ports[0].containerPort: Invalid value: "80": must be a whole number, not text',
        "spec.containers[0].ports[1].containerPort: Invalid value: 2147483648: must fit in 32 bits",
        "spec.containers[0].resources.limits[cpu]: Invalid value: \"x\": 'x' is not a quantity; write it like "
        "100m, 64Mi or 2",
        'spec.containers[0].args: Invalid value: "text": must be a list',
        'spec.containers[0].command[0]: Invalid value: ["a"]: must be text, not a list',
        "spec.containers[0].livenessProbe.httpGet.port: Invalid value: []: must be a whole number, not a list",
        "spec.containers[0].securityContext: Invalid value: 3: must be an object",
        'spec.hostNetwork: Invalid value: "yes": must be true or false, not text',
        "spec.terminationGracePeriodSeconds: Invalid value: 1.5: must be a whole number, not a number",
    ]
    assert got.pod == "default/web"


def test_numbers_become_quantities_and_null_is_absent():
    pod = static(manifest(priority=None, volumes=None, containers=[{
        "name": "c", "image": "x:1", "command": ["a", None], "env": None,
        "resources": {"limits": {"cpu": 0.5, "memory": 1073741824}, "requests": {"cpu": 0.25, "memory": "1024Mi"}}}]))
    container = pod["spec"]["containers"][0]
    assert container["resources"] == {
        "limits": {"cpu": "500m", "memory": "1073741824"}, "requests": {"cpu": "250m", "memory": "1Gi"},
    }
    assert container["command"] == ["a", ""] and not {"env", "priority", "volumes"} & {*container, *pod["spec"]}


def test_unknown_fields_are_dropped_with_a_warning():
    pod = manifest(Containers=[], nodeNam="x", containers=[{"name": "c", "image": "x", "imagepullpolicy": "Never"}])
    decoded = static_pods(json.dumps(pod).encode(), FILE, "T")
    assert decoded.warnings == [
        "spec.containers[0].imagepullpolicy: unknown field, ignored; did you mean imagePullPolicy?",
        "spec.Containers: unknown field, ignored; did you mean containers?",
        "spec.nodeNam: unknown field, ignored; did you mean nodeName?",
    ]
    assert not {"Containers", "nodeNam"} & decoded.pods[0]["spec"].keys()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"half: [", "not valid YAML"), (b"just text", "the document is no object"), (b"[1]", "is no object"),
        (b"kind: Pod", "apiVersion is missing"), (b"a: b", "apiVersion and kind is missing"),
        (b"apiVersion: apps/v1\nkind: Deployment", "it is a apps/v1 Deployment, must be a v1 Pod"),
        (b"apiVersion: v1\nkind: PodList\nitems: []", "it is a v1 PodList"),
        (b"apiVersion: v1\nkind: Pod", "name is needed for the pod"),
        (b"apiVersion: v1\nkind: Pod\nmetadata: {name: a}", "spec.containers: Required value"),
        (b"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n", "spec.containers: Required value"),
    ],
)
def test_what_is_no_pod_is_refused(data, message):
    assert message in str(refused(data))


REFERENCES = {
    "serviceaccounts": {"serviceAccountName": "x"},
    "secrets": {"imagePullSecrets": [{"name": "x"}]},
    "configmaps": {"containers": [{"name": "c", "image": "x", "envFrom": [{"configMapRef": {"name": "x"}}]}]},
    "resourceclaims": {"resourceClaims": [{"name": "x", "resourceClaimName": "y"}]},
    "persistentvolumeclaims": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]},
    "persistentvolumeclaims (via ephemeral volumes)": {"volumes": [{"name": "v", "ephemeral": {
        "volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}]},
    "csidrivers (via CSI volumes)": {"volumes": [{"name": "v", "csi": {"driver": "x"}}]},
    "endpoints (via glusterFS volumes)": {"volumes": [{"name": "v", "glusterfs": {"endpoints": "e", "path": "p"}}]},
    "clustertrustbundles": {"volumes": [{"name": "v", "projected": {"sources": [
        {"clusterTrustBundle": {"name": "x", "path": "p"}}]}}]},
    "serviceaccounts (via projected volumes)": {"volumes": [{"name": "v", "projected": {"sources": [
        {"serviceAccountToken": {"path": "p"}}]}}]},
}


@pytest.mark.parametrize(("what", "spec"), REFERENCES.items())
def test_api_objects_cannot_be_referred_to(what, spec):
    assert refused(manifest(**spec)).problems[-1] == f"static pods may not reference {what}"


@pytest.mark.parametrize("spec", [
    {"volumes": [{"name": "v", "secret": {"secretName": "x"}}]},
    {"volumes": [{"name": "v", "azureFile": {"secretName": "x", "shareName": "s"}}]},
    {"volumes": [{"name": "v", "flexVolume": {"driver": "d", "secretRef": {"name": "x"}}}]},
    {"initContainers": [{"name": "i", "image": "x", "env": [
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "x", "key": "k"}}}]}]},
])
def test_secrets_are_found_wherever_they_hide(spec):
    assert refused(manifest(**spec)).problems[-1] == "static pods may not reference secrets"


def test_what_needs_no_api_server_is_allowed():
    volumes = [{"name": "a", "hostPath": {"path": "/x"}}, {"name": "b", "emptyDir": {}},
               {"name": "c", "nfs": {"server": "s", "path": "/p"}}, {"name": "d", "image": {"reference": "x"}},
               {"name": "e", "downwardAPI": {"items": [
                   {"path": "l", "fieldRef": {"fieldPath": "metadata.labels['a.b/c']"}}]}}]
    assert len(static(manifest(volumes=volumes))["spec"]["volumes"]) == 5


def test_a_list_is_taken_whole_or_not_at_all():
    pods = {"apiVersion": "v1", "kind": "PodList", "items": [
        {"metadata": {"name": "a"}, "spec": BASE["spec"]}, {**BASE, "metadata": {"name": "b", "namespace": "n"}}]}
    decoded = static_pods(json.dumps(pods).encode(), HTTP, "T", lists=True)
    assert [pod["metadata"]["name"] for pod in decoded.pods] == ["a-edge-01", "b-edge-01"]
    pods["items"].append({"metadata": {"name": "c"}, "spec": {"containers": 5}})
    assert "items[2].spec.containers: Invalid value: 5" in str(refused(pods, lists=True))
    empty = b'{"apiVersion": "v1", "kind": "PodList"}'
    assert static_pods(empty, HTTP, "T", lists=True).pods == []


def test_priorities_that_mislead_are_warned_of():
    assert "no effect" in static_pods(json.dumps(manifest(priorityClassName="x")).encode(), FILE, "T").warnings[0]
    critical = manifest(priorityClassName="system-node-critical", priority=2000001000)
    assert static_pods(json.dumps(critical).encode(), FILE, "T").warnings == []


scalars = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) \
    | st.text(max_size=6)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


def shaped(kind, depth=0):
    """Values that mostly have the right shape, so that the checks below the decoder are reached."""
    if kind[0] == "[":
        return st.lists(shaped(kind[1:-1], depth), max_size=2)
    if kind[0] == "{":
        return st.dictionaries(st.text("a/.-", max_size=3), shaped(kind[1:-1], depth), max_size=2)
    if kind[0].isupper():
        if depth > 5:
            return st.just({})
        fields = TYPES[kind]
        return st.lists(st.sampled_from(sorted(fields)), max_size=4, unique=True).flatmap(
            lambda names: st.fixed_dictionaries({name: shaped(fields[name], depth + 1) for name in names}))
    return {"str": st.sampled_from(["", "a", "a-b", "/x", "../y", "Always", " b"]), "bool": st.booleans(),
            "int32": st.integers(-1, 70000), "int64": st.integers(-1, 2**32), "any": anything,
            "quantity": st.sampled_from(["1", "-1", "1Gi", 0.5, 3]), "time": st.just("2020-01-01T00:00:00Z"),
            "intstr": st.integers(0, 3) | st.sampled_from(["http", "-"])}[kind]


@given(st.one_of(shaped("PodSpec"), anything), st.one_of(shaped("ObjectMeta"), anything))
def test_any_spec_gives_a_pod_or_an_invalid_manifest(spec, metadata):
    data = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}).encode()
    try:
        pod = static_pods(data, FILE, "T").pods[0]
    except InvalidManifest as error:
        assert error.problems
        return
    again = json.dumps(pod).encode()
    assert decode(again, "x").pods[0]["spec"] == pod["spec"]


@given(st.binary(max_size=300))
def test_any_bytes_give_pods_or_an_invalid_manifest(data):
    with pytest.raises(InvalidManifest):
        static_pods(data, FILE, "T", lists=True)
