"""Connections are counted by address: of one address, so many; of proxies, any number."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from jedisite.server.connection_counts import NEAR, ByAddress


def counts(most: int = 2) -> ByAddress:
    return ByAddress(most, [*NEAR, ip_network("10.0.0.0/24"), ip_network("2001:db8:ffff::/48")])


@pytest.mark.parametrize(
    "host",
    ["192.0.2.7", "::ffff:192.0.2.7", "2001:db8::1", "fe80::1%eth0"],
    ids=["v4", "v4 in v6", "v6", "with a zone"],
)
def test_an_address_holds_so_many_until_some_have_ended(host: str) -> None:
    some = counts()
    leave, other = some.let_in(host), some.let_in(host)
    assert leave and other and some.let_in(host) is None
    assert some.let_in("198.51.100.1"), "others are not meant"
    leave()
    assert some.let_in(host) and some.let_in(host) is None


def test_two_ways_to_write_an_address_and_a_network_of_ipv6_are_one() -> None:
    some = counts(1)
    assert some.let_in("192.0.2.7") and some.let_in("::ffff:192.0.2.7") is None
    assert some.let_in("2001:db8::1") and some.let_in("2001:db8::ffff:2") is None
    assert some.let_in("2001:db8:0:1::1")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.9", "2001:db8:ffff::5", ""]
)
def test_this_machine_and_proxies_are_not_counted(host: str) -> None:
    some = counts(1)
    for _ in range(5):
        leave = some.let_in(host)
        assert leave
        leave()
    assert all(some.let_in(host) for _ in range(5))
