"""Why no nucleus takes a task, in words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from brokerage_app.brokers.deciding import far, of_queues
from brokerage_app.brokers.funnel import NUCLEI, PRODUCTION, order_of
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import InputData
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Grid, Nucleus
from brokerage_app.vocabulary.verdict import Blocked, Verdict, counted


def unreadable(data: InputData, grid: Grid) -> Skip:
    """Why nobody outside can read all of an input: where it is complete cannot be read, or it is complete nowhere."""
    complete = sorted(name for name, replica in data.replicas.items() if replica.complete)
    if complete:
        names = (data.name, ", ".join(complete[:5]))
        if any(grid.endpoints[name].is_up("read_lan") for name in complete if name in grid.endpoints):
            says = "the dataset {} is complete only at {}, where reading from outside (read_wan) is blacklisted"
            return Skip("", codes.SOURCE_NOT_SENDING, says, names)
        says = "the dataset {} is complete only at {}, which cannot be read now{}"
        return Skip("", codes.INPUT_IN_DOWNTIME, says, (*names, grid.why_away(complete)))
    says = "{1} has {0:known replica|known replicas}, none is complete on a storage that can be read from outside"
    return Skip("", codes.INPUT_INCOMPLETE, says, (len(data.replicas), data.name))


def words_of_queues(nuclei: Iterable[Nucleus], verdict: Verdict, grid: Grid) -> dict[str, str]:
    """Why none of the queues of each nucleus takes the jobs; without nuclei of which no queue was asked."""
    whose: dict[str, list[str]] = defaultdict(list)
    for nucleus in nuclei:
        for queue in nucleus.queues:
            whose[queue].append(nucleus.name)
    skips: dict[str, list[Skip]] = defaultdict(list)
    for skip in verdict.skipped:
        for name in whose.get(skip.site, ()):
            skips[name].append(skip)
    found = {name: of_queues(own, grid, order_of(PRODUCTION)) for name, own in skips.items()}
    return {name: blocked.sentence for name, blocked in found.items() if blocked is not None}


def blocked_by(grid: Grid, out: Sequence[Skip], jobs: Verdict, own: Blocked | None) -> Blocked:
    """Why no nucleus is left: what removed the last one; where that were its queues, what removed the last of these.

    Of a task that names queues, none of which takes its jobs either, what removed the last of them (`own`).
    """
    order = order_of("", NUCLEI)
    near = sorted(out, key=lambda skip: (-order.get(skip.code, 0), far(skip), skip.site))
    last = [skip for skip in near if skip.code == near[0].code]
    all_of = "The only nucleus was skipped" if len(out) == 1 else f"All {len(out)} nuclei were skipped"
    if last[0].code == codes.NUCLEUS_NO_QUEUE:
        names = {name for skip in last for name in grid.nuclei[skip.site].queues}
        found = of_queues((skip for skip in jobs.skipped if skip.site in names), grid, order_of(PRODUCTION))
        if found is not None:
            others = Counter(skip.code for skip in out if skip not in last)
            more = f"{counted(others)}; of the others none" if others else "none"
            whose = "its" if len(out) == 1 else "their"
            of = f"{more} of {whose} queues takes the jobs"
            if own is None:
                return replace(found, sentence=f"{all_of}: {of}. {found.sentence}.")
            earlier = (*own.earlier, *found.sites, *found.earlier)
            nearest = found.sites[0]
            if not {skip.site for skip in own.sites} & {skip.site for skip in found.sites}:
                queue = grid.sites[nearest.site].queue if nearest.site in grid.sites else nearest.site
                of += f" ({'the nearest is ' if len(found.sites) > 1 else ''}{queue}: {nearest.detail})"
            return replace(own, sentence=f"{all_of}: {of}. {own.sentence}", earlier=earlier, also=found.sites)
    reasons = counted(Verdict(skipped=tuple(out)).counts())
    where = last[0].site if len(out) == 1 else f"Last was {last[0].site}"
    return Blocked(
        last[0].code, f"{all_of}: {reasons}. {where}: {last[0].detail}.", tuple(last), tuple(near[len(last) :])
    )
