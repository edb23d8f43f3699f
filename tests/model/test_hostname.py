from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.errors import ContainerConfigError
from kubelet_mp.model.hostname import Hostname, pod_hostname, truncate
from kubelet_mp.model.hostsfile import hosts_text
from kubelet_mp.model.nodeview import NodeView

ALIASES = [
    {"ip": "192.0.2.10", "hostnames": ["a.invalid", "b.invalid"]},
    {"ip": "192.0.2.11", "hostnames": ["c.invalid"]},
]
ALIAS_TEXT = """
# Entries added by HostAliases.
192.0.2.10	a.invalid	b.invalid
192.0.2.11	c.invalid
"""
HEAD = """# Kubernetes-managed hosts file.
127.0.0.1	localhost
::1	localhost ip6-localhost ip6-loopback
fe00::0	ip6-localnet
fe00::0	ip6-mcastprefix
fe00::1	ip6-allnodes
fe00::2	ip6-allrouters
"""


def pod(name="web-edge-01", **spec):
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": spec}


@pytest.mark.parametrize(
    ("given_pod", "expected"),
    [
        (pod(), Hostname("web-edge-01", "", "web-edge-01")),
        (pod("n" * 62 + "-x-edge-01"), Hostname("n" * 62, "", "n" * 62)),
        (pod(hostname="h"), Hostname("h", "", "h")),
        (pod(hostname="h", subdomain="s"), Hostname("h", "s.ns.svc.cluster.local", "h")),
        (
            pod(hostname="h", subdomain="s", setHostnameAsFQDN=True),
            Hostname("h", "s.ns.svc.cluster.local", "h.s.ns.svc.cluster.local"),
        ),
        (pod(setHostnameAsFQDN=True), Hostname("web-edge-01", "", "web-edge-01")),
        (pod(hostnameOverride="my.own.name", subdomain="s"), Hostname("my.own.name", "", "my.own.name")),
    ],
)
def test_pod_hostname(given_pod, expected):
    assert pod_hostname(given_pod, "cluster.local") == expected


@pytest.mark.parametrize(
    ("given_pod", "text"),
    [
        (pod(hostname="Up"), "not a valid DNS label"),
        (pod(hostname="h" * 64), "not a valid DNS label"),
        (pod(subdomain="a.b"), "not a valid DNS label"),
        (pod(hostname="h", subdomain="s" * 50, setHostnameAsFQDN=True), r"is too long \(64 characters"),
        (pod("-" * 70), "is empty"),
    ],
)
def test_bad_names(given_pod, text):
    with pytest.raises(ContainerConfigError, match=text):
        pod_hostname(given_pod, "cluster.local")


@given(st.text(alphabet="ab-.", max_size=100))
def test_truncated_names_fit(name):
    found = truncate(name)
    assert name.startswith(found)
    assert len(found) <= 63
    assert len(name) <= 63 or not found.endswith(("-", "."))


def test_hosts_of_a_pod_with_its_own_network():
    node = NodeView(node_name="n", hosts_file="unused\n")
    name = Hostname("web-edge-01")
    text = hosts_text(pod(hostAliases=ALIASES), node, name, ["10.88.0.5"])
    assert text == HEAD + "10.88.0.5\tweb-edge-01\n" + ALIAS_TEXT
    assert hosts_text(pod(), node, name, []) == HEAD


def test_hosts_with_a_domain_and_two_addresses():
    text = hosts_text(pod(), NodeView(node_name="n"), Hostname("h", "s.ns.svc.x"), ["10.0.0.1", "fd00::1"])
    assert text == HEAD + "10.0.0.1\th.s.ns.svc.x\th\nfd00::1\th.s.ns.svc.x\th\n"


def test_hosts_on_the_host_network():
    node = NodeView(node_name="n", hosts_file="127.0.0.1 localhost\n")
    text = hosts_text(pod(hostNetwork=True, hostAliases=ALIASES), node, Hostname("n"), ["192.0.2.7"])
    assert text == "# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost\n" + ALIAS_TEXT
