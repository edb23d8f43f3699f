from kubelet_mp.config import KubeletConfiguration, Settings
from kubelet_mp.supervisor.reload import changes, refused


def settings(node="n", **fields) -> Settings:
    return Settings(node_name=node, kubelet=KubeletConfiguration(**fields))


def test_each_changed_value_is_a_line_with_its_path():
    old, new = settings(), settings(max_pods=50, eviction_hard={"memory.available": "1Gi"})
    assert changes(old, new) == ["evictionHard.memory.available: unset → 1Gi", "maxPods: 110 → 50"]
    assert changes(old, old) == []


def test_headers_of_the_manifest_url_are_not_shown():
    new = settings(static_pod_url="http://x", static_pod_url_header={"Authorization": ["secret"]})
    assert "secret" not in "".join(changes(settings(), new))


def test_what_needs_a_restart():
    assert refused(settings(), settings(node="other")) == ["--node-name"]
