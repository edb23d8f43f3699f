from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.model.cgroupnames import (
    cgroup_parent,
    kubepods_name,
    path,
    pod_name,
    pod_uid,
    qos_name,
    slice_name,
)

UID = "0f3c-12"
PARENT = "/kubepods.slice/kubepods-burstable.slice"


@pytest.mark.parametrize(
    ("qos", "driver", "root", "expected"),
    [
        ("Guaranteed", "cgroupfs", "", f"/kubepods/pod{UID}"),
        ("Burstable", "cgroupfs", "", f"/kubepods/burstable/pod{UID}"),
        ("BestEffort", "cgroupfs", "/", f"/kubepods/besteffort/pod{UID}"),
        ("Burstable", "cgroupfs", "/a/b-c", f"/a/b-c/kubepods/burstable/pod{UID}"),
        ("Guaranteed", "systemd", "", "/kubepods.slice/kubepods-pod0f3c_12.slice"),
        ("Burstable", "systemd", "", f"{PARENT}/kubepods-burstable-pod0f3c_12.slice"),
        ("Guaranteed", "systemd", "/b-c", "/b_c.slice/b_c-kubepods.slice/b_c-kubepods-pod0f3c_12.slice"),
    ],
)
def test_cgroup_parent(qos, driver, root, expected):
    assert cgroup_parent(UID, qos, driver, root) == expected


def test_without_cgroups_per_qos_the_root_alone_is_the_parent():
    assert cgroup_parent(UID, "Burstable", "systemd", "/a", per_qos=False) == "/a"
    assert cgroup_parent(UID, "Burstable", "cgroupfs", "", per_qos=False) == ""


def test_names_above_the_pods():
    assert path(kubepods_name(), "cgroupfs") == "/kubepods"
    assert path(kubepods_name(), "systemd") == "/kubepods.slice"
    assert path(qos_name("BestEffort"), "systemd") == "/kubepods.slice/kubepods-besteffort.slice"
    assert qos_name("Guaranteed", "/x") == ("x", "kubepods")
    assert path((), "cgroupfs") == path((), "systemd") == "/"
    assert slice_name(()) == "-.slice"


@pytest.mark.parametrize(
    ("leaf", "driver", "uid"),
    [
        ("pod1-2", "cgroupfs", "1-2"),
        ("kubepods-burstable-pod1_2.slice", "systemd", "1-2"),
        ("kubepods-pod1_2.slice", "systemd", "1-2"),
        ("burstable", "cgroupfs", None),
        ("pod", "cgroupfs", None),
        ("kubepods-burstable.slice", "systemd", None),
    ],
)
def test_the_pod_that_a_directory_stands_for(leaf, driver, uid):
    assert pod_uid(leaf, driver) == uid


@given(
    st.uuids(),
    st.sampled_from(["Guaranteed", "Burstable", "BestEffort"]),
    st.sampled_from(["cgroupfs", "systemd"]),
)
def test_the_uid_is_found_again_in_the_name(uid, qos, driver):
    leaf = path(pod_name(str(uid), qos), driver).rpartition("/")[2]
    assert pod_uid(leaf, driver) == str(uid)
