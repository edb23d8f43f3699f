from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from cri_api.v1 import api_pb2
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st

from kubelet_mp.errors import ContainerConfigError
from kubelet_mp.model.dns import DNSResult
from kubelet_mp.model.hostname import Hostname
from kubelet_mp.model.nodeview import NodeView
from kubelet_mp.model.podconfig import (
    BlockDevice,
    ContainerInputs,
    DeviceGrant,
    MountedVolume,
    UserNamespace,
    container_config,
    sandbox_config,
)
from kubelet_mp.model.runtime import HandlerFeatures

MI = 1 << 20
NODE = NodeView(
    node_name="n",
    node_ips=("192.0.2.7",),
    capacity={"cpu": 2000, "memory": 1 << 30},
    hugepage_sizes=(2 * MI,),
    handlers=(HandlerFeatures("", recursive_read_only_mounts=True, user_namespaces=True),),
)
DNS = DNSResult(("10.96.0.10",), ("ns.svc.x",), ("ndots:5",))
RICH_CONTAINER = {
    "name": "c",
    "image": "busybox",
    "command": ["sh", "-c", "echo $(A)"],
    "args": ["$$(A)"],
    "workingDir": "/w",
    "stdin": True,
    "stdinOnce": True,
    "tty": True,
    "env": [{"name": "A", "value": "one"}],
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "lifecycle": {"stopSignal": "SIGRTMIN+3", "preStop": {"exec": {"command": ["true"]}}},
    "ports": [
        {"containerPort": 80, "protocol": "TCP", "hostPort": 8080, "hostIP": "127.0.0.1"},
        {"containerPort": 53, "protocol": "UDP"},
        {"containerPort": 5, "protocol": "SCTP"},
    ],
    "resources": {"limits": {"cpu": "5m", "memory": "32Mi", "hugepages-2Mi": "2Mi"}},
    "volumeMounts": [
        {"name": "v", "mountPath": "/v", "mountPropagation": "HostToContainer"},
        {"name": "i", "mountPath": "/i"},
    ],
    "volumeDevices": [{"name": "b", "devicePath": "/dev/b"}],
    "securityContext": {
        "privileged": False,
        "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]},
        "runAsUser": 7,
        "seccompProfile": {"type": "Localhost", "localhostProfile": "a.json"},
        "seLinuxOptions": {"level": "s0"},
        "appArmorProfile": {"type": "RuntimeDefault"},
    },
}
RICH = {
    "metadata": {
        "name": "p",
        "namespace": "ns",
        "uid": "u",
        "labels": {"app": "web"},
        "annotations": {"kubernetes.io/config.source": "file"},
    },
    "spec": {
        "containers": [RICH_CONTAINER],
        "hostUsers": False,
        "overhead": {"cpu": "10m"},
        "terminationGracePeriodSeconds": 5,
        "shareProcessNamespace": True,
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "i", "image": {"reference": "r/x:1"}}],
        "securityContext": {
            "fsGroup": 3,
            "runAsGroup": 4,
            "supplementalGroupsPolicy": "Strict",
            "sysctls": [{"name": "net/ipv4/tcp_syncookies", "value": "1"}],
        },
    },
}
INPUTS = ContainerInputs(
    restart_count=2,
    image_ref="sha256:aa",
    image_uid=0,
    pod_ips=("10.0.0.2",),
    volumes={"v": MountedVolume("/host/v"), "i": MountedVolume(image="sha256:bb")},
    block_devices={"b": BlockDevice("/dev/loop0")},
    termination_log="/r/t",
    etc_hosts="/r/etc-hosts",
    userns=UserNamespace(65536),
    cpuset_cpus="0",
    extra_groups=(9,),
    grant=DeviceGrant(
        envs={"GPU": "0"},
        mounts=({"host_path": "/lib/gpu", "container_path": "/lib/gpu"},),
        devices=({"host_path": "/dev/gpu", "container_path": "/dev/gpu", "permissions": "mrw"},),
        annotations={"gpu": "yes"},
        cdi_devices=("vendor.com/gpu=0",),
    ),
)


def sandbox(pod=RICH, node=NODE, **given):
    given = {
        "attempt": 1,
        "cgroup_parent": "/kubepods/podu",
        "dns": DNS,
        "hostname": Hostname("p"),
        "userns": UserNamespace(65536),
        **given,
    }
    return json_format.ParseDict(sandbox_config(pod, node, **given), api_pb2.PodSandboxConfig())


def created(pod=RICH, node=NODE, inputs=INPUTS, container=None):
    found = container or pod["spec"]["containers"][0]
    return json_format.ParseDict(container_config(pod, found, node, inputs), api_pb2.ContainerConfig())


def bare(container=None, **spec):
    return {
        "metadata": {"name": "p", "uid": "u"},
        "spec": {"containers": [{"name": "c", "image": "b", **(container or {})}], **spec},
    }


# ---------------------------------------------------------------- sandbox


def test_sandbox_as_the_runtime_reads_it():
    found = sandbox()
    assert (found.metadata.name, found.metadata.namespace, found.metadata.uid, found.metadata.attempt) == (
        "p",
        "ns",
        "u",
        1,
    )
    assert (found.hostname, found.log_directory) == ("p", "/var/log/pods/ns_p_u")
    assert (list(found.dns_config.servers), list(found.dns_config.options)) == (["10.96.0.10"], ["ndots:5"])
    assert found.labels["app"] == "web" and found.labels["io.kubernetes.pod.uid"] == "u"
    assert found.annotations["kubernetes.io/config.source"] == "file"
    assert [(m.container_port, m.host_port, m.host_ip, m.protocol) for m in found.port_mappings] == [
        (80, 8080, "127.0.0.1", api_pb2.TCP),
        (53, 0, "", api_pb2.UDP),
        (5, 0, "", api_pb2.SCTP),
    ]
    assert found.linux.cgroup_parent == "/kubepods/podu"
    assert dict(found.linux.sysctls) == {"net.ipv4.tcp_syncookies": "1"}
    assert (found.linux.resources.cpu_shares, found.linux.overhead.cpu_shares) == (5, 10)
    security = found.linux.security_context
    assert security.seccomp.profile_type == api_pb2.SecurityProfile.RuntimeDefault
    assert security.namespace_options.userns_options.uids[0].host_id == 65536
    assert list(security.supplemental_groups) == [3]


def test_names_of_the_host():
    assert sandbox(bare(hostNetwork=True)).hostname == ""
    assert sandbox(bare(), hostname=Hostname("h", "s.ns.svc.x", "h.s.ns.svc.x")).hostname == "h.s.ns.svc.x"


def test_only_regular_containers_map_ports():
    side = {"name": "s", "restartPolicy": "Always", "ports": [{"containerPort": 1}]}
    assert not sandbox(bare(initContainers=[side])).port_mappings


def test_sandbox_refusals():
    with pytest.raises(ContainerConfigError, match='unknown protocol "QUIC" of port 1'):
        sandbox(bare({"ports": [{"containerPort": 1, "protocol": "QUIC"}]}))
    with pytest.raises(ContainerConfigError, match="does not support"):
        sandbox(node=replace(NODE, handlers=()))


# ---------------------------------------------------------------- container


def test_container_as_the_runtime_reads_it():
    found = created()
    assert (found.metadata.name, found.metadata.attempt, found.log_path) == ("c", 2, "c/2.log")
    assert (found.image.image, found.image.user_specified_image) == ("sha256:aa", "busybox")
    assert (list(found.command), list(found.args)) == (["sh", "-c", "echo one"], ["$(A)"])
    assert {e.key: e.value for e in found.envs} == {"GPU": "0", "A": "one"}
    assert (found.working_dir, found.stdin, found.stdin_once, found.tty) == ("/w", True, True, True)
    assert found.stop_signal == 0
    assert [d.host_path for d in found.devices] == ["/dev/gpu", "/dev/loop0"]
    assert found.CDI_devices[0].name == "vendor.com/gpu=0"
    assert found.annotations["gpu"] == "yes"
    assert found.annotations["io.kubernetes.container.restartCount"] == "2"
    resources = found.linux.resources
    assert (resources.cpu_quota, resources.cpu_shares, resources.cpuset_cpus) == (1000, 5, "0")
    assert (resources.memory_limit_in_bytes, resources.oom_score_adj) == (32 * MI, -997)
    assert [(h.page_size, h.limit) for h in resources.hugepage_limits] == [("2MB", 2 * MI)]
    security = found.linux.security_context
    assert (security.run_as_user.value, security.run_as_group.value) == (7, 4)
    assert security.seccomp.localhost_ref == "/var/lib/kubelet/seccomp/a.json"
    assert security.namespace_options.pid == api_pb2.POD
    assert list(security.supplemental_groups) == [3, 9]
    assert security.supplemental_groups_policy == api_pb2.Strict


def test_mounts_in_order_and_mapped_to_the_user_namespace():
    mounts = created().mounts
    assert [m.container_path for m in mounts] == [
        "/lib/gpu",
        "/v",
        "/i",
        "/etc/hosts",
        "/dev/termination-log",
    ]
    assert mounts[1].propagation == api_pb2.PROPAGATION_HOST_TO_CONTAINER
    assert (mounts[2].image.image, mounts[2].readonly) == ("sha256:bb", True)
    assert all(m.uidMappings[0].host_id == m.gidMappings[0].host_id == 65536 for m in mounts)


def test_a_hosts_file_of_its_own_and_no_termination_message():
    pod = bare(
        {"volumeMounts": [{"name": "v", "mountPath": "/etc/hosts"}]}, volumes=[{"name": "v", "emptyDir": {}}]
    )
    inputs = replace(INPUTS, grant=None)
    assert [m.host_path for m in created(pod, inputs=inputs).mounts] == ["/host/v"]
    assert not created(bare(), inputs=replace(inputs, etc_hosts=None)).mounts


def test_the_container_that_says_nothing():
    found = created(bare(), inputs=ContainerInputs(image_ref="sha256:aa"))
    assert not found.command and not found.args and not found.envs and not found.mounts
    assert found.linux.resources.cpu_shares == 2
    assert found.linux.resources.oom_score_adj == 1000
    assert found.labels["io.kubernetes.pod.namespace"] == "default"


@pytest.mark.parametrize(
    ("signal", "name"),
    [("SIGTERM", "SIGTERM"), ("SIGRTMIN+3", "SIGRTMINPLUS3"), ("SIGRTMAX-1", "SIGRTMAXMINUS1")],
)
def test_stop_signals_with_the_feature_on(signal, name):
    node, pod = replace(NODE, container_stop_signals=True), bare({"lifecycle": {"stopSignal": signal}})
    assert created(pod, node).stop_signal == api_pb2.Signal.Value(name)


def test_claims_that_nobody_prepared():
    pod = bare({"resources": {"claims": [{"name": "gpu"}]}})
    with pytest.raises(ContainerConfigError, match="resource claims, which have not been prepared"):
        created(pod, inputs=ContainerInputs())
    assert created(pod).metadata.name == "c"


def test_ephemeral_container_joins_its_target():
    debug = {"name": "d", "image": "b", "targetContainerName": "c"}
    found = created(
        bare(ephemeralContainers=[debug]), inputs=replace(INPUTS, target_id="id1"), container=debug
    )
    options = found.linux.security_context.namespace_options
    assert (options.pid, options.target_id) == (api_pb2.TARGET, "id1")


def test_what_is_passed_between_processes_can_be_pickled():
    for value in (NODE, INPUTS, DNS, Hostname("p")):
        assert pickle.loads(pickle.dumps(value)) == value


BOOL = st.booleans()


@settings(max_examples=60)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "runAsUser": st.integers(0, 2**31),
            "privileged": BOOL,
            "readOnlyRootFilesystem": BOOL,
            "allowPrivilegeEscalation": BOOL,
            "procMount": st.sampled_from(["Default", "Unmasked"]),
            "seccompProfile": st.sampled_from([{"type": "Unconfined"}, {"type": "RuntimeDefault"}]),
            "capabilities": st.sampled_from([{}, {"add": ["A"]}, {"drop": ["ALL"]}]),
        },
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "hostNetwork": BOOL,
            "hostPID": BOOL,
            "hostIPC": BOOL,
            "shareProcessNamespace": BOOL,
            "hostUsers": BOOL,
            "securityContext": st.fixed_dictionaries(
                {}, optional={"fsGroup": st.integers(0, 2**31), "runAsGroup": st.just(1)}
            ),
        },
    ),
    st.fixed_dictionaries(
        {}, optional={"cpu": st.sampled_from(["1m", "2"]), "memory": st.sampled_from(["1Mi", "1Gi"])}
    ),
    st.sampled_from([1, 2]),
    BOOL,
    BOOL,
)
def test_whatever_is_built_the_runtime_can_read(context, spec, limits, version, quota, memory_qos):
    pod = bare({"securityContext": context, "resources": {"limits": limits}}, **spec)
    node = replace(NODE, cgroup_version=version, cpu_cfs_quota=quota, memory_qos=memory_qos)
    assert sandbox(pod, node).metadata.uid == "u"
    assert created(pod, node).metadata.name == "c"
