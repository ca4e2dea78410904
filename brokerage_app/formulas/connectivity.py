"""Outbound connectivity of worker nodes: `network#stack`, of a queue (wnconnectivity) and of a task (ipConnectivity).

network of the queue    accepts tasks that ask
full                    full, http, none, or nothing
http                    http, none, or nothing
none                    none, or nothing
not stated              nothing

stack of the queue      accepts tasks that ask
IPv4, IPv6              the same, or nothing
not stated              nothing
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.skip import Skip

_ACCEPTED: Final = {
    "full": frozenset({"full", "http", "none"}),
    "http": frozenset({"http", "none"}),
    "none": frozenset({"none"}),
}


@lru_cache(maxsize=4096)
def parse(text: str | None) -> tuple[str, str]:
    """(network, stack) of `network#stack` in lower case; empty where not stated."""
    network, _, stack = (text or "").lower().partition("#")
    return network.strip(), stack.strip()


def refuses(published: str | None, network: str = "", stack: str = "") -> Skip | None:
    """None when a queue with this wnconnectivity accepts a task that asks for `network` and `stack` (empty: nothing)."""
    if not network and not stack:
        return None
    has_network, has_stack = parse(published)
    if network and network.lower() not in _ACCEPTED.get(has_network, ()):
        says = "asks for outbound network {}; the site's nodes have {}"
        return Skip("", codes.NO_CONNECTIVITY, says, (network, published or "none stated"))
    if stack and stack.lower() != has_stack:
        says = "asks for IP stack {}; the site's nodes have {}"
        return Skip("", codes.NO_CONNECTIVITY, says, (stack, published or "none stated"))
    return None
