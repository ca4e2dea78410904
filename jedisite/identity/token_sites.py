"""For which sites tokens of pilots are made. What makes tokens is not imported: apps say at each start how sites are checked."""

from __future__ import annotations

from collections.abc import Callable

_faults: list[Callable[[str], str]] = []


def check_sites_by(fault_of: Callable[[str], str]) -> None:
    """From now on sites of tokens are checked by this: a sentence on a name that is none, "" for one that is."""
    _faults.append(fault_of)


def site_fault(site: str) -> str:
    """Why no token is made for pilots of this site (a queue); "" when one is, as for "", which is any site."""
    return next((fault for check in _faults if (fault := check(site))), "") if site else ""
