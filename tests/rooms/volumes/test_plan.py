from typing import Any

import pytest

from kubelet_mp.rooms.volumes.dirs import Dirs, is_safe
from kubelet_mp.rooms.volumes.orphans import PATIENCE, Suspects
from kubelet_mp.rooms.volumes.plan import fs_user, needed, references, type_of, unsupported
from kubelet_mp.rooms.volumes.podstate import LONGEST, PodState, VolumeState


def pod(volumes: list[dict[str, Any]], *mounted: str) -> dict[str, Any]:
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in mounted]
    return {"metadata": {"uid": "u", "name": "p", "namespace": "d"},
            "spec": {"volumes": volumes, "containers": [{"name": "c", "volumeMounts": mounts}]}}


def test_only_volumes_that_a_container_mounts_are_needed():
    one = pod([{"name": n, "emptyDir": {}} for n in ("a", "b", "c", "d")], "a")
    one["spec"]["initContainers"] = [{"name": "i", "volumeMounts": [{"name": "b"}]}]
    one["spec"]["ephemeralContainers"] = [{"name": "e", "volumeDevices": [{"name": "c"}]}]
    assert set(needed(one)) == {"a", "b", "c"}


@pytest.mark.parametrize(("source", "says"), [
    ({"secret": {}}, "secret volumes need the API server"),
    ({"persistentVolumeClaim": {}}, "persistentVolumeClaim volumes need the API server"),
    ({"iscsi": {}}, "iscsi volumes are not supported yet"),
    ({"projected": {"sources": [{"downwardAPI": {}}, {"secret": {}}, {"configMap": {}}]}},
     "projected volumes with configMap, secret need the API server"),
    ({"projected": {"sources": [{"downwardAPI": {}}]}}, ""),
    ({"emptyDir": {}}, ""),
    ({"hostPath": {"path": "/"}}, ""),
    ({"image": {}}, ""),
    ({}, ""),
])  # fmt: skip
def test_what_cannot_be_done_is_said(source: dict[str, Any], says: str):
    why = unsupported({"name": "v", **source})
    assert why.startswith(says) and bool(why) is bool(says)


@pytest.mark.parametrize(("source", "says"), [
    ({"secret": {}}, ""),
    ({"configMap": {}}, ""),
    ({"projected": {"sources": [{"serviceAccountToken": {}}, {"configMap": {}}, {"secret": {}}]}}, ""),
    ({"projected": {"sources": [{"podCertificate": {}}, {"clusterTrustBundle": {}}]}}, ""),
    ({"projected": {"sources": [{"later": {}}]}}, "projected volumes with later are not supported yet"),
    ({"persistentVolumeClaim": {}}, "persistentVolumeClaim volumes are not supported yet"),
    ({"csi": {}}, "csi volumes are not supported yet"),
])  # fmt: skip
def test_what_cannot_be_done_with_an_api_server(source: dict[str, Any], says: str):
    assert unsupported({"name": "v", **source}, api=True) == says


def test_references_are_single_objects():
    both = {"name": "v", "projected": {"sources": [{"configMap": {"name": "a"}}, {"secret": {"name": "b"}}]}}
    assert references(both, "ns") == {("configmap", "ns", "a"), ("secret", "ns", "b")}
    assert references({"name": "v", "secret": {"secretName": "s"}}, "ns") == {("secret", "ns", "s")}
    assert references({"name": "v", "emptyDir": {}}, "ns") == frozenset()


def test_the_one_user_of_all_containers():
    def of(common: int | None, *own: int | None) -> int | None:
        containers = [{"name": "c", "securityContext": {} if user is None else {"runAsUser": user}} for user in own]
        context = {} if common is None else {"runAsUser": common}
        return fs_user({"spec": {"securityContext": context, "containers": containers}})

    assert of(None, None) is None and of(5, None, None) == 5 and of(5, None, 6) is None
    assert of(None, 0, 0) == 0 and of(None, 7, None) is None


def test_type_is_the_source_that_is_given():
    assert type_of({"name": "v", "hostPath": None, "nfs": {}}) == "nfs"
    assert type_of({"name": "v"}) == "emptyDir"


def test_delays_double_up_to_two_minutes_and_start_anew_after_success():
    state = VolumeState({"name": "v"})
    assert [state.fail("no") for _ in range(3)] == [0.5, 1.0, 2.0]
    assert [state.fail("no") for _ in range(9)][-1] == LONGEST
    state.stand("/p")
    assert state.fail("no") == 0.5


def test_reports_come_when_all_stands_or_something_is_wrong():
    state = PodState({})
    state.take(pod([{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}], "a", "b"))
    assert state.report("u") is None
    state.volumes["a"].stand("/a")
    state.volumes["b"].fail("broken")
    report = state.report("u")
    assert report is not None
    assert (report.paths, report.problem, report.pending) == ({"a": "/a"}, "broken", ("b",))
    state.volumes["b"].stand("/b")
    report = state.report("u")
    assert report is not None and (report.problem, report.pending) == ("", ())


def test_a_changed_pod_keeps_what_stands():
    state = PodState({})
    volumes = [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]
    assert state.take(pod(volumes, "a", "b")) is True
    state.volumes["a"].stand("/a")
    assert state.take(pod(volumes, "a", "b")) is False
    assert state.take(pod([volumes[0], {"name": "b", "hostPath": {"path": "/x"}}], "a", "b")) is True
    assert state.volumes["a"].path == "/a" and "hostPath" in state.volumes["b"].volume


def test_a_directory_is_orphaned_when_no_pod_came_for_a_while():
    suspects = Suspects()
    assert suspects.look(["a", "b"], ["b"], 100.0) == []
    assert suspects.look(["a", "b"], ["b"], 100.0 + PATIENCE / 2) == []
    assert suspects.look(["a", "b"], ["b"], 100.0 + PATIENCE) == ["a"]
    assert suspects.look(["a"], ["a"], 200.0) == [] and not suspects
    assert suspects.look(["a"], [], 300.0) == []


def test_paths_and_unsafe_uids():
    dirs = Dirs("/r")
    assert dirs.volume("u", "kubernetes.io/empty-dir", "v") == "/r/pods/u/volumes/kubernetes.io~empty-dir/v"
    assert dirs.marker("u", "v") == "/r/pods/u/plugins/kubernetes.io~empty-dir/v"
    assert [is_safe(uid) for uid in ("a-1", "", ".", "..", "a/b")] == [True, False, False, False, False]
