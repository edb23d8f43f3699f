import ipaddress

from kubelet_mp.host import netlink
from kubelet_mp.host.netlink import Address, DefaultRoute

KNOWN = [Address("127.0.0.1", 1, 254), Address("192.0.2.5", 2, 0), Address("192.0.2.9", 3, 0),
         Address("192.0.2.10", 3, 0), Address("2001:db8::5", 2, 0), Address("fe80::1", 2, 253)]


def test_the_route_with_the_lowest_metric_decides():
    routes = {4: [DefaultRoute(2, 100), DefaultRoute(3, 50)], 6: [DefaultRoute(2, 0)]}
    assert netlink.choose(KNOWN, routes) == ["192.0.2.9", "2001:db8::5"]


def test_the_preferred_source_of_the_route_wins():
    assert netlink.choose(KNOWN, {4: [DefaultRoute(3, 0, "192.0.2.10")]}) == ["192.0.2.10"]


def test_interfaces_without_a_usable_address_are_passed_over():
    routes = {4: [DefaultRoute(1, 0), DefaultRoute(2, 9)], 6: [DefaultRoute(3, 0)]}
    assert netlink.choose(KNOWN, routes) == ["192.0.2.5"]


def test_no_route_no_address():
    assert netlink.choose(KNOWN, {4: [], 6: []}) == []


def test_the_kernel_is_asked():
    found = netlink.addresses()
    assert any(ipaddress.ip_address(a.ip).is_loopback for a in found)
    assert set(netlink.default_addresses()) <= {a.ip for a in found if a.usable}
