"""When workflows end: what their packages usually take, from the jobs of theirs that have finished, and what is left of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Final

from jedisite.database.sql import hot_cursor, numbers
from tasks_app.domain.states import JobStatus
from tasks_app.models import Workflow
from tasks_app.params.faults import ParamErrors
from tasks_app.workflows.package_facts import PackageFact
from tasks_app.workflows.rules.forecast import Forecast, Step, forecast
from tasks_app.workflows.rules.implied_graph import Graph
from tasks_app.workflows.submitting_workflows import definition_of

MOST_PACKAGES_OF_A_LIST: Final = 1_000
"""Packages of which a list works out ends: the definition of each workflow has to be read for it."""
# ruff: noqa: S608 - every piece is a constant of ours
_FINISHED: Final = f"""
SELECT jeditaskid, count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds), min(began) FROM (
    SELECT jeditaskid, coalesce(starttime, creationtime) AS began,
           extract(epoch FROM endtime - coalesce(starttime, creationtime)) AS seconds
      FROM jobs WHERE jeditaskid = ANY(%(tasks)s::bigint[]) AND jobstatus = '{JobStatus.FINISHED}'
    UNION ALL
    SELECT jeditaskid, coalesce(starttime, creationtime), extract(epoch FROM endtime - coalesce(starttime, creationtime))
      FROM jobs_archive WHERE jeditaskid = ANY(%(tasks)s::bigint[]) AND jobstatus = '{JobStatus.FINISHED}') ended
 GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class Times:
    """How long finished jobs of a task ran, in the median, and when the first began: waiting is no part of it."""

    usual_s: float | None
    since: datetime


@dataclass(frozen=True, slots=True)
class Ends:
    """The forecast of a workflow, and for each of its packages what one like it usually takes; None is not known."""

    forecast: Forecast = field(default_factory=Forecast)
    usual_s: Sequence[float | None] = ()


def times_of(tasks: Collection[int]) -> dict[int, Times]:
    """Of the tasks of which a job has finished. One query."""
    with hot_cursor() as cursor:
        cursor.execute(_FINISHED, {"tasks": numbers(sorted(tasks))})
        return {
            task: Times(None if usual is None else max(float(usual), 0.0), since)
            for task, _, usual, since in cursor.fetchall()
        }


def ends_of(graph: Graph, facts: Sequence[PackageFact], times: Mapping[int, Times], now: datetime) -> Ends:
    """What is left, when the packages of the graph do what the facts say."""
    of_tasks = [times[task] for task in {fact.task_id or 0 for fact in facts} if task in times]
    measured = [one.usual_s for one in of_tasks if one.usual_s is not None]
    typical = median(measured) if measured else None
    steps = []
    for node, fact in zip(graph.nodes, facts, strict=True):
        own = times.get(fact.task_id or 0)
        declared = sum(binary.run_time_s for binary in node.package.binaries) or None
        usual = own.usual_s if own is not None and own.usual_s is not None else declared or typical
        so_far = (now - fact.started).total_seconds() if fact.started is not None else 0.0
        steps.append(Step(fact.status, usual, so_far))
    since = min((one.since for one in of_tasks), default=now)
    found = forecast(graph, steps, running_for_s=(now - since).total_seconds())
    return Ends(found, [step.usual_s for step in steps])


def expected_ends(
    facts: Mapping[int, Sequence[PackageFact]], open_ones: Collection[int], now: datetime
) -> dict[int, float]:
    """Seconds until the end of those workflows of which it is known. Two queries, as far as `MOST_PACKAGES_OF_A_LIST` goes."""
    chosen, left = [], MOST_PACKAGES_OF_A_LIST
    for number in open_ones:
        if 0 < len(facts[number]) <= left:
            chosen.append(number)
            left -= len(facts[number])
    if not chosen:
        return {}
    times = times_of({fact.task_id for number in chosen for fact in facts[number] if fact.task_id is not None})
    found = {}
    for workflow in Workflow.objects.filter(pk__in=chosen).only("id", "definition"):
        try:
            _, graph = definition_of(workflow)
        except ParamErrors:  # a definition of before that is refused today
            continue
        seconds = ends_of(graph, facts[workflow.pk], times, now).forecast.seconds
        if seconds is not None:
            found[workflow.pk] = seconds
    return found
