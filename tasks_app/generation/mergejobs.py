"""Merge jobs: what the jobs of a task have written at a site becomes few files, read and written there.

One transaction a task: its row is locked, then the jobs whose files are taken, then their files, then the datasets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from django.conf import settings
from django.db import transaction

from brokerage_app.brokers import merging
from brokerage_app.filters.candidates import PUT_ASIDE, UNCHANGED, waited_long
from brokerage_app.grid.configured import configuration
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Grid
from jedisite.database.sql import hot_cursor, numbers
from tasks_app.domain.states import TaskStatus
from tasks_app.generation.input_copies import CopyPlace, place_of_merging
from tasks_app.generation.job_building import library_at
from tasks_app.generation.job_rows import SiteJobs
from tasks_app.generation.merge_facts import MergeFacts, read_merge
from tasks_app.generation.picker import FIELDS, pick
from tasks_app.generation.rules.merge_plan import MASTER, plan_merges
from tasks_app.generation.rules.sources import Picked, Source
from tasks_app.generation.store import Bunch, store
from tasks_app.models import Dataset, Task
from tasks_app.refining.offered import MERGES
from tasks_app.splitting.chunk import InputFile
from tasks_app.splitting.merging import Heap, nothing_more
from tasks_app.submission import sandboxes

PRODUCERS_A_TURN = 20_000

MERGED_IN = frozenset(
    {
        TaskStatus.DEFINED,
        TaskStatus.READY,
        TaskStatus.SCOUTING,
        TaskStatus.RUNNING,
        TaskStatus.PENDING,
        TaskStatus.THROTTLED,
        TaskStatus.EXHAUSTED,
        TaskStatus.FINISHING,
    }
)
"""States of tasks whose files are merged. Throttling does not hold merging back: it frees what waits."""

_HEAPS = """
WITH work AS MATERIALIZED (
    SELECT t.jeditaskid, t.currentpriority, d.datasetid,
           t.status IN ('ready', 'scouting', 'running') AND EXISTS (
               SELECT 1 FROM jedi_datasets i WHERE i.jeditaskid = t.jeditaskid AND i.masterid IS NULL AND i.status = 'ready'
                  AND i.type IN ('input', 'pseudo_input') AND i.nfilestobeused > i.nfilesused) AS input_left
      FROM jedi_tasks t JOIN jedi_datasets d ON d.jeditaskid = t.jeditaskid AND d.type = 'trn_log'
       AND d.streamname = 'TRN_LOG0' AND d.nfilestobeused > d.nfilesused
     WHERE t.status = ANY(%(statuses)s) AND (%(task)s::bigint IS NULL OR t.jeditaskid = %(task)s))
SELECT w.jeditaskid, j.computingsite, count(*), coalesce(sum(j.noutputdatafiles), 0), coalesce(sum(j.outputfilebytes), 0),
       coalesce(sum(j.nevents), 0), max(j.statechangetime), EXISTS (
           SELECT 1 FROM jobs o WHERE o.jeditaskid = w.jeditaskid AND o.computingsite = j.computingsite
              AND o.jobstatus = ANY(%(open)s) AND o.processingtype IS DISTINCT FROM %(merges)s),
       w.input_left
  FROM work w JOIN file_retries r ON r.jeditaskid = w.jeditaskid AND r.datasetid = w.datasetid
  JOIN jedi_dataset_contents c ON c.jeditaskid = r.jeditaskid AND c.datasetid = r.datasetid AND c.fileid = r.fileid
  JOIN jobs j ON j.pandaid = c.boundaryid AND j.jobstatus = 'merging'
 GROUP BY w.jeditaskid, w.currentpriority, j.computingsite, w.input_left
 ORDER BY w.currentpriority DESC NULLS LAST, w.jeditaskid, j.computingsite
"""
_OPEN = sorted(
    ("pending", "defined", "waiting", "assigned", "activated", "throttled", "sent", "starting", "running", "holding")
)


def load_heaps(task_id: int | None = None) -> dict[int, list[Heap]]:
    """What waits to be merged, by task, the most urgent first; of one task if one is given. Nothing is locked."""
    with hot_cursor() as cursor:
        values = {"statuses": sorted(MERGED_IN), "task": task_id, "open": _OPEN, "merges": MERGES}
        cursor.execute(_HEAPS, values)
        found: dict[int, list[Heap]] = {}
        for task, site, producers, files, size, events, newest, jobs_open, input_left in cursor:
            heap = Heap(site, producers, int(files), int(size), int(events), newest, jobs_open, input_left)
            found.setdefault(task, []).append(heap)
    return found


@dataclass(frozen=True, slots=True)
class Made:
    """Merge jobs of one task, and why none could be made at some sites."""

    jobs: int
    skipped: tuple[Skip, ...] = ()


@transaction.atomic
def make_merge_jobs(task_id: int, grid: Grid, now: datetime) -> Made:
    """Make the merge jobs of a task that can be made now; none when somebody else has the task's row.

    Raises UnresolvedPlaceholder when the command line of merge jobs cannot be filled, BadBuildError when the library that it
    names cannot be built.
    """
    task = (
        Task.objects.select_for_update(skip_locked=True, of=("self",)).filter(pk=task_id, status__in=MERGED_IN).first()
    )
    if task is None:
        return Made(0)
    read = read_merge(task, now)
    no_sandbox = sandboxes.lacking(task_id, task.user, read.first.raw, read.first.template.text)
    if no_sandbox:
        return Made(
            0,
            tuple(
                Skip(heap.site, codes.INPUT_NOT_READABLE, no_sandbox) for heap in load_heaps(task_id).get(task_id, ())
            ),
        )
    heaps = {heap.site: heap for heap in load_heaps(task_id).get(task_id, ())}
    made, skipped, waits = 0, [], False
    with hot_cursor() as cursor:
        logs = pick(cursor, task_id, read.unmerged[MASTER], PRODUCERS_A_TURN)
        producers = _lock_producers(cursor, logs.files)
        memory = {log.boundary: log.memory for log in logs.files}
        for name, memory_mb in sorted({(site, memory[job]) for job, site in producers.items() if site in heaps}):
            merge = read.with_memory(memory_mb)
            asked = merge.asked(heaps[name], grid.sites.get(name), now)
            found = _place_of(merge, heaps[name], asked, grid, now)
            # The wait goes on when files are merged elsewhere: if that fails, nobody begins to wait for the queue again.
            waits = waits or isinstance(found, Skip) or waited_long(asked)
            if isinstance(found, Skip):
                skipped.append(found)
                continue
            rest_too = nothing_more(heaps[name], now)
            copies = place_of_merging(found, merge.facts.label or "") if found.queue != name else None
            own = {job for job, site in producers.items() if (site, memory[job]) == (name, memory_mb)}
            made += _merge_at(cursor, merge, found, logs, own, now, copies, rest_too=rest_too)
    if waits != (read.waits_since is not None):
        Dataset.objects.filter(pk=read.unmerged[MASTER].id).update(frozen_time=now if waits else None)
    return Made(made, tuple(skipped))


def _place_of(merge: MergeFacts, heap: Heap, asked: TaskNeeds, grid: Grid, now: datetime) -> SiteView | Skip:
    """Where a site's files are merged, or why nowhere for now."""
    verdict = merging.broker(asked, grid, configuration(), heap.site, floor=settings.JEDI_QUEUE_FLOOR)
    if verdict.chosen:
        return grid.sites[verdict.chosen[0].site]
    if heap.site not in grid.sites:
        said = verdict.sentence()
        return Skip(
            heap.site, codes.SITE_OFFLINE, "the queue no longer exists, and no other takes the merge jobs: {}", (said,)
        )
    if waited_long(asked):
        return Skip(heap.site, codes.SITE_OFFLINE, "no queue takes the merge jobs: {}", (verdict.sentence(),))
    skip = verdict.skipped[0]
    later = max(heap.newest + UNCHANGED, (merge.waits_since or now) + PUT_ASIDE)
    says = "{}; if that lasts, other queues are asked from {} UTC on"
    return Skip(heap.site, skip.code, says, (skip.detail, f"{later:%Y-%m-%d %H:%M}"))


def _lock_producers(cursor: psycopg.Cursor[Any], logs: Sequence[InputFile]) -> dict[int, str]:
    """Lock the jobs that made these files and still wait for their merge; their sites."""
    cursor.execute(
        """SELECT pandaid, computingsite FROM jobs WHERE pandaid = ANY(%s::bigint[]) AND jobstatus = 'merging'
            ORDER BY pandaid FOR UPDATE""",
        [numbers(sorted({log.boundary for log in logs if log.boundary is not None}))],
    )
    return dict(cursor.fetchall())


_OF_PRODUCERS = f"""
SELECT {FIELDS} FROM jedi_dataset_contents c
 WHERE c.jeditaskid = %(task)s AND c.datasetid = %(dataset)s AND c.status = 'ready'
   AND c.fileid = ANY(ARRAY(SELECT f.fileid FROM job_files f WHERE f.pandaid = ANY(%(jobs)s::bigint[])
                               AND f.datasetid = %(dataset)s AND f.type IN ('trn_output', 'trn_log')))
 ORDER BY c.fileid
"""  # noqa: S608 - constants of ours


def _merge_at(
    cursor: psycopg.Cursor[Any],
    merge: MergeFacts,
    site: SiteView,
    logs: Picked,
    producers: set[int],
    now: datetime,
    copies: CopyPlace | None,
    *,
    rest_too: bool,
) -> int:
    """Make the merge jobs of what these jobs have written, at one site. Returns how many."""
    masters = [log for log in logs.files if log.boundary in producers]
    others: dict[str, tuple[int, Sequence[InputFile]]] = {}
    for stream, row in merge.unmerged.items():
        if stream != MASTER:
            values = {"task": merge.first.task.id, "dataset": row.id, "jobs": numbers(sorted(producers))}
            cursor.execute(_OF_PRODUCERS, values)
            others[stream] = (row.id, [InputFile._make(found) for found in cursor.fetchall()])
    limits = merge.limits(site)
    planned = plan_merges(merge.unmerged[MASTER].id, masters, others, limits, rest_too=rest_too)
    again = {log.file_id for log in masters if log.attempt}
    logs_here = Picked(masters, {f: job for f, job in logs.old_jobs.items() if f in again}, logs.failures)
    for streams, groups in planned.items():
        sources = [Source(merge.unmerged[MASTER], logs_here), *(Source(merge.unmerged[s], Picked([])) for s in streams)]
        inputs_of = [MASTER, *streams]
        # Names of outputs have the fields of the input that the first jobs read.
        named = [(merge.input_name, stream) for stream in inputs_of]
        reads_library = "LIB" in merge.template.names
        jobs = SiteJobs(
            merge.facts,
            merge.needs_at(site),
            site,
            limits,
            groups,
            named,
            merge.made_of(inputs_of),
            merge.template,
            now,
            library_at(cursor, merge.first, site) if reads_library else None,
            copies=copies,
        )
        store(cursor, Bunch([jobs], sources, sandbox=merge.first.sandbox))
    made = [group for groups in planned.values() for group in groups]
    _note_merges(cursor, merge, [file.file_id for group in made for file in group.files], now)
    return len(made)


def _note_merges(cursor: psycopg.Cursor[Any], merge: MergeFacts, logs: Sequence[int], now: datetime) -> None:
    """Which merge job takes the files of which job."""
    if not logs:
        return
    cursor.execute(
        """INSERT INTO jedi_job_retry_history (jeditaskid, oldpandaid, newpandaid, ins_utc_tstamp, relationtype, originpandaid)
           SELECT DISTINCT %(task)s::bigint, boundaryid, pandaid, %(now)s::timestamptz, 'merge', boundaryid
             FROM jedi_dataset_contents
            WHERE jeditaskid = %(task)s AND datasetid = %(dataset)s AND fileid = ANY(%(logs)s::bigint[])""",
        {"task": merge.first.task.id, "dataset": merge.unmerged[MASTER].id, "logs": numbers(logs), "now": now},
    )
