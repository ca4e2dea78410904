"""What keeps a task from running anywhere: of the sites that it may use, the gate that removed the last of them. Pure.

A grid refuses most tasks at most sites, and for most of these refusals nobody needs to care: the task was never to run
there. What decides is said of the sites that the task itself allows, and by the rule that came furthest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

from brokerage_app import codes
from brokerage_app.brokers.candidates import cloud_of
from brokerage_app.needs import TaskNeeds, names
from brokerage_app.snapshot import Grid, SiteView
from brokerage_app.verdict import Blocked, Skip, Verdict

OWN_CHOICE: Final = frozenset({codes.NOT_PREASSIGNED, codes.NOT_INCLUDED, codes.EXCLUDED, codes.OTHER_CLOUD})
"""Refusals that only repeat what the task itself says of where it may run."""
AUTO: Final = "AUTO"
_SIGNS: Final = frozenset("*?[")
NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Allowed:
    """Where a task may run as far as itself says: names of its queues, and those that it names although there are none."""

    names: frozenset[str]
    unknown: tuple[str, ...] = ()


def allowed(needs: TaskNeeds, grid: Grid) -> Allowed:
    """The queues of a grid that the task's own words leave: site, includedSite, excludedSite, cloud.

    A name stands for the queue, for the pseudo queues of it, and, when it is an endpoint, for the queues that read there.
    """
    bound = (needs.preassigned_site,) if needs.preassigned_site else needs.listed_sites
    wanted = bound or tuple(name for name in needs.included_sites if name != AUTO)
    cloud = "" if bound else cloud_of(needs, grid)
    found, met = [], set()
    for site in grid.sites.values():
        own = {site.name, site.parent or site.name}
        if wanted:
            fitting = [name for name in wanted if _stands_for(name, site, own, bound=bool(bound))]
            met.update(fitting)
            if not fitting and AUTO not in needs.included_sites:
                continue
        if any(names(needs.excluded_sites, name) for name in own) or (cloud and site.cloud != cloud):
            continue
        found.append(site.name)
    unknown = [name for name in wanted if name not in met and _SIGNS.isdisjoint(name)]
    return Allowed(frozenset(found), tuple(unknown))


def _stands_for(name: str, site: SiteView, own: Iterable[str], *, bound: bool) -> bool:
    if name in own:
        return True
    if bound:
        return name in site.inputs or name in site.analysis_inputs
    return any(names((name,), one) for one in own)


def blocked(verdict: Verdict, needs: TaskNeeds, grid: Grid, order: Mapping[str, int]) -> Blocked | None:
    """Why a decision chose no site; None when it chose one, or was stopped before any site was asked.

    order   the place of each code among the reasons of the broker (`funnel.order_of`)
    """
    if verdict.chosen or verdict.stopped is not None or not grid.sites:
        return None
    may = allowed(needs, grid)
    queues = _by_queue(verdict.skipped, grid, order)
    open_to = [skip for skip in queues.values() if skip.site in may.names and skip.code not in OWN_CHOICE]
    if not open_to:
        return _none_allowed(needs, grid, may, list(queues.values()))
    last = max(open_to, key=lambda skip: (order.get(skip.code, 0), -_far(skip))).code
    sites = sorted((skip for skip in open_to if skip.code == last), key=lambda skip: (_far(skip), skip.site))
    return Blocked(last, _sentence(open_to, sites[0], len(queues), may.unknown, grid), tuple(sites))


def with_blocked(verdict: Verdict, needs: TaskNeeds, grid: Grid, order: Mapping[str, int]) -> Verdict:
    """The same verdict with what blocks the task."""
    found = blocked(verdict, needs, grid, order)
    return verdict if found is None else replace(verdict, blocked=found)


def _by_queue(skipped: Iterable[Skip], grid: Grid, order: Mapping[str, int]) -> dict[str, Skip]:
    """One refusal a queue: that of the part of it that came furthest. Parts are variants of one queue for job sizes."""
    found: dict[str, Skip] = {}
    for skip in skipped:
        site = grid.sites.get(skip.site)
        queue = site.queue if site is not None else skip.site
        known = found.get(queue)
        if known is None or _rank(skip, order) > _rank(known, order):
            found[queue] = skip
    return found


def _rank(skip: Skip, order: Mapping[str, int]) -> tuple[bool, int, float]:
    return skip.code not in OWN_CHOICE, order.get(skip.code, 0), -_far(skip)


def _far(skip: Skip) -> float:
    return 1.0 if skip.gap is None else skip.gap


def _none_allowed(needs: TaskNeeds, grid: Grid, may: Allowed, queues: list[Skip]) -> Blocked:
    """The task's own words leave no site: those that it names are not there, or it excludes them."""
    if may.unknown:
        return Blocked(codes.SITE_UNKNOWN, f"{_unknown(may.unknown, grid)}.")
    counted: dict[str, int] = {}
    for skip in queues:
        counted[skip.code] = counted.get(skip.code, 0) + 1
    own = {code: n for code, n in counted.items() if code in OWN_CHOICE} or counted or {codes.NO_SITE_KNOWN: 0}
    # Of all that the task says of sites, what it excludes by name is what leaves none of those that it wants.
    code = codes.EXCLUDED if codes.EXCLUDED in own else max(own, key=lambda one: (own[one], one))
    one = next((skip for skip in queues if skip.code == code), None)
    what = f": {one.site}: {one.detail}" if one is not None else ""
    return Blocked(code, f"The task's own choice of sites leaves none of {len(queues)}{what}.")


def _unknown(unknown: tuple[str, ...], grid: Grid) -> str:
    known = {site.queue for site in grid.sites.values()}
    said = f"{', '.join(unknown[:NAMED])} {'does' if len(unknown) == 1 else 'do'} not exist"
    near = get_close_matches(unknown[0], sorted(known), 1)
    return f"{said} (did you mean {near[0]}?)" if near else said


def _sentence(open_to: list[Skip], nearest: Skip, queues: int, unknown: tuple[str, ...], grid: Grid) -> str:
    queue = grid.sites[nearest.site].queue if nearest.site in grid.sites else nearest.site
    also = f" {_unknown(unknown, grid)}." if unknown else ""
    if len(open_to) == 1 and queues > 1:
        return f"{queue}, the only site that the task may use, was skipped: {nearest.detail}.{also}"
    counted: dict[str, int] = {}
    for skip in open_to:
        counted[skip.code] = counted.get(skip.code, 0) + 1
    listed = sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
    reasons = ", ".join(f"{n} {code.replace('_', ' ')}" for code, n in listed)
    if len(open_to) == 1:
        return f"The only site was skipped: {reasons}. {queue}: {nearest.detail}.{also}"
    if len(open_to) == queues:
        subject = f"All {queues} sites were skipped"
    else:
        subject = f"All {len(open_to)} sites that the task may use were skipped"
    return f"{subject}: {reasons}. Last was {queue}: {nearest.detail}.{also}"
