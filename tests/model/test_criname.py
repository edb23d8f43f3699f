from __future__ import annotations

import json

import pytest

from kubelet_mp.model import criname
from kubelet_mp.model.containerhash import container_hash, fnv32a

POD = {
    "metadata": {
        "name": "p",
        "namespace": "ns",
        "uid": "u-1",
        "labels": {"app": "web"},
        "annotations": {"kubernetes.io/config.source": "file"},
    },
    "spec": {"terminationGracePeriodSeconds": 30},
}
IDENTITY = {
    "io.kubernetes.pod.name": "p",
    "io.kubernetes.pod.namespace": "ns",
    "io.kubernetes.pod.uid": "u-1",
}


@pytest.mark.parametrize(("data", "value"), [(b"", 0x811C9DC5), (b"a", 0xE40C292C), (b"foobar", 0xBF9CF968)])
def test_fnv32a(data, value):
    assert fnv32a(data) == value


def test_container_hash_vector_and_what_it_covers():
    base = {"image": "foo/image:v1", "name": "test_container"}
    assert container_hash(base) == "8e45cbd0"
    assert (
        container_hash(base | {"env": [{"name": "A"}], "resources": {"limits": {"cpu": "1"}}}) == "8e45cbd0"
    )
    assert container_hash(base | {"image": "foo/image:v2"}) != "8e45cbd0"


def test_labels():
    assert criname.sandbox_labels(POD) == {"app": "web", **IDENTITY}
    assert criname.sandbox_annotations(POD) == {"kubernetes.io/config.source": "file"}
    assert criname.container_labels(POD, {"name": "c"}) == {**IDENTITY, "io.kubernetes.container.name": "c"}


def test_annotations_of_a_container():
    container = {
        "name": "c",
        "image": "i",
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "lifecycle": {"preStop": {"exec": {"command": ["a", "<b>"]}}},
        "ports": [{"protocol": "TCP", "containerPort": 80, "name": "web", "hostPort": 0}],
    }
    found = criname.container_annotations(POD, container, 3, {"vendor": "x"})
    assert json.loads(found.pop("io.kubernetes.container.preStopHandler")) == {
        "exec": {"command": ["a", "<b>"]}
    }
    assert found == {
        "vendor": "x",
        "io.kubernetes.container.hash": container_hash(container),
        "io.kubernetes.container.restartCount": "3",
        "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
        "io.kubernetes.container.terminationMessagePolicy": "File",
        "io.kubernetes.pod.terminationGracePeriod": "30",
        "io.kubernetes.container.ports": '[{"name":"web","containerPort":80,"protocol":"TCP"}]',
    }


def test_annotations_of_a_pod_that_is_being_deleted():
    pod = {"metadata": {**POD["metadata"], "deletionGracePeriodSeconds": 0}, "spec": {}}
    found = criname.container_annotations(pod, {"name": "c"}, 0)
    assert found["io.kubernetes.pod.deletionGracePeriod"] == "0"
    assert "io.kubernetes.pod.terminationGracePeriod" not in found
    assert "io.kubernetes.container.ports" not in found


def test_log_paths():
    directory = criname.pod_log_dir("/var/log/pods", POD)
    assert directory == "/var/log/pods/ns_p_u-1"
    assert criname.parse_pod_log_dir("ns_p_u-1") == ("ns", "p", "u-1")
    assert criname.parse_pod_log_dir("lost+found") is None
    assert criname.container_log_path("c", 2) == "c/2.log"


def test_log_links_are_cut_to_the_length_of_a_file_name():
    identifier = "f" * 64
    name = criname.log_link_name("p", "ns", "c", identifier)
    assert name == f"p_ns_c-{identifier}.log"
    assert criname.parse_log_link(name) == identifier
    long = criname.log_link_name("p" * 253, "ns", "c", identifier)
    assert len(long) == 255
    assert long.endswith(".log")
    assert criname.parse_log_link(long) is None


@pytest.mark.parametrize(
    ("last", "log", "count"), [(None, None, 0), (None, 4, 5), (0, None, 1), (2, 9, 3), (None, 0, 1)]
)
def test_restart_count(last, log, count):
    assert criname.restart_count(last, log) == count
