"""load(): precedence, defaults with and without a file, drop-ins, refusals; on real files."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from kubelet_mp.config import Settings
from kubelet_mp.config.load import Shown, load
from kubelet_mp.config.model import EVICTION_HARD_DEFAULT
from kubelet_mp.errors import ConfigError

HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a configuration body (with its head) and returns the path."""

    def write(body: str = "", name: str = "kubelet.yaml", head: str = HEAD) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head + body)
        return str(path)

    return write


def loaded(*argv: str) -> Settings:
    return load(argv, hostname=lambda: "Node-A")


def refused(*argv: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        loaded(*argv)
    return caught.value


def test_without_a_file_the_legacy_defaults_hold() -> None:
    kubelet = loaded().kubelet
    assert kubelet.authentication.anonymous.enabled
    assert not kubelet.authentication.webhook.enabled
    assert (kubelet.authorization.mode, kubelet.read_only_port) == ("AlwaysAllow", 10255)
    assert kubelet.eviction_hard == {}


def test_with_a_file_the_secure_defaults_hold(write: Write) -> None:
    kubelet = loaded("--config", write()).kubelet
    assert not kubelet.authentication.anonymous.enabled
    assert kubelet.authentication.webhook.enabled
    assert (kubelet.authorization.mode, kubelet.read_only_port) == ("Webhook", 0)
    assert kubelet.eviction_hard == EVICTION_HARD_DEFAULT


def test_precedence(write: Write, tmp_path: Path) -> None:
    config = write("maxPods: 10\npodsPerCore: 1\nclusterDomain: file.local\n")
    write("maxPods: 20\npodsPerCore: 2\n", "conf.d/10-a.conf")
    write("maxPods: 30\n", "conf.d/20/b.conf")
    write("maxPods: 99\n", "conf.d/99-ignored.yaml")
    argv = (f"--config={config}", f"--config-dir={tmp_path}/conf.d")
    kubelet = loaded(*argv).kubelet
    assert (kubelet.max_pods, kubelet.pods_per_core, kubelet.cluster_domain) == (30, 2, "file.local")
    assert loaded(*argv, "--max-pods=40").kubelet.max_pods == 40


def test_feature_gates_are_merged_by_key_and_other_maps_replaced(write: Write) -> None:
    config = write("featureGates: {EventedPLEG: true, MemoryQoS: false}\nkubeReserved: {cpu: 1, memory: 1Gi}\n")
    error = refused(f"--config={config}")
    assert "kubeReserved.cpu" in str(error)
    config = write('featureGates: {EventedPLEG: true, MemoryQoS: false}\nkubeReserved: {cpu: "1", memory: 1Gi}\n')
    settings = loaded(f"--config={config}", "--feature-gates=MemoryQoS=true", "--kube-reserved=cpu=2")
    assert settings.kubelet.feature_gates == {"EventedPLEG": True, "MemoryQoS": True}
    assert settings.kubelet.kube_reserved == {"cpu": "2"}
    assert settings.feature("EventedPLEG")
    assert not settings.feature("PodAndContainerStatsFromCRI")


def test_eviction_hard_of_a_file_replaces_the_defaults_unless_told_to_merge(write: Write) -> None:
    body = "evictionHard: {memory.available: 5%}\n"
    assert loaded("--config", write(body)).kubelet.eviction_hard == {"memory.available": "5%"}
    assert loaded("--config", write("evictionHard: {}\n")).kubelet.eviction_hard == {}
    merged = loaded("--config", write(body + "mergeDefaultEvictionSettings: true\n")).kubelet.eviction_hard
    assert merged == {**EVICTION_HARD_DEFAULT, "memory.available": "5%"}


def test_eviction_hard_of_a_drop_in_overrides_single_signals(write: Write, tmp_path: Path) -> None:
    write("evictionHard: {nodefs.available: 1Gi, memory.available: null}\n", "d/a.conf")
    argv = (f"--config-dir={tmp_path}/d",)
    assert loaded(*argv).kubelet.eviction_hard == {"nodefs.available": "1Gi"}
    expected = {**EVICTION_HARD_DEFAULT, "nodefs.available": "1Gi"}
    del expected["memory.available"]
    assert loaded(*argv, f"--config={write()}").kubelet.eviction_hard == expected


def test_drop_ins_replace_lists_and_null_brings_the_default_back(write: Write, tmp_path: Path) -> None:
    config = write("clusterDNS: [10.0.0.1, 10.0.0.2]\nport: 11000\nsyncFrequency: 2m\n")
    write("clusterDNS: [10.0.0.3]\nport: null\nsyncFrequency: 0s\nnoSuchField: 1\n", "d/a.conf")
    settings = loaded(f"--config={config}", f"--config-dir={tmp_path}/d")
    assert settings.kubelet.cluster_dns == ("10.0.0.3",)
    assert (settings.kubelet.port, settings.kubelet.sync_frequency) == (10250, 60.0)
    assert settings.warnings == ()


@pytest.mark.parametrize(
    ("body", "head", "reason"),
    [
        ("port: 1\nport: 2\n", HEAD, "more than once"),
        ("", "", "is empty"),
        ("", "kind: Pod\napiVersion: v1\n", "apiVersion 'v1'"),
        ("- a\n", "", "list"),
        ("a: [\n", HEAD, "not YAML"),
        ("port: eleven\n", HEAD, "port: "),
    ],
)
def test_a_bad_drop_in_is_fatal_and_named(write: Write, tmp_path: Path, body: str, head: str, reason: str) -> None:
    path = write(body, "d/bad.conf", head)
    error = str(refused(f"--config-dir={tmp_path}/d"))
    assert reason in error
    assert path in error


def test_missing_files_are_fatal_and_named(tmp_path: Path) -> None:
    assert f"{tmp_path}/no" in str(refused(f"--config={tmp_path}/no"))
    assert f"{tmp_path}/no" in str(refused(f"--config-dir={tmp_path}/no"))


def test_unknown_and_repeated_fields_of_the_file_only_warn(write: Write) -> None:
    body = (
        "port: 1\nport: 2\nauthentication: {webhook: {enable: false, enabled: false}}\nlogging: {vmodule: [{x: 1}]}\n"
    )
    settings = loaded("--config", write(body))
    assert settings.kubelet.port == 2
    text = "\n".join(settings.warnings)
    for path in ("'port'", "'authentication.webhook.enable'", "'logging.vmodule[0].x'"):
        assert path in text


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("port: '10250'", "port"),
        ("syncFrequency: 60", "syncFrequency"),
        ("syncFrequency: soon", "syncFrequency"),
        ("failSwapOn: maybe", "failSwapOn"),
        ("maxPods: 3000000000", "maxPods"),
        ("clusterDNS: 10.0.0.1", "clusterDNS"),
        ("clusterDNS: [1, 2]", "clusterDNS[0]"),
        ("authentication: {webhook: {cacheTTL: 5}}", "authentication.webhook.cacheTTL"),
        ("evictionHard: {memory.available: 5}", "evictionHard.memory.available"),
    ],
)
def test_a_wrong_type_is_fatal_with_the_path_and_the_file(write: Write, body: str, path: str) -> None:
    config = write(body + "\n")
    error = refused("--config", config)
    assert error.problems[0].startswith(f"{path}: ")
    assert config in str(error)


def test_every_error_is_told_at_once(write: Write) -> None:
    config = write("port: 70000\nhairpinMode: x\nevictionSoft: {memory.available: 1Gi}\n")
    error = refused("--config", config)
    assert len(error.problems) == 3
    assert all(problem.startswith("invalid configuration: ") for problem in error.problems)
    assert "invalid configuration: port: " in str(error)


def test_relative_paths_of_the_file_belong_to_its_directory(write: Write, tmp_path: Path) -> None:
    config = write("staticPodPath: manifests\nresolvConf: ../r.conf\ntlsCertFile: c\ntlsPrivateKeyFile: /k\n")
    write("volumePluginDir: plugins\n", "d/a.conf")
    kubelet = loaded(f"--config={config}", f"--config-dir={tmp_path}/d").kubelet
    assert kubelet.static_pod_path == f"{tmp_path}/manifests"
    assert kubelet.resolv_conf == f"{tmp_path.parent}/r.conf"
    assert (kubelet.tls_cert_file, kubelet.tls_private_key_file) == (f"{tmp_path}/c", "/k")
    assert kubelet.volume_plugin_dir == "plugins"
    assert loaded("--pod-manifest-path=manifests").kubelet.static_pod_path == "manifests"


def test_defaults_that_follow_other_fields(write: Write) -> None:
    kubelet = loaded("--config", write("nodeStatusUpdateFrequency: 20s\nmaxParallelImagePulls: 3\n")).kubelet
    assert kubelet.node_status_report_frequency == 20.0
    assert not kubelet.serialize_image_pulls


def test_zero_is_kept_where_it_means_something(write: Write) -> None:
    kubelet = loaded("--config", write("port: 0\nhealthzPort: 0\nregistryPullQPS: 0\nimageMaximumGCAge: 0s\n")).kubelet
    assert (kubelet.port, kubelet.healthz_port, kubelet.registry_pull_qps) == (10250, 0, 0)


def test_flags_are_not_defaulted_again() -> None:
    assert "containerRuntimeEndpoint" in str(refused("--container-runtime-endpoint="))
    assert "port" in str(refused("--port=0"))


def test_json_is_read_too(write: Write) -> None:
    config = write('{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration","port":1}', head="")
    assert loaded("--config", config).kubelet.port == 1


def test_a_date_in_yaml_stays_text(write: Write) -> None:
    assert loaded("--config", write("providerID: 2024-01-02\n")).kubelet.provider_id == "2024-01-02"


@pytest.mark.parametrize(("override", "name"), [(" EDGE-01 ", "edge-01"), ("", "node-a"), ("a.B", "a.b")])
def test_node_name(override: str, name: str) -> None:
    assert loaded(f"--hostname-override={override}").node_name == name


def test_a_blank_node_name_is_fatal() -> None:
    assert "hostname" in str(refused("--hostname-override=  "))


@pytest.mark.parametrize(
    "argv",
    [
        ["run"],
        ["--", "x"],
        ["--no-such-flag"],
        ["-x"],
        ["--port"],
        ["--port=ten"],
        ["--max-pods=5000000000"],
        ["--feature-gates=NoSuchGate=true"],
        ["--feature-gates=MemoryQoS"],
        ["--node-labels=kubernetes.io/role=x"],
        ["--node-labels=a/b/c=x"],
        ["--exit-on-lock-contention"],
        ["--bootstrap-kubeconfig=/b"],
        ["--cloud-provider=aws"],
        ["--root-dir=/a/../b"],
        ["--root-dir=relative"],
        ["--node-ip=x"],
        ["--node-ip=1.1.1.1,2.2.2.2"],
        ["--cadvisor-port=70000"],
        ["--experimental-mounter-path=/x"],
        ["--runonce"],
        ["--version=banana"],
        ["--pod-logs-dir=/x"],
    ],
)
def test_refused_command_lines(argv: list[str]) -> None:
    assert str(refused(*argv))


def test_unknown_gate_in_the_file_is_fatal(write: Write) -> None:
    assert "featureGates.Nope" in str(refused("--config", write("featureGates: {Nope: true}\n")))


@pytest.mark.parametrize("argv", [["--version"], ["--version=true"], ["--version", "--port=1"]])
def test_version(argv: list[str]) -> None:
    with pytest.raises(Shown) as shown:
        loaded(*argv)
    assert shown.value.text == "Kubernetes v1.37.2+kubelet-mp.0.1.0"


def test_raw_and_overridden_versions() -> None:
    with pytest.raises(Shown, match="GitVersion"):
        loaded("--version=raw")
    assert loaded("--version=v1.36.0").kubernetes_version == "v1.36.0"
    assert loaded("--version=false").kubernetes_version == "v1.37.2+kubelet-mp.0.1.0"


def test_help_comes_before_version_and_names_every_flag() -> None:
    with pytest.raises(Shown) as shown:
        loaded("--version", "-h")
    for flag in ("--config", "--pod-manifest-path", "--cadvisor-port", "-v, --v"):
        assert flag in shown.value.text


def test_settings_are_frozen_and_survive_pickle() -> None:
    settings = loaded("--node-labels=a=b", "--node-ip=192.0.2.1,2001:db8::1", "--housekeeping-interval=1m")
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert settings.node_ips == ("192.0.2.1", "2001:db8::1")
    assert (settings.node_labels, settings.housekeeping_interval) == ({"a": "b"}, 60.0)
    assert settings.standalone
    with pytest.raises(AttributeError):
        settings.node_name = "other"  # type: ignore[misc]


def test_configz_is_a_file_that_loads_to_the_same(write: Write, tmp_path: Path) -> None:
    import json

    kubelet = loaded("--config", write("maxPods: 7\nlogging: {format: json}\n")).kubelet
    again = tmp_path / "again.json"
    again.write_text(json.dumps(kubelet.as_v1beta1()))
    assert loaded("--config", str(again)).kubelet == kubelet


def test_the_fields_that_somebody_set_can_be_told(write: Write, tmp_path: Path) -> None:
    config = write("cgroupDriver: cgroupfs\nport: 0\nmaxPods: null\n")
    write("clusterDomain: a.local\n", "d/a.conf")
    kubelet = loaded(f"--config={config}", f"--config-dir={tmp_path}/d", "--anonymous-auth").kubelet
    assert kubelet.model_fields_set == {"cgroup_driver", "cluster_domain", "authentication"}
    assert loaded().kubelet.model_fields_set == set()
    assert pickle.loads(pickle.dumps(kubelet)).model_fields_set == kubelet.model_fields_set


def test_the_header_of_the_manifest_url_is_not_logged() -> None:
    settings = loaded("--manifest-url-header=Authorization:Bearer x,A:b")
    assert settings.kubelet.static_pod_url_header == {"Authorization": ("Bearer x",), "A": ("b",)}
    assert "Bearer" not in str(settings.loggable())
    assert settings.as_v1beta1()["staticPodURLHeader"]["A"] == ["b"]


def test_a_deprecated_flag_warns_where_it_belongs() -> None:
    assert loaded("--max-pods=3").warnings == (
        "flag --max-pods is deprecated: set maxPods in the file given by --config",
    )
    assert loaded("--v=2", "--fail-cgroupv1=false", "--seccomp-default").warnings == ()
