"""The broker of production jobs: the rules of the JEDI brokerage document in their order, then weights, then the best ten."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from brokerage_app.brokers.production_rules import FINAL, MISSING, RULES, asks_software, stays_at_nucleus
from brokerage_app.cases.production_case import NOBODY, ProductionCase, ProductionSettings
from brokerage_app.filters import data
from brokerage_app.filters.asking import Rule, Sifted, sift
from brokerage_app.filters.candidates import Candidates, candidates, elsewhere_first
from brokerage_app.formulas.disk import work_dir_for_job_mb
from brokerage_app.formulas.software import resolved_platform
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Grid
from brokerage_app.vocabulary.verdict import UNTRIED, Choice, Verdict

__all__ = ["FINAL", "MISSING", "RULES", "ProductionSettings", "broker", "case_of", "hint", "of_named"]

BEST: Final = 10


def case_of(
    needs: TaskNeeds,
    grid: Grid,
    settings: ProductionSettings | None = None,
    found: Candidates | None = None,
    *,
    made: Mapping[str, int] = NOBODY,
    locked: Collection[str] = (),
) -> ProductionCase:
    """What the rules are asked with, of the candidates that were found for the work."""
    asked = found or candidates(needs, grid)
    return ProductionCase(
        needs,
        grid,
        settings or ProductionSettings(),
        is_single=asked.is_single,
        is_bound=asked.is_bound,
        made=made,
        locked=locked,
    )


def broker(
    needs: TaskNeeds,
    grid: Grid,
    settings: ProductionSettings | None = None,
    *,
    made: Mapping[str, int] = NOBODY,
    locked: Collection[str] = (),
) -> Verdict:
    """Choose queues for production jobs, best first, and say of every other queue why not.

    made     jobs that were made in this pass and are not in the grid's counts, by queue
    locked   queues that another broker looks at
    Ties go by name, so the same input gives the same answer whatever its order. Queues that are divided into pseudo
    queues are neither chosen nor skipped: their pseudo queues are.
    """
    found = candidates(needs, grid)
    case = case_of(needs, grid, settings, found, made=made, locked=locked)
    stopped = _unreachable(case)
    if stopped is not None:
        return Verdict(stopped=stopped)
    sifted = _sift(case, found.sites, RULES)
    last = sift(case, sifted.kept, FINAL)
    kept, avoided = elsewhere_first(case, last.kept)
    chosen, left = _select(case, kept)
    skipped = (*found.skipped, *sifted.out, *(skip for _, skip in sifted.marked), *last.out, *avoided, *left)
    return Verdict(tuple(chosen), skipped)


def hint(
    needs: TaskNeeds, grid: Grid, settings: ProductionSettings | None = None, sites: Iterable[SiteView] | None = None
) -> Verdict:
    """The queues among `sites` (all when None) that could run the jobs, wherever outputs are gathered.

    For the choice of a nucleus: no weights, and no look at links, input and how full the queues are. All are chosen with
    weight 1.
    """
    anywhere = replace(needs, nucleus="", preassigned_site="", listed_sites=())
    found = candidates(anywhere, grid)
    case = case_of(anywhere, grid, settings, found)
    asked = found.sites if sites is None else sorted((s for s in sites if not s.is_parent), key=lambda site: site.name)
    return _able(case, asked)


def of_named(needs: TaskNeeds, grid: Grid, settings: ProductionSettings | None = None) -> Verdict:
    """The queues that the task names and that could run its jobs, and why the others of the grid could not.

    At the nucleus of the task, or wherever outputs are gathered when it has none. No weights, and no look at how full the
    queues are. All are chosen with weight 1.
    """
    found = candidates(needs, grid)
    said = _able(case_of(needs, grid, settings, found), found.sites)
    return replace(said, skipped=(*found.skipped, *said.skipped))


def _able(case: ProductionCase, sites: Sequence[SiteView]) -> Verdict:
    sifted = sift(case, sites, RULES)
    return Verdict(
        tuple(Choice(site.name, 1.0) for site in sifted.kept),
        (*sifted.out, *(skip for _, skip in sifted.marked)),
    )


def _unreachable(case: ProductionCase) -> Skip | None:
    """Why nobody could read the input: no storage that is up has all of it."""
    if case.needs.merging or case.needs.prestaging or case.needs.incomplete_input:
        return None
    for one in case.reach:
        if one.readable:
            continue
        if one.complete:
            where = ", ".join(one.complete)
            if why := case.grid.why_away(one.complete):
                says = "{} is complete only at {}, which cannot be read now{}"
                return Skip("", codes.INPUT_IN_DOWNTIME, says, (one.data.name, where, why))
            says = "{} is complete only at {}, which is in downtime"
            return Skip("", codes.INPUT_IN_DOWNTIME, says, (one.data.name, where))
        says = "{1} has {0:file|files}, no storage has more than {2}"
        most = max((replica.files for replica in one.data.replicas.values()), default=0)
        return Skip("", codes.INPUT_INCOMPLETE, says, (one.data.files, one.data.name, most))
    return None


def _sift(
    case: ProductionCase, sites: Sequence[SiteView], rules: Sequence[Rule[ProductionCase, SiteView]]
) -> Sifted[SiteView]:
    """Ask the rules, and of those that are left how much input they miss."""
    found = sift(case, sites, rules)
    if not MISSING.asked(case):
        return found
    marks = {site.name: skip for site, skip in found.marked}
    left = sorted([*found.kept, *(site for site, _ in found.marked)], key=lambda site: site.name)
    on_disk, with_tape, out = [], [], []
    for site in left:
        skip = data.little_input_missing(case, site)
        if skip is not None:
            out.append(skip)
            continue
        skip = data.missing_but_for_tape(case, site)
        if skip is None:
            on_disk.append(site)
        else:
            with_tape.append((site, skip))
    if on_disk:
        out += [skip for _, skip in with_tape]
    elif not with_tape:
        return found
    kept = on_disk or [site for site, _ in with_tape]
    return Sifted(
        [site for site in kept if site.name not in marks],
        [(site, marks[site.name]) for site in kept if site.name in marks],
        [*found.out, *out],
    )


def _select(case: ProductionCase, sites: Sequence[SiteView]) -> tuple[list[Choice], list[Skip]]:
    """Weights, and the choice by them: empty queues first, then the heaviest, ten in all."""
    skipped: list[Skip] = []
    chosen: list[tuple[Choice, SiteView]] = []
    started: set[str] = set()
    for site in sites:
        choice = _choice(case, site)
        if choice.bootstrap and site.queue in started:
            says = "slots of another kind at {} get the first jobs"
            skipped.append(Skip(site.name, codes.BOOTSTRAP_ELSEWHERE, says, (site.queue,)))
            continue
        if not choice.bootstrap and choice.weight < case.settings.min_weight:
            says = "the minimum weight is {:.3g}, the queue has {:.3g}"
            skipped.append(Skip(site.name, codes.BELOW_MIN_WEIGHT, says, (case.settings.min_weight, choice.weight)))
            continue
        if choice.bootstrap:
            started.add(site.queue)
        chosen.append((choice, site))
    if stays_at_nucleus(case) and len(chosen) > 1:
        chosen, others = _busiest(case, chosen)
        skipped += others
    chosen.sort(key=lambda pair: (not pair[0].bootstrap, -pair[0].weight, pair[0].site))
    kept = [choice for choice, _ in chosen[:BEST]]
    says = "the lowest weight among the best ten is {:.3g}, the queue has {:.3g}"
    skipped += [
        Skip(choice.site, codes.LOW_WEIGHT, says, (kept[-1].weight, choice.weight)) for choice, _ in chosen[BEST:]
    ]
    return kept, skipped


def _choice(case: ProductionCase, site: SiteView) -> Choice:
    found, counts = case.weighed(site), case.counts(site)
    bootstrap = (
        not found.running
        and not counts.queued
        and not found.defined
        and case.needs.priority <= case.settings.max_prio_to_bootstrap
        and not case.needs.merging
        and not case.is_express
    )
    factors = ((UNTRIED, 0.0),) if bootstrap else found.factors
    part = work_dir_for_job_mb(site.work_dir_mb, site.cores, case.cores)
    return Choice(
        site.name,
        0.0 if bootstrap else found.weight,
        factors,
        bootstrap,
        found.queued,
        found.cap,
        resolved_platform(case.platform, case.software(site)) if asks_software(case) else "",
        int(part) if part != site.work_dir_mb else None,
    )


def _busiest(
    case: ProductionCase, chosen: Sequence[tuple[Choice, SiteView]]
) -> tuple[list[tuple[Choice, SiteView]], list[Skip]]:
    """Of the nucleus only the queue that runs most jobs of all kinds."""
    running = {choice.site: case.totals(site).running for choice, site in chosen}
    best = min(chosen, key=lambda pair: (-running[pair[0].site], pair[0].site))
    says = "{:job runs|jobs run} at the busiest queue, {} here; the task stays at {}"
    return [best], [
        Skip(
            choice.site, codes.NOT_BUSIEST_OF_NUCLEUS, says, (running[best[0].site], running[choice.site], best[0].site)
        )
        for choice, _ in chosen
        if choice.site != best[0].site
    ]
