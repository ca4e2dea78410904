"""Where the jobs of analysis tasks go (JEDI brokerage document, ATLAS Analysis Job Brokerage).

First whether the user gets jobs at all; then queues near the input, and where none of those will do, queues to which the
input can be brought; of these the best by weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from brokerage_app.brokers.analysis_rules import RULES, asks_software, names_software
from brokerage_app.cases import analysis_weights as weights
from brokerage_app.cases.analysis_case import AUTO, AnalysisCase
from brokerage_app.cases.analysis_settings import NO_FACTS, AnalysisFacts, AnalysisSettings
from brokerage_app.cases.analysis_weights import Factors
from brokerage_app.filters import analysis, policy, software_rules
from brokerage_app.filters.asking import sift
from brokerage_app.filters.candidates import elsewhere_first
from brokerage_app.formulas.disk import work_dir_for_job_mb
from brokerage_app.formulas.locality import input_in_words
from brokerage_app.formulas.queue_room import MIN_QUEUE
from brokerage_app.formulas.software import resolved_platform
from brokerage_app.policy import userthrottle
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Grid
from brokerage_app.vocabulary.verdict import Choice, Verdict

UNIFIED_SWITCH: Final = "grandly_unified"
KINDS: Final = frozenset({"analysis", "unified"})
HOSPITAL: Final = "_HOSPITAL"
_LEFT: Final = frozenset({codes.CLOSED_THERE, codes.TAKEN_BACK})
_OWN: Final = _LEFT | {codes.FAILING_THERE}
DEFAULT_SETTINGS: Final = AnalysisSettings()


@dataclass(slots=True)
class _Left:
    """What is left of the queues after one pass."""

    case: AnalysisCase
    kept: list[SiteView]
    marked: list[tuple[SiteView, Skip]]
    out: list[Skip]

    def drop(self, objection: Callable[[SiteView], Skip | None], *, temporary: bool = False) -> None:
        """Take out the queues that there is an objection to; for the time being only those that are still in."""
        kept = []
        for site in self.kept:
            skip = objection(site)
            if skip is None:
                kept.append(site)
            elif temporary:
                self.marked.append((site, skip))
            else:
                self.out.append(skip)
        self.kept = kept
        if not temporary:
            skips = [(site, mark, objection(site)) for site, mark in self.marked]
            self.marked = [(site, mark) for site, mark, skip in skips if skip is None]
            self.out += [skip for _, _, skip in skips if skip is not None]

    @property
    def survivors(self) -> list[SiteView]:
        """Queues that no rule objected to for good, without those that the task has left: they come after all others."""
        return [*self.kept, *(site for site, mark in self.marked if mark.code not in _LEFT)]


def gate(needs: TaskNeeds, settings: AnalysisSettings, facts: AnalysisFacts) -> Skip | None:
    """Why the user's task gets no jobs now at any queue."""
    return userthrottle.refusal(
        who=facts.who,
        usage=facts.usage,
        caps=settings.group_caps if facts.is_group else settings.user_caps,
        share=needs.share,
        state=facts.share,
        of_class=facts.task_class,
        slots_a=settings.slots_a,
        quotas=facts.quotas,
        merging=needs.merging,
    )


def case_of(
    needs: TaskNeeds, grid: Grid, settings: AnalysisSettings = DEFAULT_SETTINGS, facts: AnalysisFacts = NO_FACTS
) -> AnalysisCase:
    """What the rules are asked with, in the pass that keeps to the input."""
    return AnalysisCase(needs, grid, settings, facts)


def broker(
    needs: TaskNeeds,
    grid: Grid,
    settings: AnalysisSettings = DEFAULT_SETTINGS,
    facts: AnalysisFacts = NO_FACTS,
    *,
    draw: Callable[[], float] | None = None,
) -> Verdict:
    """Choose queues for jobs of an analysis task, best first, and say of every other queue why not.

    Parents of pseudo queues stand for these and are not named. Where no queue near the input is left for good reasons,
    every queue is asked again without regard to input (if all of it can be fetched), and those answers count.
    `draw` gives random numbers by which queues of equal weight are ordered; without it they are ordered by name. The order
    of the queues in the grid never matters.
    """
    stopped = gate(needs, settings, facts)
    if stopped is not None:
        return Verdict(stopped=stopped)
    case = case_of(needs, grid, settings, facts)
    if case.missing is not None and not (needs.merging or needs.prestaging or needs.incomplete_input):
        return Verdict(stopped=case.missing)
    sites = sorted((site for site in grid.sites.values() if not site.is_parent), key=lambda site: site.name)
    left = _ask(case, sites)
    if _goes_on_without_data(case, left):
        left = _ask(AnalysisCase(needs, grid, settings, facts, by_data=False), sites)
    _release_own(left)
    left.kept, avoided = elsewhere_first(case, left.kept)
    left.out += avoided
    verdict = _select(left, draw)
    return replace(verdict, note=_taken_on_trust(case, grid, verdict))


def _taken_on_trust(case: AnalysisCase, grid: Grid, verdict: Verdict) -> str:
    """Rules that were not applied to the queue that the task names, although it fails them; "" for none."""
    if not case.is_single or not verdict.chosen or not names_software(case):
        return ""
    skip = software_rules.has_software(case, grid.sites[verdict.chosen[0].site])
    return f"Not applied, because the task names its site: {skip.detail}." if skip is not None else ""


def _goes_on_without_data(case: AnalysisCase, left: _Left) -> bool:
    if case.near.datasets == 0 or not case.has_source:
        return False
    return not left.survivors or (case.may_move and not left.kept)


def _ask(case: AnalysisCase, sites: Sequence[SiteView]) -> _Left:
    out, asked = [], []
    for site in sites:
        if site.type in KINDS or UNIFIED_SWITCH in site.switches or case.is_preassigned(site):
            asked.append(site)
        else:
            says = "the queue takes {} only"
            out.append(Skip(site.name, codes.OTHER_KIND, says, (site.type,)))
    found = sift(case, asked, RULES)
    left = _Left(case, found.kept, found.marked, [*out, *found.out])
    _only_listed(left)
    _no_hospital(left)
    _release_preassigned(left)
    _not_overloaded(left)
    return left


def _only_listed(left: _Left) -> None:
    """With AUTO in the task's list others are used only when none of the listed queues is left."""
    case = left.case
    if AUTO in case.needs.included_sites and any(policy.included(case, site) is None for site in left.survivors):
        left.drop(lambda site: policy.included(case, site))


def _no_hospital(left: _Left) -> None:
    if all(site.name.endswith(HOSPITAL) for site in left.survivors):
        return
    says = "the queue is reserved for difficult jobs, {:other queue is|other queues are} left"
    others = sum(not site.name.endswith(HOSPITAL) for site in left.survivors)
    left.drop(lambda site: Skip(site.name, codes.HOSPITAL, says, (others,)) if site.name.endswith(HOSPITAL) else None)


def _release_preassigned(left: _Left) -> None:
    """Temporary problems do not keep work from the queue to which it is bound."""
    bound = [site for site, _ in left.marked if left.case.is_preassigned(site)]
    left.kept += bound
    left.marked = [(site, mark) for site, mark in left.marked if not left.case.is_preassigned(site)]


def _release_own(left: _Left) -> None:
    """What the task has met at a queue keeps it from there while it may use another. Where no other is left a wait mends nothing:
    jobs that were closed can only be made anew there, and more failures end the task with its own errors, which its owner
    can mend."""
    if not left.kept and all(mark.code in _OWN for _, mark in left.marked):
        left.kept, left.marked = [site for site, _ in left.marked], []


def _not_overloaded(left: _Left) -> None:
    """Leave busy queues to others while there are any; when all are busy those with real input stay."""
    case = left.case
    if case.needs.merging:
        return
    busy = {site.name for site in left.kept if analysis.is_overloaded(case, site) and not case.is_preassigned(site)}
    if len(busy) == len(left.kept):
        busy = {name for name in busy if case.near.datasets > 0 and name not in case.near.real}
    left.drop(lambda site: analysis.overloaded(case, site) if site.name in busy else None, temporary=True)


def _select(left: _Left, draw: Callable[[], float] | None) -> Verdict:
    """Weigh what is left and take the best."""
    case, settings = left.case, left.case.settings
    out = [*left.out, *(skip for _, skip in left.marked)]
    factors = _factors(case, left.kept)
    choices, order = [], {}
    for site in sorted(left.kept, key=lambda site: site.name):
        choice = _choice(case, site, factors[site.name])
        chance = draw() if draw is not None else 0.0
        if settings.min_weight and choice.weight < settings.min_weight:
            says = "the minimum weight is {:g}, the queue has {:.6g}"
            out.append(Skip(site.name, codes.BELOW_MIN_WEIGHT, says, (settings.min_weight, choice.weight)))
            continue
        far = case.near.datasets > 0 and site.name not in case.near.with_data
        unused = site.name not in case.needs.used_sites and site.queue not in case.needs.used_sites
        order[site.name] = (far, unused, -choice.weight, chance, site.name)
        choices.append(choice)
    choices.sort(key=lambda choice: order[choice.site])
    most = len(choices) if any(data.distributed for data in case.needs.inputs) else settings.most_chosen
    least = choices[most - 1].weight if len(choices) > most else 0.0
    for choice in choices[most:]:
        says = "the lowest weight among the best {2} is {0:.6g}, the queue has {1:.6g}"
        out.append(Skip(choice.site, codes.LOW_WEIGHT, says, (least, choice.weight, most)))
    return Verdict(tuple(choices[:most]), tuple(out))


def _factors(case: AnalysisCase, sites: Sequence[SiteView]) -> dict[str, Factors]:
    """The base weight of each queue, in factors."""
    needs = case.needs
    if case.settings.base_weight == "original" or not sites:
        return {site.name: weights.original(_running(case, site), case.counts(site).queued) for site in sites}
    candidates = [weights.Candidate(site.name, case.room(site).left, case.site_class(site)) for site in sites]
    if case.settings.base_weight == "new":
        return weights.new(candidates, jobs=needs.jobs_wanted, of_class=case.task_class)
    return weights.refined(candidates, jobs=needs.jobs_wanted, of_class=case.task_class, merging=needs.merging)


def _running(case: AnalysisCase, site: SiteView) -> int:
    counts = case.counts(site)
    return weights.running_number(
        counts.running,
        batch_jobs=site.batch_jobs,
        has_pilots=site.pilots_3h != 0,
        slots=site.slots_for(case.share, case.type_at(site) or None) if site.slots else None,
        cores=case.needs.cores_at(site),
        starting=counts.starting,
    )


def _choice(case: AnalysisCase, site: SiteView, base: Factors) -> Choice:
    """The queue with its weight, and how many jobs may wait there."""
    factors, near = base, case.near
    if near.datasets > 0:
        if case.by_data and not case.is_union:
            there = weights.data_weight(near.on_disk.get(site.name, 0), near.on_tape.get(site.name, 0))
            factors += (("input datasets there", there),)
        else:
            here = case.inputs.at(case.storage(site).inputs)
            name = input_in_words(case.needs.inputs, here)
            factors += ((name, weights.size_factor(here.disk_mb, here.any_mb)),)
            throttled = case.counts(site).throttled
            if throttled and site.name not in near.with_data:
                factors += (("1 / (throttled + 1)", 1 / (throttled + 1)),)
    counts, room = case.of_type(site), case.room(site)
    cap = 2 * max(MIN_QUEUE, counts.running)
    if room.full and not case.needs.merging:
        cap = min(cap, counts.queued + max(int(room.left) + 1, 0))
    part = work_dir_for_job_mb(site.work_dir_mb, site.cores, case.cores)
    full = (analysis.queue_not_full(case, site) or analysis.user_queue(case, site)) if counts.queued >= cap else None
    return Choice(
        site.name,
        weights.product(factors),
        factors,
        queued=counts.queued,
        cap=cap,
        platform=resolved_platform(case.platform, case.software(site)) if asks_software(case) else "",
        work_dir_mb=int(part) if part != site.work_dir_mb else None,
        full=full,
    )
