"""Whether the configuration can be honoured on a host: the texts that operators search for, and the fixes."""

from pathlib import Path
from typing import Any

import pytest

from kubelet_mp.config import KubeletConfiguration, Settings, kubeconfig, preflight
from kubelet_mp.config.decode import legacy_defaults
from kubelet_mp.errors import ConfigError

V1 = {"cpu", "cpuacct", "cpuset", "memory"}


def made(**fields: Any) -> KubeletConfiguration:
    return KubeletConfiguration(**fields)


def texts(errors: list[ConfigError]) -> str:
    assert all(error.fix for error in errors)
    return "\n".join(error.message for error in errors)


def test_swap() -> None:
    text = texts(preflight.swap(made(), ["/dev/sda2"]))
    assert "running with swap on is not supported, please disable swap or set --fail-swap-on flag to false" in text
    assert "/dev/sda2" in text
    assert preflight.swap(made(), []) == []
    assert preflight.swap(made(fail_swap_on=False), ["/dev/sda2"]) == []


def test_cgroup_version() -> None:
    text = texts(preflight.cgroup_version(made(), 1))
    assert text == "kubelet is configured to not run on a host using cgroup v1"
    assert preflight.cgroup_version(made(fail_cgroup_v1=False), 1) == []
    assert preflight.cgroup_version(made(), 2) == []
    assert "no cgroup filesystem" in texts(preflight.cgroup_version(made(), 0))


def test_what_cgroup_v1_cannot_do() -> None:
    kubelet = made(memory_swap={"swap_behavior": "LimitedSwap"}, single_process_oom_kill=False)
    assert len(preflight.cgroup_behaviour(kubelet, 1)) == 2
    assert preflight.cgroup_behaviour(kubelet, 2) == []
    assert preflight.cgroup_behaviour(made(), 1) == []


def test_controllers() -> None:
    def check(controllers: set[str], *, cfs_period: bool = True, version: int = 1) -> list[ConfigError]:
        return preflight.cgroup_controllers(made(), version, controllers, cfs_period=cfs_period)

    assert texts(check(V1 - {"cpuset"})) == "Following Cgroup subsystem not mounted: ['cpuset']"
    assert "CFS" in texts(check(V1, cfs_period=False))
    assert check(V1) == check(set(), version=2) == []


def test_drivers_that_differ_are_both_named() -> None:
    chosen = made(cgroup_driver="cgroupfs")
    error = preflight.driver(chosen, "systemd")[0]
    assert "'cgroupfs'" in error.message
    assert "'systemd'" in error.message
    assert "SystemdCgroup = false" in (error.fix or "")
    assert preflight.driver(chosen, None) == preflight.driver(chosen, "cgroupfs") == []


def test_a_driver_that_nobody_chose_gives_way_to_the_runtimes() -> None:
    assert preflight.driver(made(cgroup_driver="systemd"), "systemd") == []
    assert "not implemented" in texts(preflight.driver(made(), "systemd"))


def test_webhooks_need_somebody_to_ask() -> None:
    text = texts(preflight.webhooks(Settings(node_name="n")))
    assert "no client provided, cannot use webhook authentication" in text
    assert "no client provided, cannot use webhook authorization" in text
    assert preflight.webhooks(Settings(node_name="n", kubelet=legacy_defaults())) == []
    assert preflight.webhooks(Settings(node_name="n", kubelet=made(enable_server=False))) == []


def test_what_is_not_implemented_is_refused_or_said() -> None:
    assert preflight.not_implemented(Settings(node_name="n")) == []
    assert preflight.without_effect(Settings(node_name="n")) == []
    systemd = Settings(node_name="n", kubelet=made(cgroup_driver="systemd"))
    assert "cgroupDriver systemd" in texts(preflight.not_implemented(systemd))
    static = Settings(node_name="n", kubelet=made(cpu_manager_policy="static"))
    assert "cpuManagerPolicy" in preflight.without_effect(static)[0]


def test_all_errors_are_raised_together() -> None:
    errors = preflight.at_start(Settings(node_name="n"), swaps=["/swap"], version=1, controllers=V1, cfs_period=True)
    assert len(errors) == 4
    with pytest.raises(ConfigError) as caught:
        preflight.raise_all(errors)
    assert len(caught.value.problems) == 4
    with pytest.raises(ConfigError, match="swap"):
        preflight.raise_all(preflight.swap(made(), ["/swap"]))
    preflight.raise_all([])


GOOD = """
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://192.0.2.1:6443"}}]
users: [{name: u, user: {token: hush}}]
"""
EXEC = "exec: {command: login, apiVersion: client.authentication.k8s.io/v1}"


def test_kubeconfig(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(GOOD)
    kubeconfig.check(str(path))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "No such file"),
        ("a: [", "not YAML"),
        ("kind: Pod", "not of kind Config"),
        (GOOD.replace("current-context: c", "current-context: d"), "no context 'd'"),
        (GOOD.replace("cluster: k,", "cluster: x,"), "no cluster 'x'"),
        (GOOD.replace("server", "sever"), "no server"),
        (GOOD.replace("{name: u, user", "{name: v, user"), "no user 'u'"),
        (GOOD.replace("token: hush", EXEC), "an exec plugin .exec., which is not supported"),
        (GOOD.replace("token: hush", "auth-provider: {name: oidc}"), "an auth provider"),
        (GOOD.replace("token: hush", "as: root"), "impersonation"),
        (GOOD.replace("}}]\nusers", ", proxy-url: http://p}}]\nusers"), "a proxy .proxy-url."),
        (GOOD.replace("}}]\nusers", ", insecure-skip-tls-verify: true, certificate-authority: f}}]\nusers"),
         "leave one of them out"),
    ],
)
def test_unusable_kubeconfig_is_named_with_the_reason(tmp_path: Path, text: str | None, reason: str) -> None:
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=reason) as caught:
        kubeconfig.check(str(path))
    assert str(path) in str(caught.value)


def test_a_fault_of_syntax_does_not_show_the_line_which_may_be_a_token(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(GOOD.replace("token: hush}", "token: hush, x: %"))
    with pytest.raises(ConfigError, match="not YAML: line 6") as caught:
        kubeconfig.check(str(path))
    assert "hush" not in str(caught.value)


def test_an_api_server_is_no_longer_refused() -> None:
    assert preflight.not_implemented(Settings(node_name="n", kubeconfig="/k")) == []


def test_a_missing_or_broken_kubeconfig_is_fine_where_a_bootstrap_one_can_be_used(tmp_path: Path) -> None:
    path, bootstrap = tmp_path / "kubeconfig", tmp_path / "bootstrap"
    with pytest.raises(ConfigError, match=r"cannot read kubeconfig .*/bootstrap"):
        kubeconfig.check_either(str(path), str(bootstrap))
    bootstrap.write_text(GOOD)
    kubeconfig.check_either(str(path), str(bootstrap))
    path.write_text("")
    kubeconfig.check_either(str(path), str(bootstrap))
    with pytest.raises(ConfigError, match="not of kind Config"):
        kubeconfig.check_either(str(path), "")
    path.write_text(GOOD)
    kubeconfig.check_either(str(path), str(tmp_path / "none"))


def test_a_kubeconfig_that_is_not_supported_is_never_written_over(tmp_path: Path) -> None:
    path, bootstrap = tmp_path / "kubeconfig", tmp_path / "bootstrap"
    bootstrap.write_text(GOOD)
    path.write_text(GOOD.replace("token: hush", EXEC))
    with pytest.raises(ConfigError, match="exec plugin"):
        kubeconfig.check_either(str(path), str(bootstrap))


def test_certificates_of_the_cluster_need_a_cluster() -> None:
    alone = Settings(node_name="n", kubelet=made(server_tls_bootstrap=True, rotate_certificates=True))
    assert "serverTLSBootstrap needs an API server" in texts(preflight.certificates(alone))
    assert "rotateCertificates has no effect" in preflight.without_effect(alone)[0]
    joined = Settings(node_name="n", kubeconfig="/k", kubelet=alone.kubelet)
    assert preflight.certificates(joined) == []
    assert preflight.without_effect(joined) == []
