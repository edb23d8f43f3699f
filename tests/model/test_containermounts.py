from __future__ import annotations

import pytest

from kubelet_mp.errors import ContainerConfigError
from kubelet_mp.model.containermounts import (
    BlockDevice,
    MountedVolume,
    SubPath,
    block_devices,
    sub_paths,
    subpaths_to_prepare,
    volume_mounts,
)

VOLUMES = [
    {"name": "v", "emptyDir": {}},
    {"name": "cm", "configMap": {"name": "x"}},
    {"name": "proj", "projected": {}},
    {"name": "nfs", "nfs": {"server": "s", "path": "/", "readOnly": True}},
    {"name": "img", "image": {"reference": "repo/app:v1"}},
]
MOUNTED = {name: MountedVolume(f"/host/{name}") for name in ("v", "cm", "proj", "nfs")} | {
    "img": MountedVolume(image="sha256:1")
}


def mount(name="v", path="/m", **extra):
    return {"name": name, "mountPath": path, **extra}


def container(*mounts, **extra):
    return {"name": "c", "volumeMounts": list(mounts), **extra}


def run(*mounts, prepared=None, env=None, volumes=MOUNTED, **given):
    pod = {"spec": {"volumes": VOLUMES}}
    return volume_mounts(pod, container(*mounts), volumes, prepared or {}, env or {}, **given)


def test_a_plain_mount():
    assert run(mount(path="m")) == [
        {
            "container_path": "/m",
            "readonly": False,
            "propagation": "PROPAGATION_PRIVATE",
            "recursive_read_only": False,
            "selinux_relabel": False,
            "host_path": "/host/v",
        }
    ]


@pytest.mark.parametrize(
    ("given_mount", "expected"),
    [
        (mount(), False),
        (mount(readOnly=True), True),
        (mount("cm"), True),
        (mount("proj"), True),
        (mount("nfs"), True),
        (mount("img"), True),
    ],
)
def test_read_only(given_mount, expected):
    assert run(given_mount)[0]["readonly"] is expected


def test_what_the_volume_says_of_itself():
    volumes = {"v": MountedVolume("/x", read_only=True, relabel=True)}
    assert run(mount(), volumes=volumes)[0]["readonly"]
    assert not run(mount(), volumes=volumes)[0]["selinux_relabel"]
    assert run(mount(), volumes=volumes, selinux=True)[0]["selinux_relabel"]


def test_propagation():
    found = run(
        mount(mountPropagation="HostToContainer"),
        mount(mountPropagation="Bidirectional"),
        mount(mountPropagation="None"),
    )
    assert [m["propagation"] for m in found] == [
        "PROPAGATION_HOST_TO_CONTAINER",
        "PROPAGATION_BIDIRECTIONAL",
        "PROPAGATION_PRIVATE",
    ]
    with pytest.raises(ContainerConfigError, match='invalid MountPropagation mode: "Odd"'):
        run(mount(mountPropagation="Odd"))


@pytest.mark.parametrize(
    ("mode", "supported", "expected"),
    [
        ("Disabled", True, False),
        ("IfPossible", False, False),
        ("IfPossible", True, True),
        ("Enabled", True, True),
    ],
)
def test_recursive_read_only(mode, supported, expected):
    found = run(mount(readOnly=True, recursiveReadOnly=mode), rro=supported)
    assert found[0]["recursive_read_only"] is expected


@pytest.mark.parametrize(
    ("extra", "text"),
    [
        ({"recursiveReadOnly": "Enabled"}, "but it is not read-only"),
        (
            {"recursiveReadOnly": "Enabled", "readOnly": True, "mountPropagation": "Bidirectional"},
            'not compatible with propagation "Bidirectional"',
        ),
        ({"recursiveReadOnly": "Enabled", "readOnly": True}, "not supported by the runtime"),
        ({"recursiveReadOnly": "Odd", "readOnly": True}, 'unknown recursive read-only mode "Odd"'),
    ],
)
def test_recursive_read_only_refused(extra, text):
    with pytest.raises(ContainerConfigError, match=text):
        run(mount(**extra))


@pytest.mark.parametrize("volumes", [{}, {"v": MountedVolume()}])
def test_a_volume_that_is_not_there(volumes):
    with pytest.raises(ContainerConfigError) as caught:
        run(mount(), volumes=volumes)
    assert caught.value.message == 'cannot find volume "v" to mount into container "c"'


def test_image_volumes_are_left_to_the_runtime():
    assert run(mount("img", subPath="lib"))[0] == {
        "container_path": "/m",
        "readonly": True,
        "propagation": "PROPAGATION_PRIVATE",
        "recursive_read_only": False,
        "selinux_relabel": False,
        "host_path": "",
        "image": {"image": "sha256:1", "user_specified_image": "repo/app:v1"},
        "image_sub_path": "lib",
    }


# ---------------------------------------------------------------- sub-paths


def test_sub_paths_and_which_of_them_to_prepare():
    asked = container(
        mount(), mount(subPath="a/b"), mount("img", subPath="lib"), mount(subPathExpr="logs/$(NAME)-$$x")
    )
    env = {"NAME": "p"}
    assert sub_paths(asked, env) == {1: "a/b", 2: "lib", 3: "logs/p-$x"}
    assert subpaths_to_prepare({"spec": {"volumes": VOLUMES}}, asked, env) == (
        SubPath(1, "v", "a/b"),
        SubPath(3, "v", "logs/p-$x"),
    )


def test_a_prepared_sub_path_is_what_is_mounted():
    found = run(mount(), mount(subPath="a"), prepared={1: "/sub/1"})
    assert [m["host_path"] for m in found] == ["/host/v", "/sub/1"]


@pytest.mark.parametrize(
    ("extra", "text"),
    [
        ({"subPath": "esc"}, 'failed to prepare subPath for volumeMount "v" of container "c"'),
        ({"subPath": "/abs"}, 'error SubPath "/abs" must not be an absolute path'),
        ({"subPath": "a/../b"}, "unable to provision SubPath \"a/../b\": must not contain '..'"),
        ({"subPathExpr": "$(NOPE)"}, 'missing value for "NOPE"'),
        ({"subPathExpr": "$(UP)"}, "unable to provision SubPath \"../x\": must not contain '..'"),
    ],
)
def test_bad_sub_paths(extra, text):
    with pytest.raises(ContainerConfigError) as caught:
        run(mount(**extra), env={"UP": "../x"})
    assert caught.value.message == text


def test_names_with_dots_are_no_back_steps():
    assert sub_paths(container(mount(subPath="a..b/..c")), {}) == {0: "a..b/..c"}


# ---------------------------------------------------------------- block volumes


def test_block_devices():
    wanted = container(
        volumeDevices=[{"name": "b", "devicePath": "/dev/x"}, {"name": "r", "devicePath": "dev/y"}]
    )
    devices = {"b": BlockDevice("/dev/loop0"), "r": BlockDevice("/dev/loop1", read_only=True)}
    assert block_devices(wanted, devices) == [
        {"host_path": "/dev/loop0", "container_path": "/dev/x", "permissions": "mrw"},
        {"host_path": "/dev/loop1", "container_path": "/dev/y", "permissions": "r"},
    ]
    with pytest.raises(ContainerConfigError, match='cannot find volume "b" to pass into container "c"'):
        block_devices(wanted, {})
