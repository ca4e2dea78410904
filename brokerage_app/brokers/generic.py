"""The job broker for tasks of VOs without rules of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from brokerage_app.cases.case import grid_of
from brokerage_app.cases.generic_case import GenericCase
from brokerage_app.filters import capacity, data, events, policy, resources, state
from brokerage_app.filters.asking import Rule, sift
from brokerage_app.filters.candidates import cloud_of, elsewhere_first, others_first
from brokerage_app.filters.candidates import in_order as names_in_order
from brokerage_app.filters.software_rules import has_software
from brokerage_app.formulas.queue_room import ALONE, MIN_QUEUE, QueueUsers
from brokerage_app.formulas.storage import LEAST_SPACE_GB
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Grid
from brokerage_app.vocabulary.verdict import Choice, Verdict


def _is_bound(case: GenericCase) -> bool:
    return bool(case.needs.preassigned_site)


def _is_free(case: GenericCase) -> bool:
    return not case.needs.preassigned_site


def _excludes(case: GenericCase) -> bool:
    return bool(case.needs.excluded_sites)


def _lists(case: GenericCase) -> bool:
    return bool(case.needs.included_sites)


def _asks_time(case: GenericCase) -> bool:
    return case.needs.walltime_s > 0 or case.needs.cpu_hs06s > 0


def _states_walltime(case: GenericCase) -> bool:
    """What follows from the CPU time of the smallest job is only a lower bound: jobs are made longer for sites that want it."""
    return case.needs.walltime_s > 0 and case.needs.cpu_hs06s <= 0


def _asks_cores(case: GenericCase) -> bool:
    return bool(case.needs.cores)


def _asks_memory(case: GenericCase) -> bool:
    return case.needs.memory_mb > 0 or case.needs.base_memory_mb > 0


def _asks_software(case: GenericCase) -> bool:
    return case.platform.is_asked or bool(case.platform.fault)


def _may_be_shut(case: GenericCase) -> bool:
    return bool(case.shut)


def _is_hard_to_read(case: GenericCase) -> bool:
    return bool(case.unread)


RULES: Final[tuple[Rule[GenericCase, SiteView], ...]] = (
    Rule(policy.preassigned, _is_bound),
    Rule(state.online),
    Rule(events.jumbo, _is_free),
    Rule(policy.not_excluded, _excludes),
    Rule(policy.included, _lists),
    Rule(resources.scratch_disk),
    Rule(data.space_of_queue),
    Rule(resources.walltime, _asks_time),
    Rule(resources.least_walltime, _states_walltime),
    Rule(resources.cores, _asks_cores),
    Rule(resources.memory, _asks_memory),
    Rule(policy.processing_type),
    Rule(events.event_service, _is_free),
    Rule(events.channel),
    Rule(has_software, _asks_software),
    Rule(data.input_readable, _is_hard_to_read),
    Rule(data.takes_outputs, _may_be_shut),
    Rule(state.has_pilots_for_queued),
    Rule(policy.can_build, policy.builds_fail),
)
ORDER: Final = (
    codes.OTHER_CLOUD,
    codes.NOT_PREASSIGNED,
    codes.SITE_OFFLINE,
    codes.SITE_PAUSED,
    codes.SITE_STANDBY,
    codes.SITE_BROKEROFF,
    codes.SITE_TEST_ONLY,
    codes.JUMBO_QUEUE,
    codes.NO_JUMBO_QUEUE,
    codes.FEW_EVENTS,
    codes.EXCLUDED,
    codes.NOT_INCLUDED,
    codes.SCRATCH_DISK,
    codes.STORAGE_FULL,
    codes.SHORT_WALLTIME,
    codes.LONG_WALLTIME,
    codes.TOO_FEW_CORES,
    codes.MULTI_CORE_ONLY,
    codes.LOW_MEMORY,
    codes.HIGH_MEMORY,
    codes.PROCESSING_TYPE,
    codes.NO_EVENT_SERVICE,
    codes.EVENT_SERVICE_HIGH_ONLY,
    codes.EVENT_SERVICE_NEEDS_CORES,
    codes.EVENT_SERVICE_ONLY,
    codes.NO_EVENT_CHANNEL,
    codes.BAD_ARCHITECTURE,
    codes.NO_RELEASE,
    codes.NO_CPU,
    codes.NO_GPU,
    codes.NO_CONTAINER,
    codes.HARDWARE_RESERVED,
    codes.NO_PLATFORM,
    codes.SOURCE_NOT_SENDING,
    codes.INPUT_NOT_READABLE,
    codes.OUTPUT_NOT_WRITABLE,
    codes.NO_PILOTS,
    codes.BUILD_FAILS_THERE,
    codes.QUEUE_FULL,
    codes.USER_QUEUE_LONG,
    codes.TAKEN_BACK,
    codes.PILOTS_STOPPED,
    codes.LOW_WEIGHT,
)
"""Where each reason stands in funnels, and which of several counts as the last. Each that a rule gives has its place."""

MOST: Final = 5
"""Queues that the jobs of a task go to at a time."""


def rules(min_queue: int = MIN_QUEUE) -> tuple[Rule[GenericCase, SiteView], ...]:
    """All rules, with a floor for the number of queued jobs that a site may have."""
    return (
        *RULES,
        Rule(capacity.queue_not_full(min_queue)),
        Rule(capacity.user_has_part(min_queue)),
    )


ALL_RULES: Final = rules()


def weigh(site: SiteView) -> Choice:
    """Weight (running + 1) / (queued + defined + 1) / (defined + 1): busy sites with short queues first."""
    factors = (
        ("running + 1", float(site.running + 1)),
        ("1 / (queued + defined + 1)", 1 / (site.queued + site.defined + 1)),
        ("1 / (defined + 1)", 1 / (site.defined + 1)),
    )
    weight = (site.running + 1) / (site.queued + site.defined + 1) / (site.defined + 1)
    return Choice(site.name, weight, factors, queued=site.queued + site.defined)


def refusal(needs: TaskNeeds, grid: Grid, site: SiteView) -> Skip | None:
    """Why one queue does not accept the jobs, regardless of its queued jobs; None when it accepts them."""
    return next(iter(sift(GenericCase(needs, grid), [site], RULES).out), None)


def broker(
    needs: TaskNeeds,
    sites: Iterable[SiteView] | Grid,
    rules: Iterable[Rule[GenericCase, SiteView]] = ALL_RULES,
    *,
    min_free_gb: float = LEAST_SPACE_GB,
    queue_users: QueueUsers = ALONE,
) -> Verdict:
    """Choose sites for the jobs of a task, best first, and say of every other site why not.

    Each site is skipped by the first rule that objects, so a verdict has one reason a site. Of those that are left the
    best five are taken, those first that have had jobs of the task; queues whose pilots have stopped asking only when no
    other takes the jobs. Ties go by name and sites are asked by name: the same input gives the same answer whatever its
    order. Pseudo queues are not asked: their parent is. `min_free_gb` is the space that a storage for outputs must have
    left, `queue_users` are the users who want places in queues.
    """
    case = GenericCase(needs, sites if isinstance(sites, Grid) else grid_of(sites), min_free_gb, queue_users)
    cloud = cloud_of(needs, case.grid)
    in_order = [case.grid.sites[name] for name in names_in_order(case.grid)]
    asked, elsewhere = [], []
    for site in in_order:
        if site.parent:
            continue
        if cloud and site.cloud != cloud and not needs.preassigned_site:
            elsewhere.append(policy.in_other_cloud(site, cloud))
        else:
            asked.append(site)
    found = sift(case, asked, tuple(rules))
    kept, left = elsewhere_first(case, found.kept)
    # Where pilots are started for jobs none asks before there is one: such queues are the last, and never refused.
    kept, quiet = others_first(case, kept, state.pilots_come)
    chosen = [weigh(site) for site in kept]
    chosen.sort(key=lambda choice: (choice.site not in needs.used_sites, -choice.weight, choice.site))
    most = chosen[:MOST]
    says = "the lowest weight among the best is {:.3g}, the queue has {:.3g}; {:queue is|queues are} used at a time"
    least = min((choice.weight for choice in most), default=0.0)
    rest = [Skip(one.site, codes.LOW_WEIGHT, says, (least, one.weight, MOST)) for one in chosen[MOST:]]
    return Verdict(tuple(most), (*elsewhere, *found.out, *left, *quiet, *rest))
