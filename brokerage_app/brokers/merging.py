"""Where merge jobs run: at the queue whose jobs have written their input, or at one that reads from the storage of that queue.

When none of these takes them for long, or the queue is gone, they go wherever the broker of the task sends its jobs.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from brokerage_app.brokers import analysis_job, choosing, deciding, generic, production_job
from brokerage_app.brokers.funnel import ANALYSIS, PRODUCTION, order_of
from brokerage_app.brokers.production_job import ProductionSettings
from brokerage_app.cases.analysis_settings import AnalysisSettings
from brokerage_app.filters.candidates import bound_queues
from brokerage_app.formulas.queue_room import MIN_QUEUE
from brokerage_app.policy.configuration import Configuration
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.snapshot import Grid
from brokerage_app.vocabulary.verdict import Choice, Verdict


def broker(
    needs: TaskNeeds, grid: Grid, configuration: Configuration, queue: str, *, floor: int = MIN_QUEUE
) -> Verdict:
    """Queues for the jobs that merge what jobs at `queue` have written, best first, and why others are not.

    There, and where its storage is read, the task's wishes for queues do not count, nor how many jobs wait: merging frees
    what waits. Elsewhere both do.
    """
    needs = replace(needs, merging=True)
    bound = bound_queues(replace(needs, preassigned_site=queue, listed_sites=()), grid)
    if not bound:
        free = replace(needs, preassigned_site="", listed_sites=())
        return choosing.decide(free, grid, configuration, floor=floor)
    there = replace(needs, included_sites=(), excluded_sites=(), avoided_sites=(), cloud="")
    name = choosing.broker_of(needs.vo, needs.label, configuration)
    verdict = _near(name, there, grid, configuration, bound)
    own = sorted(verdict.chosen, key=lambda choice: grid.sites[choice.site].queue != queue)
    skipped = sorted(
        (skip for skip in verdict.skipped if skip.site in bound),
        key=lambda skip: skip.site not in grid.sites or grid.sites[skip.site].queue != queue,
    )
    return deciding.with_blocked(Verdict(tuple(own), tuple(skipped)), there, grid, order_of(name))


def _near(name: str, needs: TaskNeeds, grid: Grid, configuration: Configuration, bound: Collection[str]) -> Verdict:
    """What the broker of the task says of these queues."""
    vo, label, share = needs.vo, needs.label, needs.share
    if name == PRODUCTION:
        settings = ProductionSettings.from_configuration(configuration, vo=vo, label=label, share=share)
        return production_job.of_named(
            replace(needs, preassigned_site="", listed_sites=tuple(sorted(bound))), grid, settings
        )
    chosen, skipped = list[Choice](), []
    analysis = AnalysisSettings.from_configuration(configuration, vo=vo, label=label, share=share)
    for site in sorted(bound):
        own = replace(needs, preassigned_site=site, listed_sites=())
        if name == ANALYSIS:
            said = analysis_job.broker(own, grid, analysis)
            chosen += said.chosen
            skipped += [skip for skip in said.skipped if skip.site == site]
        elif (skip := generic.refusal(own, grid, grid.sites[site])) is not None:
            skipped.append(skip)
        else:
            chosen.append(generic.weigh(grid.sites[site]))
    return Verdict(tuple(chosen), tuple(skipped))
