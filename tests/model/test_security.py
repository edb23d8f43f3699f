from __future__ import annotations

from dataclasses import replace

import pytest

from kubelet_mp.errors import ContainerConfigError
from kubelet_mp.model.namespaces import (
    UserNamespace,
    check_user_namespace,
    container_namespaces,
    namespace_options,
)
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.runtime import HandlerFeatures
from kubelet_mp.model.security import (
    READONLY_PATHS,
    container_security,
    effective_context,
    sandbox_security,
    supplemental_groups,
    sysctls,
)

NODE = NodeView(node_name="n", root_dir="/r")


def make(context=None, pod_context=None, **spec):
    container = {"name": "c", "securityContext": context or {}}
    metadata = {"name": "p", "namespace": "ns", "uid": "u", "annotations": spec.pop("annotations", {})}
    return {
        "metadata": metadata,
        "spec": {"containers": [container], "securityContext": pod_context or {}, **spec},
    }


def run(pod, node=NODE, **given):
    return container_security(pod, pod["spec"]["containers"][0], node, **given)


def test_defaults_of_a_container():
    found = run(make())
    assert found["run_as_user"] == {"value": 0}
    assert found["seccomp"] == {"profile_type": "Unconfined"}
    assert found["readonly_paths"] == list(READONLY_PATHS)
    assert "/proc/kcore" in found["masked_paths"] and len(found["masked_paths"]) == 12
    assert not found["privileged"] and not found["readonly_rootfs"] and not found["no_new_privs"]
    assert not {"apparmor", "apparmor_profile", "capabilities", "selinux_options", "run_as_group"} & set(
        found
    )
    assert found["namespace_options"] == {"network": "POD", "ipc": "POD", "pid": "CONTAINER"}


def test_the_container_beats_the_pod_field_by_field():
    selinux = {"level": "s0:c1"}
    pod = make(
        {"runAsUser": 7, "runAsNonRoot": None},
        {
            "runAsUser": 5,
            "runAsGroup": 6,
            "seLinuxOptions": selinux,
            "runAsNonRoot": True,
            "fsGroup": 1,
            "sysctls": [],
        },
    )
    container = pod["spec"]["containers"][0]
    assert effective_context(pod, container) == {
        "runAsUser": 7,
        "runAsGroup": 6,
        "seLinuxOptions": selinux,
        "runAsNonRoot": True,
    }
    found = run(pod)
    assert (found["run_as_user"], found["run_as_group"]) == ({"value": 7}, {"value": 6})
    assert found["selinux_options"] == {"user": "", "role": "", "type": "", "level": "s0:c1"}


@pytest.mark.parametrize(
    ("context", "uid", "user", "expected"),
    [
        ({"runAsUser": 0}, 5, "", {"run_as_user": {"value": 0}}),
        ({}, 5, "", {"run_as_user": {"value": 5}}),
        ({}, None, "www", {"run_as_username": "www"}),
        ({"runAsUser": 9}, None, "www", {"run_as_user": {"value": 9}}),
        ({}, None, "", {"run_as_user": {"value": 0}}),
    ],
)
def test_user(context, uid, user, expected):
    found = run(make(context), image_uid=uid, image_user=user)
    assert {k: v for k, v in found.items() if k in ("run_as_user", "run_as_username")} == expected


WHO = '(pod: "p_ns(u)", container: c)'


@pytest.mark.parametrize(
    ("context", "uid", "user", "text"),
    [
        ({"runAsUser": 0}, 5, "", f"container's runAsUser breaks non-root policy {WHO}"),
        ({}, 0, "", f"container has runAsNonRoot and image will run as root {WHO}"),
        ({}, None, "", f"container has runAsNonRoot and image will run as root {WHO}"),
        (
            {},
            None,
            "www",
            f"container has runAsNonRoot and image has non-numeric user (www), cannot verify user is non-root {WHO}",
        ),
    ],
)
def test_run_as_non_root_refuses(context, uid, user, text):
    with pytest.raises(ContainerConfigError) as caught:
        run(make(context, {"runAsNonRoot": True}), image_uid=uid, image_user=user)
    assert caught.value.message == text


def test_run_as_non_root_allows():
    assert run(make({"runAsUser": 1}, {"runAsNonRoot": True}))["run_as_user"] == {"value": 1}
    assert run(make({}, {"runAsNonRoot": True}), image_uid=4)["run_as_user"] == {"value": 4}
    assert run(make({"runAsNonRoot": False}, {"runAsNonRoot": True}))["run_as_user"] == {"value": 0}


LOCAL = {"type": "Localhost", "localhostProfile": "a/b.json"}


@pytest.mark.parametrize(
    ("context", "pod_context", "node", "expected"),
    [
        ({}, {}, replace(NODE, seccomp_default=True), {"profile_type": "RuntimeDefault"}),
        ({}, {"seccompProfile": {"type": "RuntimeDefault"}}, NODE, {"profile_type": "RuntimeDefault"}),
        (
            {"seccompProfile": {"type": "Unconfined"}},
            {"seccompProfile": LOCAL},
            NODE,
            {"profile_type": "Unconfined"},
        ),
        (
            {},
            {"seccompProfile": LOCAL},
            NODE,
            {"profile_type": "Localhost", "localhost_ref": "/r/seccomp/a/b.json"},
        ),
    ],
)
def test_seccomp(context, pod_context, node, expected):
    assert run(make(context, pod_context), node)["seccomp"] == expected


@pytest.mark.parametrize("field", ["seccompProfile", "appArmorProfile"])
def test_bad_profiles(field):
    with pytest.raises(ContainerConfigError, match="localhostProfile must be set"):
        run(make({field: {"type": "Localhost"}}))
    with pytest.raises(ContainerConfigError, match="unknown type 'New'"):
        run(make({field: {"type": "New"}}))


ANNOTATION = "container.apparmor.security.beta.kubernetes.io/c"


@pytest.mark.parametrize(
    ("pod", "kind", "text"),
    [
        (make({"appArmorProfile": {"type": "RuntimeDefault"}}), "RuntimeDefault", "runtime/default"),
        (make({}, {"appArmorProfile": {"type": "Unconfined"}}), "Unconfined", "unconfined"),
        (
            make({"appArmorProfile": {"type": "Localhost", "localhostProfile": "x"}}),
            "Localhost",
            "localhost/x",
        ),
        (make(annotations={ANNOTATION: "localhost/y/z"}), "Localhost", "localhost/y/z"),
        (make(annotations={ANNOTATION: "runtime/default"}), "RuntimeDefault", "runtime/default"),
        (
            make({"appArmorProfile": {"type": "Unconfined"}}, annotations={ANNOTATION: "localhost/y"}),
            "Unconfined",
            "unconfined",
        ),
    ],
)
def test_apparmor_both_ways(pod, kind, text):
    found = run(pod)
    assert (found["apparmor"]["profile_type"], found["apparmor_profile"]) == (kind, text)


def test_fields_that_only_containers_have():
    found = run(
        make(
            {
                "privileged": True,
                "readOnlyRootFilesystem": True,
                "allowPrivilegeEscalation": False,
                "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]},
                "procMount": "Unmasked",
            }
        )
    )
    assert found["privileged"] and found["readonly_rootfs"] and found["no_new_privs"]
    assert found["capabilities"] == {"add_capabilities": ["NET_ADMIN"], "drop_capabilities": ["ALL"]}
    assert found["masked_paths"] == found["readonly_paths"] == []
    assert not run(make({"allowPrivilegeEscalation": True}))["no_new_privs"]


def test_existing_thermal_throttle_is_masked():
    path = "/sys/devices/system/cpu/cpu0/thermal_throttle"
    assert run(make(), replace(NODE, thermal_throttle_paths=(path,)))["masked_paths"][-1] == path


def test_groups():
    pod = make(None, {"fsGroup": 10, "supplementalGroups": [30, 40], "supplementalGroupsPolicy": "Strict"})
    expected = {"supplemental_groups": [10, 20, 30, 40], "supplemental_groups_policy": "Strict"}
    assert supplemental_groups(pod, [20]) == expected
    assert expected.items() <= run(pod, extra_groups=[20]).items()
    assert supplemental_groups(make())["supplemental_groups_policy"] == "Merge"


def test_sandbox_is_always_under_the_runtimes_seccomp_profile():
    pod = make(
        {"privileged": True, "runAsUser": 3},
        {"runAsUser": 5, "runAsGroup": 6, "seccompProfile": {"type": "Unconfined"}, "fsGroup": 2},
    )
    assert sandbox_security(pod) == {
        "privileged": True,
        "namespace_options": {"network": "POD", "ipc": "POD", "pid": "CONTAINER"},
        "seccomp": {"profile_type": "RuntimeDefault"},
        "run_as_user": {"value": 5},
        "run_as_group": {"value": 6},
        "supplemental_groups": [2],
        "supplemental_groups_policy": "Merge",
    }
    assert not sandbox_security(make())["privileged"]
    assert sandbox_security(make(initContainers=[{"name": "i", "securityContext": {"privileged": True}}]))[
        "privileged"
    ]


@pytest.mark.parametrize(
    ("spec", "network", "pid", "ipc"),
    [
        ({}, "POD", "CONTAINER", "POD"),
        ({"hostNetwork": True}, "NODE", "CONTAINER", "POD"),
        ({"hostPID": True, "shareProcessNamespace": True}, "POD", "NODE", "POD"),
        ({"shareProcessNamespace": True}, "POD", "POD", "POD"),
        ({"hostIPC": True}, "POD", "CONTAINER", "NODE"),
    ],
)
def test_namespaces(spec, network, pid, ipc):
    assert namespace_options(make(**spec)) == {"network": network, "pid": pid, "ipc": ipc}


def test_ephemeral_containers_join_their_target_unless_the_pod_shares_processes():
    debug = {"name": "d", "targetContainerName": "c"}
    assert container_namespaces(make(), debug, None, "id-1")["target_id"] == "id-1"
    assert container_namespaces(make(), debug, None, "id-1")["pid"] == "TARGET"
    assert container_namespaces(make(shareProcessNamespace=True), debug)["pid"] == "POD"
    with pytest.raises(ContainerConfigError, match="unable to find target container c"):
        container_namespaces(make(), debug)


def test_user_namespaces():
    own, mapping = UserNamespace(131072), {"host_id": 131072, "container_id": 0, "length": 65536}
    options = namespace_options(make(hostUsers=False), own)["userns_options"]
    assert options == {"mode": "POD", "uids": [mapping], "gids": [mapping]}
    assert "userns_options" not in namespace_options(make(), own)
    able = replace(NODE, handlers=(HandlerFeatures("", user_namespaces=True), HandlerFeatures("old")))
    assert check_user_namespace(make(), NODE, "", None) is None
    assert check_user_namespace(make(hostUsers=False), able, "", own) is None
    with pytest.raises(ContainerConfigError, match='runtime handler "old" does not support'):
        check_user_namespace(make(hostUsers=False), able, "old", own)
    with pytest.raises(ContainerConfigError, match="no user ids"):
        check_user_namespace(make(hostUsers=False), able, "", None)


@pytest.mark.parametrize(
    ("name", "dotted"),
    [
        ("net.ipv4.tcp_syncookies", "net.ipv4.tcp_syncookies"),
        ("net/ipv4/tcp_syncookies", "net.ipv4.tcp_syncookies"),
        ("net/ipv4/conf/eno2.100/rp_filter", "net.ipv4.conf.eno2/100.rp_filter"),
        ("net.ipv4.conf.eno2/100.rp_filter", "net.ipv4.conf.eno2/100.rp_filter"),
    ],
)
def test_sysctls(name, dotted):
    assert sysctls(make(None, {"sysctls": [{"name": name, "value": "1"}]})) == {dotted: "1"}
