"""Tasks that the watch dog of jumbo jobs looks at, and what it does with them; each task's history says why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from django.db import transaction

from events_app.jumbo.jumbo_places import jumbo_queues
from events_app.lifecycle.range_moves import is_in
from events_app.rules.event_states import PROCESSED
from events_app.rules.jumbo_tasks import JumboEvent, after
from events_app.rules.jumbo_watch import JumboAct, JumboLimits, JumboStep, JumboTask, is_candidate
from jedisite.database.sql import hot_cursor, texts
from tasks_app.counts import statistics
from tasks_app.domain.jumbo_use import read_use
from tasks_app.domain.states import TaskStatus
from tasks_app.generation.grid_view import GridView
from tasks_app.lifecycle import task_moves
from tasks_app.models import Task
from tasks_app.params.splitrule import SplitRule
from tasks_app.upkeep.nearly_complete import hurry_jobs

ME: Final = "jumbo_watch"
WATCHED: Final = frozenset({TaskStatus.READY, TaskStatus.RUNNING, TaskStatus.PENDING, TaskStatus.THROTTLED})
"""Tasks in other states, such as scouting ones, are left as they are."""
# ruff: noqa: S608 - every piece is a constant of ours
# What is processed of files that have ended is in NEVENTSUSED.
_WATCHED: Final = f"""
SELECT t.jeditaskid, t.usejumbo, m.events, greatest(0, m.events - m.used - p.processed), coalesce(t.currentpriority, 0),
       m.files_left, coalesce(t.site, '') <> '', coalesce(t.splitrule, '')
  FROM jedi_tasks t
 CROSS JOIN LATERAL (
       SELECT coalesce(sum(d.nevents), 0)::bigint AS events, coalesce(sum(d.neventsused), 0)::bigint AS used,
              coalesce(sum(d.nfiles - d.nfilesfinished - d.nfilesfailed), 0)::bigint AS files_left
         FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL AND d.type IN ('input', 'pseudo_input')) m
 CROSS JOIN LATERAL (
       SELECT coalesce(sum(e.def_max_eventid - e.def_min_eventid + 1), 0)::bigint AS processed FROM jedi_events e
        WHERE e.jeditaskid = t.jeditaskid AND {is_in(PROCESSED, "e.")} AND EXISTS (
              SELECT FROM jedi_dataset_contents c WHERE c.jeditaskid = t.jeditaskid AND c.datasetid = e.datasetid
                 AND c.fileid = e.fileid AND c.status <> 'finished')) p
 WHERE t.eventservice = 1 AND t.status = ANY(%(statuses)s::text[])
   AND (t.usejumbo IS NOT NULL
        OR (t.currentpriority < %(priority)s AND coalesce(t.site, '') = '' AND m.events - m.used > %(enable)s))
"""


def watched_tasks(limits: JumboLimits, now: datetime) -> list[JumboTask]:
    """The tasks that have jumbo jobs or had them, and those that may get them."""
    with hot_cursor() as cursor:
        values = {
            "priority": limits.max_curr_prio,
            "enable": limits.min_events_enable,
            "statuses": texts(sorted(WATCHED)),
        }
        cursor.execute(_WATCHED, values)
        rows = cursor.fetchall()
    found = [_task(row) for row in rows]
    return _with_queues(found, limits, now)


def _task(row: Sequence[Any]) -> JumboTask:
    task_id, use, events, left, priority, files_left, is_bound, rule = row
    return JumboTask(
        task_id, read_use(use), events, left, priority, files_left, is_bound, by_position(SplitRule.parse(rule))
    )


def by_position(rule: SplitRule) -> bool:
    """Whether jumbo jobs can process the ranges: they count inside of each file, or each job has one file only."""
    events, in_file = rule.get_int("NE"), rule.get_int("EI")
    return (
        rule.flag("IF")
        or rule.files_per_job() == 1
        or (bool(events) and bool(in_file) and (events or 0) < (in_file or 0))
    )


def _with_queues(tasks: list[JumboTask], limits: JumboLimits, now: datetime) -> list[JumboTask]:
    """The same with whether a queue for jumbo jobs takes them, which is asked for those that may get some."""
    asked = [task.task_id for task in tasks if is_candidate(task, limits)]
    if not asked:
        return tasks
    view = GridView(statistics.current_grid(now))
    rows = Task.objects.filter(pk__in=asked).select_related("work_queue")
    able = {row.id for row in rows if jumbo_queues(row, view, now)}
    return [replace(task, has_jumbo_queue=task.task_id in able) for task in tasks]


@transaction.atomic
def take_steps(task_id: int, fence: int, steps: Iterable[JumboStep], limits: JumboLimits) -> None:
    """Do with a claimed task what was decided, note it in its history, and free it. Raises LostClaimError."""
    task, columns, said = Task.objects.get(pk=task_id), dict[str, Any](), []
    for step in steps:
        said.append(step.sentence)
        if step.act is JumboAct.ENABLE:
            rule = SplitRule.parse(task.split_rule).having("NJ", limits.per_task).having("MJ", limits.per_site)
            columns |= {"use_jumbo": after(None, JumboEvent.ENABLE), "split_rule": str(rule)}
        elif step.act is JumboAct.DISABLE:
            columns["use_jumbo"] = after(read_use(task.use_jumbo), JumboEvent.DISABLE)
        if step.priority is not None:
            columns["current_priority"] = step.priority
    task_moves.note_task(task_id, fence, by=ME, reason="; ".join(said), **columns)
    if "current_priority" in columns:
        hurry_jobs(task_id, columns["current_priority"])
