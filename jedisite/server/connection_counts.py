"""How many connections each address holds, so that none takes all that a worker has. Pure, but for its counts."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Network = IPv4Network | IPv6Network
NEAR: Final[Sequence[Network]] = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
"""This machine: a proxy may stand here, whose connections are those of everybody."""
KEPT: Final = 4096
"""Addresses that need not be read again: that takes 20 µs, and a connection comes with many a call."""
NETWORK_BITS: Final = 64
"""Of an IPv6 address: whoever has one has all that begin so."""


class ByAddress:
    """Connections by address. Those from `uncounted` networks, proxies, may be any number; of others `most` are let in."""

    def __init__(self, most: int, uncounted: Sequence[Network]) -> None:
        self._most = most
        self._uncounted = tuple(uncounted)
        self._held: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._key_of = lru_cache(KEPT)(self._key)

    def let_in(self, host: str) -> Callable[[], None] | None:
        """Count a connection from an address: what is to be called once when it ends, or None when it is one too many."""
        key = self._key_of(host)
        if key is None:
            return _nothing
        with self._lock:
            if self._held[key] >= self._most:
                return None
            self._held[key] += 1
        return partial(self._leave, key)

    def _leave(self, key: str) -> None:
        with self._lock:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]

    def _key(self, host: str) -> str | None:
        """What counts as one address; None for what is not counted, such as the path of a local socket."""
        try:
            address = ip_address(host.partition("%")[0])
        except ValueError:
            return None
        if isinstance(address, IPv6Address):
            address = address.ipv4_mapped or address
        if any(address in network for network in self._uncounted):
            return None
        if isinstance(address, IPv6Address):
            return str(ip_network((address, NETWORK_BITS), strict=False))
        return str(address)


def _nothing() -> None:
    pass
