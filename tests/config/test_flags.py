"""Reading the command line, and the table of flags against the names of the kubelet."""

from typing import Any

import pytest

from kubelet_mp.config import flags
from kubelet_mp.config.flagtable import FLAGS, NO_FLAG, RENAMED, leaves
from kubelet_mp.errors import ConfigError

NAMES = """config config-dir kubeconfig bootstrap-kubeconfig hostname-override node-ip cert-dir root-dir
cloud-provider node-labels seccomp-default lock-file exit-on-lock-contention runtime-cgroups
image-credential-provider-config image-credential-provider-bin-dir housekeeping-interval v vmodule
log-flush-frequency version help minimum-container-ttl-duration maximum-dead-containers-per-container
maximum-dead-containers pod-manifest-path manifest-url manifest-url-header http-check-frequency
rotate-server-certificates registry-qps event-qps minimum-image-ttl-duration image-gc-high-threshold
image-gc-low-threshold contention-profiling pod-max-pids fail-cgroupv1 client-ca-file anonymous-auth
authentication-token-webhook authentication-token-webhook-cache-ttl authorization-mode
authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl cpu-cfs-quota
cpu-cfs-quota-period resolv-conf reserved-cpus kube-api-content-type kube-api-qps kube-api-burst runonce
logging-format make-iptables-util-chains cgroups-per-qos pod-cidr tls-cert-file provider-id
node-status-max-images volume-stats-agg-period container-runtime-endpoint image-service-endpoint
kernel-memcg-notification local-storage-capacity-isolation cadvisor-port""".split()


@pytest.mark.parametrize("name", NAMES)
def test_the_kubelets_flags_are_known(name: str) -> None:
    assert name in FLAGS


def test_no_flag_is_invented_and_the_exceptions_are_real_fields() -> None:
    fields = {".".join(path) for path, _ in leaves()}
    assert fields >= NO_FLAG
    assert set(RENAMED) <= fields
    for name in ("pod-logs-dir", "max-parallel-image-pulls", "memory-swap", "shutdown-grace-period", "tracing"):
        assert name not in FLAGS


def test_only_a_few_flags_of_the_configuration_are_not_deprecated() -> None:
    kept = {flag.name for flag in FLAGS.values() if flag.path and not flag.deprecated}
    expected = {"provider-id", "fail-cgroupv1", "v", "vmodule", "log-flush-frequency", "seccomp-default"}
    assert kept == expected


@pytest.mark.parametrize(
    ("argv", "values"),
    [
        (["--port", "1", "--port=2"], {"port": 2}),
        (["--max_pods=3"], {"max-pods": 3}),
        (["--fail-swap-on"], {"fail-swap-on": True}),
        (["--fail-swap-on=false", "--port=0x10"], {"fail-swap-on": False, "port": 16}),
        (["-v", "4"], {"v": 4}),
        (["-v4"], {"v": 4}),
        (["-v=4"], {"v": 4}),
        (["-hv4"], {"help": True, "v": 4}),
        (["--cluster-dns=a,b", "--cluster-dns=c"], {"cluster-dns": ["a", "b", "c"]}),
        (["--allowed-unsafe-sysctls="], {"allowed-unsafe-sysctls": []}),
        (["--eviction-hard=a<1,b<2%"], {"eviction-hard": {"a": "1", "b": "2%"}}),
        (["--eviction-soft-grace-period=a=1m", "--eviction-soft-grace-period=b=2m"],
         {"eviction-soft-grace-period": {"a": "1m", "b": "2m"}}),
        (["--manifest-url-header=a:1,b:2", "--manifest-url-header=a:3"],
         {"manifest-url-header": {"a": ["1", "3"], "b": ["2"]}}),
        (["--register-with-taints=k=v:NoSchedule,k2:NoExecute"],
         {"register-with-taints": [{"key": "k", "value": "v", "effect": "NoSchedule"},
                                   {"key": "k2", "value": "", "effect": "NoExecute"}]}),
        (["--reserved-memory=0:memory=1Gi,hugepages-2Mi=2Mi;1:memory=2Gi"],
         {"reserved-memory": [{"numaNode": 0, "limits": {"memory": "1Gi", "hugepages-2Mi": "2Mi"}},
                              {"numaNode": 1, "limits": {"memory": "2Gi"}}]}),
        (["--vmodule=pods*=4"], {"vmodule": [{"filePattern": "pods*", "verbosity": 4}]}),
    ],
)  # fmt: skip
def test_forms(argv: list[str], values: dict[str, Any]) -> None:
    given = flags.parse(argv)
    assert given.values == values
    assert given.words == []


def test_a_boolean_does_not_take_the_next_word() -> None:
    given = flags.parse(["--fail-swap-on", "false", "--", "--port=1"])
    assert given.values == {"fail-swap-on": True}
    assert given.words == ["false", "--port=1"]


@pytest.mark.parametrize(
    "argv",
    [
        ["--eviction-hard=a=1"],
        ["--node-labels=a"],
        ["--manifest-url-header=a"],
        ["--register-with-taints=a=b"],
        ["--register-with-taints=a=b:Sometimes"],
        ["--reserved-memory=memory=1Gi"],
        ["--vmodule=a=x"],
        ["--sync-frequency=10"],
        ["--fail-swap-on=perhaps"],
    ],
)
def test_malformed_values_name_their_flag(argv: list[str]) -> None:
    with pytest.raises(ConfigError, match=argv[0].split("=")[0]):
        flags.parse(argv)


def test_a_near_miss_is_pointed_out() -> None:
    with pytest.raises(ConfigError) as caught:
        flags.parse(["--pod-manifest-pat=x"])
    assert caught.value.fix == "did you mean --pod-manifest-path?"
