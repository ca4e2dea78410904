"""Why a task can run nowhere: the gate that removed the last of the sites that it may use. Pure.

A grid refuses most tasks at most sites, and for most of these refusals nobody needs to care: the task was never to run
there. What decides is said of the sites that the task itself allows, and by the rule that came furthest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Final

from brokerage_app.filters.candidates import cloud_of
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import TaskNeeds, names
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Grid
from brokerage_app.vocabulary.verdict import Blocked, Verdict, counted, sentence_of
from jedisite.vocabulary.words import nearest

OWN_CHOICE: Final = frozenset({codes.NOT_PREASSIGNED, codes.NOT_INCLUDED, codes.EXCLUDED, codes.OTHER_CLOUD})
"""Refusals that only repeat what the task itself says of where it may run."""
STATUS: Final = frozenset(
    {codes.SITE_OFFLINE, codes.SITE_PAUSED, codes.SITE_STANDBY, codes.SITE_BROKEROFF, codes.SITE_TEST_ONLY}
)
"""Refusals for what a site's status is."""
_ONE_GATE: Final = (STATUS, frozenset({codes.LOW_MEMORY, codes.HIGH_MEMORY}))
AUTO: Final = "AUTO"
_SIGNS: Final = frozenset("*?[")
NAMED: Final = 5
FEW: Final = 3


@dataclass(frozen=True, slots=True)
class Allowed:
    """The queues that the task itself allows, by name.

    unknown    names and patterns that it wants although no queue has them; `excluded`: names of queues that it wants and excludes
    """

    names: Set[str]
    unknown: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


def allowed(needs: TaskNeeds, grid: Grid) -> Allowed:
    """The queues of a grid that the task allows by site, includedSite, excludedSite and cloud.

    A name stands for the queue, for the pseudo queues of it, and, when it is an endpoint, for the queues that read there.
    """
    bound = (needs.preassigned_site,) if needs.preassigned_site else needs.listed_sites
    wanted = bound or tuple(name for name in needs.included_sites if name != AUTO)
    cloud = "" if bound else cloud_of(needs, grid)
    found, met, excluded = [], set(), []
    for site in grid.sites.values():
        own = {site.name, site.parent or site.name}
        if wanted:
            fitting = [name for name in wanted if _stands_for(name, site, own, bound=bool(bound))]
            met.update(fitting)
            if not fitting and AUTO not in needs.included_sites:
                continue
        if cloud and site.cloud != cloud:
            continue
        if any(names(needs.excluded_sites, name) for name in own):
            excluded.append(site.queue)
            continue
        found.append(site.name)
    unknown = [name for name in wanted if name not in met]
    return Allowed(frozenset(found), tuple(unknown), tuple(dict.fromkeys(excluded)))


def names_queues(needs: TaskNeeds) -> bool:
    """Whether the task names the queues that it may use, by site or includedSite."""
    included = needs.included_sites and AUTO not in needs.included_sites
    return bool(needs.preassigned_site or needs.listed_sites or included)


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
    return _last_gate(_by_queue(verdict.skipped, grid, order, may.names), may, needs, grid, order)


def _last_gate(
    queues: Mapping[str, Skip], may: Allowed, needs: TaskNeeds, grid: Grid, order: Mapping[str, int]
) -> Blocked:
    open_to = [skip for skip in queues.values() if skip.site in may.names and skip.code not in OWN_CHOICE]
    if not open_to:
        return _none_allowed(needs, grid, may, list(queues.values()))
    last = _last_code(open_to, order)
    near = sorted(
        open_to,
        key=lambda skip: (-_gate(skip.code, order), not _has_pilots(skip.site, grid), far(skip), skip.site),
    )
    sites = tuple(skip for skip in near if skip.code == last)
    earlier = tuple(skip for skip in near if skip.code != last)
    return Blocked(last, _sentence(open_to, sites[0], len(queues), may.unknown, grid), sites, earlier)


def _last_code(open_to: Collection[Skip], order: Mapping[str, int]) -> str:
    """The code of the gate that came furthest: where it has several, that of most sites."""
    counts = Counter(skip.code for skip in open_to)
    return max(
        open_to, key=lambda skip: (_gate(skip.code, order), counts[skip.code], order.get(skip.code, 0), -far(skip))
    ).code


def _gate(code: str, order: Mapping[str, int]) -> int:
    """The place of a code's gate: the codes of one question, such as a site's status, are of one gate."""
    return max((order.get(other, 0) for other in next((one for one in _ONE_GATE if code in one), (code,))), default=0)


def _has_pilots(name: str, grid: Grid) -> bool:
    """Whether pilots have called from a queue lately; until that is counted, whether a job has started there."""
    site = grid.sites.get(name)
    if site is None:
        return False
    return site.pilots_3h > 0 if site.pilots_3h is not None else site.running > 0 or site.last_start_s is not None


def of_queues(skipped: Iterable[Skip], grid: Grid, order: Mapping[str, int]) -> Blocked | None:
    """Why none of some queues takes the jobs, whatever the task says of where it runs; None when none was refused.

    The sentence names few queues, "A_Q, B_Q: the site's status is offline. C_Q: needs 2 MB, the site gives 1 MB", and
    counts many.
    """
    every = grid.sites.keys()
    queues = _by_queue((_with_slot(skip, grid) for skip in skipped), grid, order, every)
    if not queues:
        return None
    found = _last_gate(queues, Allowed(every), TaskNeeds(), grid, order)
    if len(queues) <= FEW:
        alike: dict[str, list[str]] = {}
        for queue, skip in sorted(queues.items()):
            alike.setdefault(skip.detail, []).append(queue)
        said = ". ".join(f"{', '.join(names)}: {detail}" for detail, names in alike.items())
    else:
        last = found.sites[0]
        said = f"{counted(_counted(queues.values()))}, last was {_queue(last.site, grid)}: {last.detail}"
    return replace(found, sentence=said)


def with_blocked(verdict: Verdict, needs: TaskNeeds, grid: Grid, order: Mapping[str, int]) -> Verdict:
    """The verdict with the reason that blocks the task, or with the number of chosen queues and why others were not."""
    if not grid.sites:
        return verdict
    verdict = replace(verdict, skipped=tuple(_with_slot(skip, grid) for skip in verdict.skipped))
    sites = (*(choice.site for choice in verdict.chosen), *(skip.site for skip in verdict.skipped))
    parts = {name: queue for name in sites if (queue := _queue(name, grid)) != name}
    chosen = {_queue(choice.site, grid) for choice in verdict.chosen}
    may = allowed(needs, grid).names if parts and _chooses(needs) else frozenset(grid.sites)
    found = _by_queue(verdict.skipped, grid, order, may)
    left = {queue: skip for queue, skip in found.items() if queue not in chosen}
    verdict = replace(verdict, parts=parts, queues=left, blocked=blocked(verdict, needs, grid, order))
    if not chosen:
        return verdict
    return replace(verdict, says=sentence_of(len(chosen), _counted(left.values()), best=verdict.chosen[0].site))


def _chooses(needs: TaskNeeds) -> bool:
    """Whether the task itself says where it may run."""
    named = needs.preassigned_site or needs.listed_sites or needs.included_sites or needs.excluded_sites
    return bool(named or needs.cloud)


def _by_queue(skipped: Iterable[Skip], grid: Grid, order: Mapping[str, int], may: Collection[str]) -> dict[str, Skip]:
    """One refusal a queue: that of the part of it that came furthest. Parts are variants of one queue for job sizes.

    Of queues that the task itself rules out (that are not among `may`) it is that, whatever else was found on the way.
    """
    found: dict[str, Skip] = {}
    for skip in skipped:
        queue = _queue(skip.site, grid)
        known = found.get(queue)
        if known is None or _rank(skip, order, may) > _rank(known, order, may):
            found[queue] = skip
    return found


def _queue(name: str, grid: Grid) -> str:
    site = grid.sites.get(name)
    return site.queue if site is not None else name


def _counted(skips: Iterable[Skip]) -> dict[str, int]:
    """How many queues each code skipped, the most frequent first, ties by code."""
    found = Counter(skip.code for skip in skips)
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _rank(skip: Skip, order: Mapping[str, int], may: Collection[str]) -> tuple[bool, int, float]:
    return (skip.code in OWN_CHOICE) is (skip.site not in may), order.get(skip.code, 0), -far(skip)


def far(skip: Skip) -> float:
    """By which part of what is needed a site falls short; 1 where nothing is compared."""
    return 1.0 if skip.gap is None else skip.gap


def _none_allowed(needs: TaskNeeds, grid: Grid, may: Allowed, queues: list[Skip]) -> Blocked:
    """The task itself allows no site: the sites that it names do not exist, or it excludes them."""
    if may.unknown:
        return Blocked(codes.SITE_UNKNOWN, f"{_unknown(may.unknown, grid)}.")
    start = f"The task's own choice excludes {'the only site' if len(queues) == 1 else f'all {len(queues)} sites'}"
    if may.excluded:
        named = (needs.preassigned_site,) if needs.preassigned_site else needs.listed_sites or needs.included_sites
        wants = f"wants {', '.join(named[:NAMED])} and " if named else ""
        return Blocked(codes.EXCLUDED, f"{start}: it {wants}excludes {', '.join(needs.excluded_sites[:NAMED])}.")
    counted = _counted(queues) or {codes.NO_SITE_KNOWN: 0}
    code = next((code for code in counted if code in OWN_CHOICE), next(iter(counted)))
    one = next((skip for skip in queues if skip.code == code), None)
    return Blocked(code, f"{start}: {one.site}: {one.detail}." if one is not None else f"{start}.")


def _unknown(unknown: tuple[str, ...], grid: Grid) -> str:
    shown = unknown[:NAMED]
    patterns = [name for name in shown if name not in grid.gone and not _SIGNS.isdisjoint(name)]
    said = [f"{name} {grid.gone[name]}" for name in shown if name in grid.gone]
    said += [_unmatched(pattern, grid) for pattern in patterns]
    never = [name for name in shown if name not in grid.gone and name not in patterns]
    if never:
        near = nearest(never[0], {site.queue for site in grid.sites.values()})
        also = f" (did you mean {near}?)" if near else ""
        said.append(f"{', '.join(never)} {'does' if len(never) == 1 else 'do'} not exist{also}")
    return "; ".join(said)


def _unmatched(pattern: str, grid: Grid) -> str:
    """That a pattern matches no queue, with those that it matched until they were deleted, the latest last."""
    gone = [f"{name} {how}" for name, how in grid.gone.items() if names((pattern,), name)]
    more = f" and {len(gone) - FEW} more" if len(gone) > FEW else ""
    return (
        f"{pattern} matches no queue any more: {', '.join(gone[-FEW:])}{more}"
        if gone
        else f"{pattern} matches no queue"
    )


_OF_SLOT: Final[Mapping[str, str]] = {codes.LOW_MEMORY: "max_memory_mb", codes.SCRATCH_DISK: "work_dir_mb"}


def _with_slot(skip: Skip, grid: Grid) -> Skip:
    """A refusal that also says of which slot its limit is a part: a pseudo queue has less than its queue is described with."""
    field = _OF_SLOT.get(skip.code)
    part = grid.sites.get(skip.site) if field is not None else None
    whole = grid.sites.get(part.parent) if part is not None else None
    if field is None or part is None or whole is None or not 0 < part.cores < whole.cores or not getattr(whole, field):
        return skip
    says, of = (
        f"{skip.says} ({{}} of the {{}} cores of a slot of {{}} MB)",
        (part.cores, whole.cores, getattr(whole, field)),
    )
    return replace(skip, says=says, values=(*skip.values, *of))


def _sentence(open_to: list[Skip], nearest: Skip, queues: int, unknown: tuple[str, ...], grid: Grid) -> str:
    queue, detail = _queue(nearest.site, grid), nearest.detail
    also = f" {_unknown(unknown, grid)}." if unknown else ""
    if len(open_to) == 1 and queues > 1:
        return f"{queue}, the only site that the task may use, was skipped: {detail}.{also}"
    if len(open_to) == 1:
        return f"The only site, {queue}, was skipped: {detail}.{also}"
    reasons = counted(_counted(open_to))
    if len(open_to) == queues:
        subject = f"All {queues} sites were skipped"
    else:
        subject = f"All {len(open_to)} sites that the task may use were skipped"
    return f"{subject}: {reasons}. Last was {queue}: {detail}.{also}"
