"""Which broker decides on the jobs of a task; all brokers are called through this module."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from brokerage_app.brokers import analysis_job, deciding, generic, production_job, production_task
from brokerage_app.brokers.funnel import ANALYSIS, GENERIC, PRODUCTION, order_of
from brokerage_app.brokers.production_job import ProductionSettings
from brokerage_app.cases.analysis_settings import NO_FACTS, AnalysisFacts, AnalysisSettings
from brokerage_app.cases.gathering import Gathering, RemainingWork
from brokerage_app.cases.production_case import COMPONENT
from brokerage_app.formulas.queue_room import ALONE, MIN_QUEUE, QueueUsers, room_of
from brokerage_app.policy.configuration import Configuration
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Grid
from brokerage_app.vocabulary.verdict import Choice, Verdict

__all__ = ["ANALYSIS", "BROKERS", "GENERIC", "NAMES", "PRODUCTION", "Line", "broker_of", "decide", "takers"]

NAMES: Final = frozenset({PRODUCTION, ANALYSIS, GENERIC})


class Line(NamedTuple):
    """Which tasks a broker takes; None stands for any value."""

    vo: str | None
    label: str | None
    broker: str


# The first line that fits decides. JOB_BROKER of the configuration goes before all of them.
BROKERS: Final[tuple[Line, ...]] = (
    Line("atlas", "managed", PRODUCTION),
    Line("atlas", "test", PRODUCTION),
    Line("atlas", "user", ANALYSIS),
    Line("atlas", "panda", ANALYSIS),
    Line(None, None, GENERIC),
)


def broker_of(vo: str, label: str, configuration: Configuration) -> str:
    """The name of the broker for tasks of a VO and a label. A configured name that no broker has counts as not set."""
    configured = configuration.get("brokerage", "JOB_BROKER", label, vo=vo)
    if configured in NAMES:
        return str(configured)
    return next(line.broker for line in BROKERS if line.vo in (None, vo) and line.label in (None, label))


def decide(
    needs: TaskNeeds,
    grid: Grid,
    configuration: Configuration,
    *,
    floor: int = MIN_QUEUE,
    facts: AnalysisFacts = NO_FACTS,
    draw: Callable[[], float] | None = None,
    queue_users: QueueUsers = ALONE,
) -> Verdict:
    """The broker's verdict on all queues and, if it chooses none, what blocks the queues that the task may use.

    floor    number of queued jobs that any queue may have, for the generic broker; the others have it from the configuration
    facts    of the user and the task, for analysis; `draw` gives random numbers for queues of equal weight there
    queue_users    users who want places in queues, for the generic broker; the one of analysis counts them itself

    A queue that takes no further job is skipped, whatever its broker: chosen it would get none, and nothing would say why.
    """
    name = broker_of(needs.vo, needs.label, configuration)
    verdict = _asked(name, needs, grid, configuration, floor, facts, draw, queue_users)
    verdict = _with_room(verdict, grid, floor, queue_users)
    return deciding.with_blocked(verdict, needs, grid, order_of(name))


def _with_room(verdict: Verdict, grid: Grid, floor: int, queue_users: QueueUsers) -> Verdict:
    full = {
        one.site: _full(one) for one in verdict.chosen if not room_of(one, grid.sites[one.site], floor, queue_users)
    }
    if not full:
        return verdict
    chosen = tuple(one for one in verdict.chosen if one.site not in full)
    return replace(verdict, chosen=chosen, skipped=(*verdict.skipped, *full.values()))


def _full(choice: Choice) -> Skip:
    if choice.full is not None:
        return choice.full
    says = "{:job is|jobs are} queued, the limit is {}"
    return Skip(
        choice.site, codes.QUEUE_FULL, says, (choice.queued, choice.queued if choice.cap is None else choice.cap)
    )


def takers(
    needs: TaskNeeds,
    grid: Grid,
    configuration: Configuration,
    gathering: Gathering,
    *,
    draw: float,
    work: RemainingWork,
    floor: int = MIN_QUEUE,
    to_queues: bool = False,
) -> Verdict:
    """What the choice of a nucleus leads to: of a task that names or excludes queues (and `to_queues` of any) what the broker
    of its jobs says once a nucleus was drawn; else the verdict on the nuclei.
    """
    decision = production_task.decide(needs, grid, configuration, gathering, draw=draw, work=work)
    if decision.drawn is None or not (to_queues or needs.excluded_sites or deciding.names_queues(needs)):
        return decision.verdict
    return decide(replace(needs, nucleus=decision.drawn.nucleus), grid, configuration, floor=floor)


def _asked(
    name: str,
    needs: TaskNeeds,
    grid: Grid,
    configuration: Configuration,
    floor: int,
    facts: AnalysisFacts,
    draw: Callable[[], float] | None,
    queue_users: QueueUsers,
) -> Verdict:
    vo, label, share = needs.vo, needs.label, needs.share
    if name == PRODUCTION:
        settings = ProductionSettings.from_configuration(configuration, vo=vo, label=label, share=share)
        return production_job.broker(needs, grid, settings)
    if name == ANALYSIS:
        analysis = AnalysisSettings.from_configuration(configuration, vo=vo, label=label, share=share)
        return analysis_job.broker(needs, grid, analysis, facts, draw=draw)
    least = configuration.get(COMPONENT, "STORAGE_MIN_FREE_SIZE", vo=vo)
    return generic.broker(needs, grid, generic.rules(floor), min_free_gb=least, queue_users=queue_users)
