"""Tasks that are sent to queues of production which have been empty for a while, and freed again.

The site of such a task is set to the queue, so that all its jobs go there. It is freed when the queue is busy again or
not online any more, or when all its files are in jobs. Tasks whose sites somebody has named are never touched.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db import transaction

from brokerage_app.brokers import generic
from brokerage_app.grid.configured import configuration
from brokerage_app.policy.configuration import Configuration
from brokerage_app.policy.filling import (
    FillLimits,
    Occupancy,
    WaitingTask,
    choose,
    is_busy,
    is_empty,
    jobs_lacking,
    may_be_filled,
)
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import ONLINE, SiteView
from brokerage_app.vocabulary.snapshot import Grid
from jedisite.agents.passes import owner
from jedisite.database.sql import hot_cursor, numbers
from jedisite.vocabulary.words import plural
from tasks_app.configured import timeout_limits
from tasks_app.counts import statistics
from tasks_app.domain.source_labels import ANALYSIS_LABELS
from tasks_app.domain.states import TASK_FINAL, TASK_GENERATING, TaskStatus
from tasks_app.generation.turn_facts import needs_of
from tasks_app.lifecycle import claims, task_moves
from tasks_app.models import EmptyQueue, Preassignment, Task, TaskParams
from tasks_app.params.splitrule import SplitRule

# ruff: noqa: S608 - every piece is a constant of this module
ME = "queue_filler"
TASKS: Final = 200
"""Tasks that are looked at in one pass, the most urgent first."""
_WAITING: Final = frozenset({*TASK_GENERATING, TaskStatus.PENDING})
_LABELS = ", ".join(f"'{label}'" for label in sorted(ANALYSIS_LABELS))
_COUNTS = """
SELECT computingsite, count(*) FILTER (WHERE jobstatus = 'running'), count(*) FILTER (WHERE jobstatus <> 'running')
  FROM jobs WHERE jobstatus IN ('activated', 'sent', 'starting', 'running') AND computingsite IS NOT NULL GROUP BY 1
"""
_FILES = """
CROSS JOIN LATERAL (
    SELECT coalesce(sum(d.nfilestobeused - d.nfilesused), 0)::bigint AS ready,
           coalesce(sum(d.nfiles - d.nfilesfinished - d.nfilesfailed), 0)::bigint AS remaining
      FROM jedi_datasets d WHERE d.jeditaskid = t.jeditaskid AND d.masterid IS NULL AND d.type IN ('input', 'pseudo_input')
       AND d.status NOT IN ('removed', 'broken', 'failed')) f
"""
_TASKS = f"""
SELECT t.jeditaskid, f.ready, f.remaining FROM jedi_tasks t {_FILES}
 WHERE t.status = ANY(%s) AND coalesce(t.site, '') = '' AND f.ready > 0
   AND coalesce(t.prodsourcelabel, '') NOT IN ({_LABELS})
   AND NOT EXISTS (SELECT 1 FROM preassignments p WHERE p.jeditaskid = t.jeditaskid)
 ORDER BY t.currentpriority DESC NULLS LAST, t.jeditaskid LIMIT %s
"""
_LEFT = f"SELECT t.jeditaskid, f.ready FROM jedi_tasks t JOIN preassignments p USING (jeditaskid) {_FILES}"


@dataclass(frozen=True, slots=True)
class Queues:
    """The queues of one pass: what they are, how full, and since when they are empty."""

    grid: Grid
    sites: Mapping[str, SiteView]
    occupied: Mapping[str, Occupancy]
    empty_since: Mapping[str, datetime]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A task that may be sent to a queue, what its jobs want, and the limits of its label."""

    waiting: WaitingTask
    needs: TaskNeeds
    limits: FillLimits

    def fits(self, site: SiteView, grid: Grid) -> bool:
        return generic.refusal(self.needs, grid, site) is None


def read_queues(now: datetime) -> Queues:
    grid = statistics.current_grid(now)
    sites = grid.queues()
    with hot_cursor() as cursor:
        cursor.execute(_COUNTS)
        counts = {site: (running, queued) for site, running, queued in cursor.fetchall()}
    occupied = {
        name: Occupancy(
            name, *counts.get(name, (0, 0)), sum(row.slots for row in site.slots) if site.slots else None, site.cores
        )
        for name, site in sites.items()
    }
    empty = sorted(name for name, seen in occupied.items() if sites[name].status == ONLINE and is_empty(seen))
    with transaction.atomic():
        EmptyQueue.objects.exclude(queue__in=empty).delete()
        EmptyQueue.objects.bulk_create([EmptyQueue(queue=name, since=now) for name in empty], ignore_conflicts=True)
    return Queues(grid, sites, occupied, dict(EmptyQueue.objects.values_list("queue", "since")))


def free_tasks(queues: Queues) -> int:
    """Let go of the tasks whose time at a queue is over. Returns how many."""
    rows = list(Preassignment.objects.order_by("task_id"))
    if not rows:
        return 0
    with hot_cursor() as cursor:
        cursor.execute(_LEFT)
        left = dict(cursor.fetchall())
    ended = Task.objects.filter(pk__in=[row.task_id for row in rows], status__in=TASK_FINAL)
    Preassignment.objects.filter(task_id__in=list(ended.values_list("id", flat=True))).delete()
    why = {row.task_id: reason for row in rows if (reason := _why_free(row, queues, left.get(row.task_id, 0)))}
    return _each(why, set(TaskStatus) - TASK_FINAL, lambda task_id, fence: _let_go(task_id, fence, why[task_id]))


def _why_free(row: Preassignment, queues: Queues, files_left: int) -> str:
    site = queues.sites.get(row.queue)
    if site is None or site.status != ONLINE:
        return f"the queue {row.queue} is {site.status if site else 'gone'}"
    seen = queues.occupied[row.queue]
    if is_busy(seen):
        running = plural(seen.running, "that runs", "that run")
        return f"the queue {row.queue} has {plural(seen.queued, 'job')} waiting for {running}"
    return "" if files_left > 0 else f"all its files are in jobs, so that nothing is left for the queue {row.queue}"


@transaction.atomic
def _let_go(task_id: int, fence: int, why: str) -> bool:
    row = Preassignment.objects.select_for_update().filter(pk=task_id).first()
    if row is None:
        claims.release_task(task_id, fence)
        return False
    # Somebody may have named another site since.
    is_ours = Task.objects.filter(pk=task_id, site=row.queue).exists()
    columns = {"site": None} if is_ours else {}
    task_moves.note_task(task_id, fence, by=ME, reason=f"its jobs may go anywhere again: {why}", **columns)
    row.delete()
    return True


def fill_queues(queues: Queues, now: datetime) -> int:
    """Send tasks to the queues that lack jobs, those first that lack most. Returns how many."""
    wait = timeout_limits.limit("task.empty_queue")
    due = [
        name
        for name, seen in sorted(queues.occupied.items(), key=lambda pair: (-jobs_lacking(pair[1]), pair[0]))
        if queues.sites[name].status == ONLINE and may_be_filled(seen, queues.empty_since.get(name), now, wait)
    ]
    candidates = _candidates(configuration()) if due else []
    if not candidates:
        return 0
    already: dict[str, Counter[str]] = defaultdict(Counter)
    for queue, resource_type in Preassignment.objects.values_list("queue", "resource_type"):
        already[queue][resource_type] += 1
    chosen: dict[int, tuple[str, WaitingTask]] = {}
    for name in due:
        fitting = (
            (one.waiting, one.limits)
            for one in candidates
            if one.waiting.task_id not in chosen and one.fits(queues.sites[name], queues.grid)
        )
        chosen |= {task.task_id: (name, task) for task in choose(fitting, already[name])}

    def send(task_id: int, fence: int) -> bool:
        queue, task = chosen[task_id]
        return _send(task, fence, queues.occupied[queue], now)

    return _each(chosen, _WAITING, send)


def _candidates(config: Configuration) -> list[Candidate]:
    with hot_cursor() as cursor:
        cursor.execute(_TASKS, [sorted(_WAITING), TASKS])
        files = {task_id: (ready, remaining) for task_id, ready, remaining in cursor.fetchall()}
    tasks = Task.objects.in_bulk(files)
    raw = dict(TaskParams.objects.filter(pk__in=files).values_list("task_id", "params"))
    return [
        Candidate(
            WaitingTask(
                task_id,
                tasks[task_id].resource_type or "",
                ready,
                remaining,
                full_chain=SplitRule.parse(tasks[task_id].split_rule).flag("FU"),
            ),
            needs_of(tasks[task_id], raw.get(task_id) or {}),
            FillLimits.from_configuration(config, tasks[task_id].prod_source_label or "", tasks[task_id].vo or ""),
        )
        for task_id, (ready, remaining) in files.items()
        if task_id in tasks
    ]


@transaction.atomic
def _send(waiting: WaitingTask, fence: int, seen: Occupancy, now: datetime) -> bool:
    if Task.objects.filter(pk=waiting.task_id).exclude(site=None).exclude(site="").exists():
        claims.release_task(waiting.task_id, fence)
        return False
    running = plural(seen.running, "that runs", "that run")
    reason = f"its jobs go to {seen.queue}, which has only {seen.queued} waiting for {running}"
    # A pending task is tried again at once.
    task_moves.note_task(waiting.task_id, fence, by=ME, reason=reason, site=seen.queue, next_check=now)
    Preassignment.objects.create(
        task_id=waiting.task_id, queue=seen.queue, resource_type=waiting.resource_type, since=now
    )
    return True


def _each(tasks: Iterable[int], statuses: Collection[str], work: Callable[[int, int], bool]) -> int:
    """Claim these tasks, as far as nobody has them, and do the work on each."""
    ids = sorted(tasks)
    if not ids:
        return 0
    claimed = claims.claim_tasks(
        owner(),
        sorted(statuses),
        len(ids),
        condition="t.jeditaskid = ANY(%(ids)s::bigint[])",
        values={"ids": numbers(ids)},
        even_waiting=True,
        agent=ME,
    )
    return claims.for_each(claimed, work, by=ME)
