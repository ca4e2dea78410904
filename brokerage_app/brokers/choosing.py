"""Which broker decides on the jobs of a task, and the one door to all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from brokerage_app import deciding
from brokerage_app.brokers import analysis_job, generic, production_job
from brokerage_app.brokers.analysis_settings import NO_FACTS, AnalysisFacts, AnalysisSettings
from brokerage_app.brokers.production_case import COMPONENT
from brokerage_app.brokers.production_job import ProductionSettings
from brokerage_app.configuration import Configuration
from brokerage_app.filters.capacity import ALONE, MIN_QUEUE, Crowd
from brokerage_app.funnel import ANALYSIS, GENERIC, PRODUCTION, order_of
from brokerage_app.needs import TaskNeeds
from brokerage_app.rules import Filter, Rule
from brokerage_app.snapshot import Grid
from brokerage_app.verdict import Verdict

__all__ = ["ANALYSIS", "BROKERS", "GENERIC", "NAMES", "PRODUCTION", "Line", "broker_of", "decide"]

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
    first: Sequence[Filter] = (),
    floor: int = MIN_QUEUE,
    facts: AnalysisFacts = NO_FACTS,
    draw: Callable[[], float] | None = None,
    crowd: Crowd = ALONE,
) -> Verdict:
    """What the broker of a task says of all queues, and, when it chooses none, what of those that the task may use.

    first    rules of the caller that are asked before those of the broker
    floor    queued jobs that a queue may always have, for the generic broker; the others have it from the configuration
    facts    of the user and the task, for analysis; `draw` gives random numbers for queues of equal weight there
    crowd    users who want places in queues, for the generic broker; the one of analysis counts them itself
    """
    name = broker_of(needs.vo, needs.label, configuration)
    verdict = _asked(name, needs, grid, configuration, first, floor, facts, draw, crowd)
    return deciding.told(verdict, needs, grid, order_of(name))


def _asked(
    name: str,
    needs: TaskNeeds,
    grid: Grid,
    configuration: Configuration,
    first: Sequence[Filter],
    floor: int,
    facts: AnalysisFacts,
    draw: Callable[[], float] | None,
    crowd: Crowd,
) -> Verdict:
    vo, label, share = needs.vo, needs.label, needs.share
    if name == PRODUCTION:
        settings = ProductionSettings.from_configuration(configuration, vo=vo, label=label, share=share)
        return production_job.broker(needs, grid, settings, first=[Rule(one) for one in first])
    if name == ANALYSIS:
        analysis = AnalysisSettings.from_configuration(configuration, vo=vo, label=label, share=share)
        return analysis_job.broker(needs, grid, analysis, facts, first=[Rule(one) for one in first], draw=draw)
    least = configuration.get(COMPONENT, "STORAGE_MIN_FREE_SIZE", vo=vo)
    return generic.broker(needs, grid, (*map(Rule, first), *generic.rules(floor)), min_free_gb=least, crowd=crowd)
