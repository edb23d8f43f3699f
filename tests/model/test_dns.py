from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubelet_mp.model.dns import DNSResult, check_limits, fitting_searches, parse_resolv_conf, pod_dns
from kubelet_mp.model.nodeview import NodeView

RESOLV = """\
# node resolver
search old.invalid
nameserver 192.0.2.1
nameserver 192.0.2.2
options ndots:2 attempts:1
search corp.invalid. lab.invalid .
nameserver 192.0.2.3
nameserver 192.0.2.4
options ndots:3
"""
NODE = NodeView(
    node_name="n", cluster_dns=("10.96.0.10",), cluster_domain="cluster.local", resolv_conf=RESOLV
)
THREE = ("192.0.2.1", "192.0.2.2", "192.0.2.3")
OMITTED = (
    "Nameserver limits were exceeded, some nameservers have been omitted, "
    "the applied nameserver line is: 192.0.2.1 192.0.2.2 192.0.2.3"
)


def pod(policy="ClusterFirst", **spec):
    return {
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"dnsPolicy": policy, **spec},
    }


def without_warnings(result):
    return replace(result, warnings=())


@pytest.mark.parametrize("given_pod", [pod("Default"), pod(hostNetwork=True)])
def test_the_resolver_of_the_node(given_pod):
    found = pod_dns(given_pod, NODE)
    assert without_warnings(found) == DNSResult(
        THREE, ("corp.invalid", "lab.invalid"), ("ndots:3", "attempts:1")
    )
    assert found.warnings == (("DNSConfigForming", OMITTED),)


@pytest.mark.parametrize("given_pod", [pod(), pod("ClusterFirstWithHostNet", hostNetwork=True)])
def test_the_resolver_of_the_cluster(given_pod):
    searches = (
        "default.svc.cluster.local",
        "svc.cluster.local",
        "cluster.local",
        "corp.invalid",
        "lab.invalid",
    )
    assert pod_dns(given_pod, NODE) == DNSResult(("10.96.0.10",), searches, ("ndots:5",))


def test_without_a_cluster_domain_only_the_searches_of_the_node():
    assert pod_dns(pod(), replace(NODE, cluster_domain="")).searches == ("corp.invalid", "lab.invalid")


def test_without_cluster_dns_the_node_with_a_warning():
    found = pod_dns(pod(), replace(NODE, cluster_dns=()))
    assert found.servers == THREE
    reason, text = found.warnings[0]
    assert reason == "MissingClusterDNS"
    assert text == (
        'pod: "p_default(u)". kubelet does not have ClusterDNS IP configured and cannot create Pod using '
        '"ClusterFirst" policy. Falling back to "Default" policy.'
    )


def test_none_takes_only_what_the_pod_says():
    config = {
        "nameservers": ["1.1.1.1"],
        "searches": ["a.b"],
        "options": [{"name": "ndots", "value": "1"}, {"name": "edns0"}],
    }
    assert pod_dns(pod("None", dnsConfig=config), NODE) == DNSResult(
        ("1.1.1.1",), ("a.b",), ("ndots:1", "edns0")
    )


def test_dns_config_is_added_once_and_its_options_win():
    config = {
        "nameservers": ["10.96.0.10", "1.1.1.1"],
        "searches": ["cluster.local", "x"],
        "options": [{"name": "ndots", "value": "2"}, {"name": "rotate"}],
    }
    found = pod_dns(pod(dnsConfig=config), replace(NODE, resolv_conf="search host\n"))
    assert found.servers == ("10.96.0.10", "1.1.1.1")
    assert found.searches[-3:] == ("cluster.local", "host", "x")
    assert found.options == ("ndots:2", "rotate")


def test_resolv_conf_turned_off_disables_lookups():
    node = replace(NODE, resolv_conf=None, node_ips=("192.0.2.7", "2001:db8::7"))
    assert pod_dns(pod("Default"), node) == DNSResult(("127.0.0.1", "::1"), (".",))
    assert pod_dns(pod("Default"), replace(node, node_ips=())).servers == ("127.0.0.1",)
    assert pod_dns(pod(), node).searches[-1] == "cluster.local"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", DNSResult()),
        ("nameserver\nnameserver 1.2.3.4 extra\n", DNSResult(("1.2.3.4",))),
        (" # x\n;y\nfoo bar\n\toptions  a  b:1 a\n", DNSResult(options=("a", "b:1"))),
        ("search a b\nsearch\n", DNSResult()),
    ],
)
def test_parsing(text, expected):
    assert parse_resolv_conf(text) == expected


@given(st.lists(st.text(alphabet="a.", min_size=1, max_size=300), max_size=40))
def test_search_lists_fit_what_libc_takes(searches):
    kept = fitting_searches(tuple(searches))
    assert len(kept) <= 32
    assert len(" ".join(kept)) <= 2048
    assert all(len(domain) <= 255 for domain in kept)
    assert list(kept) == [d for d in searches[:32] if len(d) <= 255][: len(kept)]


def test_too_many_searches_are_cut_with_a_warning():
    many = [f"d{n}" for n in range(40)]
    found = pod_dns(pod("None", dnsConfig={"nameservers": ["1.1.1.1"], "searches": many}), NODE)
    assert found.searches == tuple(many[:32])
    assert found.warnings[0].message.endswith("the applied search line is: " + " ".join(many[:32]))


def test_limits_of_the_file_itself():
    assert check_limits(RESOLV) == [OMITTED]
    assert check_limits("nameserver 1.1.1.1\n") == []
