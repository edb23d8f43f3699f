"""Each rule of validation: one configuration that breaks it, and the path that is named."""

from typing import Any

import pytest

from kubelet_mp.config import KubeletConfiguration
from kubelet_mp.config.decode import legacy_defaults
from kubelet_mp.config.validate import kubelet_problems
from kubelet_mp.config.validate_flags import allowed_label


def paths(document: dict[str, Any]) -> list[str]:
    return [path for path, _ in kubelet_problems(KubeletConfiguration.model_validate(document))]


def test_the_defaults_are_valid() -> None:
    assert kubelet_problems(KubeletConfiguration()) == []
    assert kubelet_problems(legacy_defaults()) == []


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"port": 0}, "port"),
        ({"readOnlyPort": 65536}, "readOnlyPort"),
        ({"healthzPort": -1}, "healthzPort"),
        ({"address": "localhost"}, "address"),
        ({"clusterDNS": ["10.0.0.1", "x"]}, "clusterDNS[1]"),
        ({"clusterDomain": "Cluster"}, "clusterDomain"),
        ({"podCIDR": "10.0.0.0/99"}, "podCIDR"),
        ({"tlsCertFile": "/c"}, "tlsPrivateKeyFile"),
        ({"tlsMinVersion": "1.2"}, "tlsMinVersion"),
        ({"authorization": {"mode": "RBAC"}}, "authorization.mode"),
        ({"oomScoreAdj": -1001}, "oomScoreAdj"),
        ({"podLogsDir": "logs"}, "podLogsDir"),
        ({"podLogsDir": "/a//b"}, "podLogsDir"),
        ({"podLogsDir": "/ä"}, "podLogsDir"),
        ({"imageGCHighThresholdPercent": 101}, "imageGCHighThresholdPercent"),
        ({"imageGCHighThresholdPercent": 80}, "imageGCLowThresholdPercent"),
        ({"imageMaximumGCAge": "1m"}, "imageMaximumGCAge"),
        ({"maxParallelImagePulls": 0}, "maxParallelImagePulls"),
        ({"maxParallelImagePulls": 2}, "maxParallelImagePulls"),
        ({"preloadedImagesVerificationAllowlist": ["x"]}, "preloadedImagesVerificationAllowlist"),
        ({"enableSystemLogQuery": True, "enableSystemLogHandler": False}, "enableSystemLogQuery"),
        ({"cpuCFSQuotaPeriod": "2s"}, "cpuCFSQuotaPeriod"),
        ({"runOnce": True}, "runOnce"),
        ({"containerRuntimeEndpoint": ""}, "containerRuntimeEndpoint"),
        ({"userNamespaces": {"idsPerPod": 65537}}, "userNamespaces.idsPerPod"),
        ({"registerNode": False, "registerWithTaints": [{"key": "a", "effect": "NoExecute"}]}, "registerWithTaints"),
        ({"registerWithTaints": [{"key": "a", "effect": "x"}]}, "registerWithTaints[0]"),
        ({"allowedUnsafeSysctls": ["*"]}, "allowedUnsafeSysctls[0]"),
        ({"shutdownGracePeriodCriticalPods": "2s"}, "shutdownGracePeriodCriticalPods"),
        ({"shutdownGracePeriod": "500ms"}, "shutdownGracePeriod"),
        ({"shutdownGracePeriod": "2s", "shutdownGracePeriodByPodPriority": [{}]}, "shutdownGracePeriodByPodPriority"),
        ({"crashLoopBackOff": {"maxContainerRestartPeriod": "301s"}}, "crashLoopBackOff.maxContainerRestartPeriod"),
        ({"containerLogMaxFiles": 1}, "containerLogMaxFiles"),
        ({"containerLogMaxSize": "big"}, "containerLogMaxSize"),
        ({"containerLogMonitorInterval": "2s"}, "containerLogMonitorInterval"),
        ({"defaultPodSysctls": {"a": "b"}}, "defaultPodSysctls"),
        ({"qosReserved": {"memory": "50%"}}, "qosReserved"),
        ({"featureGates": {"Nope": True}}, "featureGates.Nope"),
        ({"systemReserved": {"cpu": "-1"}}, "systemReserved.cpu"),
        ({"systemReserved": {"pods": "1"}}, "systemReserved.pods"),
        ({"systemCgroups": "/s"}, "systemCgroups"),
        ({"cgroupsPerQOS": False}, "enforceNodeAllocatable"),
        ({"enforceNodeAllocatable": ["none", "pods"]}, "enforceNodeAllocatable"),
        ({"enforceNodeAllocatable": ["all"]}, "enforceNodeAllocatable"),
        ({"enforceNodeAllocatable": ["system-reserved"]}, "systemReservedCgroup"),
        ({"reservedSystemCPUs": "0-"}, "reservedSystemCPUs"),
        ({"reservedSystemCPUs": "0", "kubeReservedCgroup": "/k"}, "reservedSystemCPUs"),
        ({"memoryThrottlingFactor": 0}, "memoryThrottlingFactor"),
        ({"memorySwap": {"swapBehavior": "Much"}}, "memorySwap.swapBehavior"),
        ({"reservedMemory": [{"limits": {"memory": "1Gi"}}]}, "reservedMemory"),
        ({"evictionHard": {"memory": "1Gi"}}, "evictionHard.memory"),
        ({"evictionHard": {"memory.available": "101%"}}, "evictionHard.memory.available"),
        ({"evictionHard": {"memory.available": "-1"}}, "evictionHard.memory.available"),
        ({"evictionHard": {"memory.available": "x%"}}, "evictionHard.memory.available"),
        ({"evictionSoft": {"memory.available": "1Gi"}}, "evictionSoft.memory.available"),
        ({"evictionSoftGracePeriod": {"memory.available": "1"}}, "evictionSoftGracePeriod.memory.available"),
        ({"logging": {"format": "xml"}}, "logging.format"),
        ({"tracing": {"samplingRatePerMillion": -1}}, "tracing.samplingRatePerMillion"),
    ],
)
def test_each_rule_names_the_field(document: dict[str, Any], path: str) -> None:
    assert path in paths(document)


@pytest.mark.parametrize(
    "document",
    [
        {"cgroupsPerQOS": False, "enforceNodeAllocatable": []},
        {"cgroupsPerQOS": False, "enforceNodeAllocatable": ["none"]},
        {"shutdownGracePeriod": "30s", "shutdownGracePeriodCriticalPods": "10s"},
        {"maxParallelImagePulls": 5, "serializeImagePulls": False},
        {"evictionSoft": {"memory.available": "10%"}, "evictionSoftGracePeriod": {"memory.available": "1m30s"}},
        {"allowedUnsafeSysctls": ["net.core.*", "kernel.msg*", "net/ipv4.tcp_syncookies"]},
        {"systemReserved": {"cpu": "100m", "hugepages-2Mi": "2Mi", "pid": "100"}},
        {"podLogsDir": "/srv/logs", "reservedSystemCPUs": "0-1,4", "clusterDomain": "cluster.local"},
    ],
)
def test_what_is_right_passes(document: dict[str, Any]) -> None:
    assert paths(document) == []


@pytest.mark.parametrize(
    ("key", "allowed"),
    [
        ("zone", True),
        ("example.com/x", True),
        ("notkubernetes.io/x", True),
        ("kubernetes.io/hostname", True),
        ("topology.kubernetes.io/zone", True),
        ("node.kubernetes.io/anything", True),
        ("sub.kubelet.kubernetes.io/x", True),
        ("kubernetes.io/role", False),
        ("node-role.kubernetes.io/worker", False),
        ("x.k8s.io/y", False),
    ],
)
def test_labels_that_a_node_may_give_itself(key: str, allowed: bool) -> None:
    assert allowed_label(key) is allowed
