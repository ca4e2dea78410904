"""Tasks that read much, and whether their input is only where queues are full or storage cannot be read.

Off unless LIMIT_IOINTENSITY and LIMIT_PRIORITY are set for a label. Held tasks are pending and say why; they go on when
one of the places with their input has room. Of tasks of whose input something is not known to be anywhere nothing is said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from typing import Final, NamedTuple

from brokerage_app.grid.configured import configuration
from brokerage_app.models import StorageEndpoint
from brokerage_app.vocabulary.snapshot import Grid
from jedisite import refusals
from jedisite.database.sql import hot_cursor
from tasks_app.configured import timeout_limits
from tasks_app.domain import refusal_codes
from tasks_app.domain.reasons import Reason
from tasks_app.domain.states import TASK_GENERATING, TaskStatus
from tasks_app.lifecycle import claims, task_moves
from tasks_app.models import Task
from tasks_app.upkeep.rules.withholding import Reader, Source, WithholdLimits, withhold

ME = "task_withholder"
HELD_FOR: Final = 1.5
"""Periods of the watchdog for which a task is held: longer than until the next look."""
READ = "read_lan"
_TASKS = """
SELECT t.jeditaskid, coalesce(t.prodsourcelabel, ''), coalesce(t.vo, ''), t.iointensity, coalesce(t.currentpriority, 0),
       array(SELECT r.endpoint FROM jedi_datasets d JOIN dataset_replicas r ON r.datasetname = d.datasetname
              WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL AND d.type = 'input')
  FROM jedi_tasks t
 WHERE t.iointensity > 0
   AND (t.status = ANY(%(makes)s) OR (t.status = 'pending' AND starts_with(coalesce(t.errordialog, ''), %(says)s)))
   AND NOT EXISTS (SELECT 1 FROM jedi_datasets d
                    WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL AND d.type = 'input'
                      AND NOT EXISTS (SELECT 1 FROM dataset_replicas r WHERE r.datasetname = d.datasetname))
 ORDER BY t.iointensity DESC, t.jeditaskid LIMIT %(limit)s
"""


class Reads(NamedTuple):
    """A task that reads, and the endpoints that have its input."""

    id: int
    label: str
    vo: str
    io_intensity: float
    priority: int
    endpoints: list[str]


def sentence_start() -> str:
    """How the sentence of a held task begins."""
    return refusals.get(refusal_codes.TASK_WITHHELD).title + ": "


def readers(limit: int) -> dict[int, Reads]:
    """Tasks at work that read much, and held ones, by id: those that read most first. None where no limit is configured."""
    if not any(row.key.startswith("LIMIT_IOINTENSITY") for row in configuration().rows):
        return {}
    with hot_cursor() as cursor:
        cursor.execute(_TASKS, {"makes": sorted(TASK_GENERATING), "says": sentence_start(), "limit": limit})
        return {row[0]: Reads(*row) for row in cursor.fetchall()}


def reasons_to_hold(tasks: Mapping[int, Reads], grid: Grid) -> dict[int, Reason]:
    config = configuration()
    readers_at: dict[str, list[Reader]] = defaultdict(list)
    for site in grid.queues().values():
        for endpoint in sorted({*site.inputs, *site.analysis_inputs}):
            readers_at[endpoint].append(Reader(site.name, site.running, site.queued + site.defined))
    down = set(StorageEndpoint.objects.filter(blacklisted_read=True).values_list("name", flat=True))
    down |= {name for name, endpoint in grid.endpoints.items() if not endpoint.is_up(READ)}
    found = {}
    for task in tasks.values():
        sources = [Source(name, name in down, tuple(readers_at.get(name, ()))) for name in sorted(set(task.endpoints))]
        limits = WithholdLimits.from_configuration(config, task.label, task.vo)
        reason = withhold(task.io_intensity, task.priority, sources, limits)
        if reason is not None:
            found[task.id] = reason
    return found


def hold_or_free(task_id: int, fence: int, reason: Reason | None) -> bool:
    task = Task.objects.only("status", "error_dialog").get(pk=task_id)
    is_held = task.status == TaskStatus.PENDING
    wait = timeout_limits.limit("task.withheld") * HELD_FOR
    if reason is not None and not is_held:
        task_moves.set_aside(task_id, fence, by=ME, reason=sentence_start() + reason.detail, wait=wait, frozen=False)
        return True
    # A held task is looked at again later, or returns at once to what it did.
    claims.release_task(task_id, fence, wait=wait if reason is not None else timedelta())
    return is_held and reason is None
