"""Merge jobs: what the jobs of a task have written at a site becomes few files, read and written there.

One transaction a task: its row is locked, then the jobs whose files are taken, then their files, then the datasets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import psycopg
from django.db import transaction

from brokerage_app.brokers import generic
from brokerage_app.cases.gathering import endpoint_of
from brokerage_app.grid.configured import configuration
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Grid
from jedisite.database.sql import hot_cursor, numbers
from tasks_app.domain.scopes import scope_of
from tasks_app.domain.states import TaskStatus
from tasks_app.generation.builder import Builder, OutputStream, TaskFacts, job_walltime_s
from tasks_app.generation.buildjobs import library_for
from tasks_app.generation.picker import FIELDS, pick
from tasks_app.generation.rules.sources import DatasetRow, Picked, Source
from tasks_app.generation.store import Part, store
from tasks_app.generation.turn_facts import TurnFacts, read_turn, row_of
from tasks_app.models import Dataset, OutputTemplate, Task
from tasks_app.models.dataset import UNMERGED_TYPES
from tasks_app.outcomes.unmerged import PROCESSING_TYPE
from tasks_app.params.naming import NameTemplate
from tasks_app.params.placeholders import JobParamsTemplate, compile_template
from tasks_app.refining.policy import Transforms
from tasks_app.splitting.chunk import Group, InputFile
from tasks_app.splitting.limits import MB, SiteNumbers, SplitLimits, limits_for, merge_name_fields
from tasks_app.splitting.merging import Heap, merge_chunk, merge_groups, merge_inputs, merged_streams, nothing_more
from tasks_app.submission import sandboxes

PRIORITY = 5000
MEMORY_MB = 2000
"""Memory of a merge job that nobody has asked or measured."""
MASTER = "TRN_LOG0"
PRODUCERS_A_TURN = 20_000
BEHIND_ALL = 2**62
"""Unmerged files come in any order: all that are ready stand in the list of files that are to be handed out."""

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
        values = {"statuses": sorted(MERGED_IN), "task": task_id, "open": _OPEN, "merges": PROCESSING_TYPE}
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


class MergeWork:
    """What is read once of a task whose outputs are merged."""

    def __init__(self, task: Task, now: datetime) -> None:
        work = read_turn(task, task.fence, now)
        self.task, self.rule, self.numbers = task, work.rule, work.numbers
        self.facts: TaskFacts = _facts(work)
        self.of_first_jobs = work
        self.needs: TaskNeeds = _needs(work)
        label, vo = task.prod_source_label, task.vo
        self.walltime_h: float | None = configuration().get("jobgen", "MERGE_JOB_MAX_WALLTIME", label, vo=vo)
        datasets = Dataset.objects.filter(task_id=task.id, type__in=UNMERGED_TYPES).order_by("list_position", "id")
        self.unmerged = {d.stream_name or "": _row_of(d) for d in datasets}
        rows = OutputTemplate.objects.filter(task_id=task.id).exclude(dataset__type__in=UNMERGED_TYPES)
        self.outputs = [
            _stream(row, task) for row in rows.select_related("dataset").order_by("dataset__list_position", "id")
        ]
        self.input_name = next((d.name for d in work.inputs if d.master_id is None), "")
        text = str((work.raw.get("mergeSpec") or {}).get("jobParameters") or "")
        streams = {*self.unmerged, *(o.stream for o in self.outputs)}
        self.template: JobParamsTemplate = compile_template(text, streams=streams, keep_order=True)

    def needs_at(self, site: SiteView) -> TaskNeeds:
        """Without a wish of the task the memory is what the site has, up to the usual."""
        if self.task.merge_ram_count or not site.max_memory_mb:
            return self.needs
        return replace(self.needs, memory_mb=min(self.needs.memory_mb, site.max_memory_mb))

    def limits(self, site: SiteView) -> SplitLimits:
        return limits_for(
            self.rule,
            self.numbers,
            SiteNumbers(
                cores=self.needs.cores_at(site),
                core_power=site.core_power,
                max_work_dir_bytes=site.work_dir_mb * MB if site.work_dir_mb else None,
                max_time_s=job_walltime_s(self.walltime_h, self.task.base_walltime, site),
            ),
            merging=True,
        )

    def made_of(self, inputs: Iterable[str]) -> list[OutputStream]:
        """The outputs of a merge job that has files of these streams; the log of its own is the last.

        With a merge log, the other logs are what the job writes of the logs that it reads.
        """
        wanted = merged_streams(dict.fromkeys(inputs, ()), [o.stream for o in self.outputs])
        found = [o for o in self.outputs if o.stream in wanted]
        if any(o.stream == "LOG_MERGE" for o in found):
            writes = self.template_writes
            found = [
                o if o.stream == "LOG_MERGE" or o.type != "log" else replace(o, type="output")
                for o in found
                if o.type != "log" or o.stream in writes or o.stream == "LOG_MERGE"
            ]
        return found

    @property
    def template_writes(self) -> set[str]:
        """The logs that the command line names as files to be written."""
        logs = {o.stream for o in self.outputs if o.type == "log"}
        return logs if ":LOG}" in self.template.text else logs & self.template.names


def _facts(work: TurnFacts) -> TaskFacts:
    spec = work.raw.get("mergeSpec") or {}
    facts = replace(
        work.facts,
        processing_type=PROCESSING_TYPE,
        priority=PRIORITY,
        cpu_limit_s_per_mb=0,
        transformation=spec.get("transPath") or Transforms().merge,
    )
    return replace(facts, name_fields=merge_name_fields(work.rule)) if facts.names_of_files else facts


def _needs(work: TurnFacts) -> TaskNeeds:
    """Merge jobs run where the files are, whatever the task says of sites."""
    task = work.task
    cores = task.merge_core_count or 1
    each_core = (task.merge_ram_unit or "").startswith("MBPerCore")
    memory_mb = (task.merge_ram_count or 0) * (cores if each_core else 1)
    return replace(
        work.needs,
        cores=cores,
        memory_mb=max(memory_mb, MEMORY_MB),
        memory_per_core=False,
        base_memory_mb=0,
        included_sites=(),
        excluded_sites=(),
        preassigned_site="",
        listed_sites=(),
        avoided_sites=(),
        failing_builds={},
        cloud="",
        priority=PRIORITY,
        disk_mb=0,
        walltime_s=0,
        cpu_hs06s=0.0,
    )


def _row_of(dataset: Dataset) -> DatasetRow:
    return replace(row_of(dataset), attributes="", cursor=BEHIND_ALL)


def _stream(row: OutputTemplate, task: Task) -> OutputStream:
    return OutputStream(
        row.id,
        row.dataset_id,
        row.dataset.name,
        row.dataset.type,
        row.stream_name or "",
        scope_of(row.dataset.name, task.user),
        endpoint_of(row.dataset.destination, row.dataset.storage_token) or "LOCAL_SE",
        NameTemplate(row.file_name_template, task_id=task.id, jobset_id=task.req_id),
    )


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
    work = MergeWork(task, now)
    no_sandbox = sandboxes.lacking(task_id, task.user, work.of_first_jobs.raw, work.of_first_jobs.template.text)
    heaps = {heap.site: heap for heap in load_heaps(task_id).get(task_id, ())}
    made, skipped = 0, []
    with hot_cursor() as cursor:
        logs = pick(cursor, task_id, work.unmerged[MASTER], PRODUCERS_A_TURN)
        by_site = _lock_producers(cursor, logs.files)
        for name in sorted(by_site):
            site = grid.sites.get(name)
            refusal = (
                Skip(name, codes.INPUT_NOT_READABLE, no_sandbox) if no_sandbox else _refusal(work, site, name, grid)
            )
            if site is None or refusal:
                skipped.append(refusal)
                continue
            rest_too = name in heaps and nothing_more(heaps[name], now)
            made += _merge_at(cursor, work, site, logs, by_site[name], now, rest_too=rest_too)
    return Made(made, tuple(skip for skip in skipped if skip))


def _refusal(work: MergeWork, site: SiteView | None, name: str, grid: Grid) -> Skip | None:
    if site is None:
        return Skip(name, codes.SITE_OFFLINE, "the queue does not exist any more")
    return generic.refusal(work.needs_at(site), grid, site)


def _lock_producers(cursor: psycopg.Cursor[Any], logs: Sequence[InputFile]) -> dict[str, set[int]]:
    """Lock the jobs that made these files and still wait for their merge; their ids by site."""
    cursor.execute(
        """SELECT pandaid, computingsite FROM jobs WHERE pandaid = ANY(%s::bigint[]) AND jobstatus = 'merging'
            ORDER BY pandaid FOR UPDATE""",
        [numbers(sorted({log.boundary for log in logs if log.boundary is not None}))],
    )
    found: dict[str, set[int]] = {}
    for job_id, site in cursor:
        found.setdefault(site, set()).add(job_id)
    return found


_OF_PRODUCERS = f"""
SELECT {FIELDS} FROM jedi_dataset_contents c
 WHERE c.jeditaskid = %(task)s AND c.datasetid = %(dataset)s AND c.status = 'ready'
   AND c.fileid = ANY(ARRAY(SELECT f.fileid FROM job_files f WHERE f.pandaid = ANY(%(jobs)s::bigint[])
                               AND f.datasetid = %(dataset)s AND f.type IN ('trn_output', 'trn_log')))
 ORDER BY c.fileid
"""  # noqa: S608 - constants of ours


def _merge_at(
    cursor: psycopg.Cursor[Any],
    work: MergeWork,
    site: SiteView,
    logs: Picked,
    producers: set[int],
    now: datetime,
    *,
    rest_too: bool,
) -> int:
    """Make the merge jobs of one site. Returns how many."""
    masters = [log for log in logs.files if log.boundary in producers]
    others: dict[str, tuple[int, Sequence[InputFile]]] = {}
    for stream, row in work.unmerged.items():
        if stream != MASTER:
            values = {"task": work.task.id, "dataset": row.id, "jobs": numbers(sorted(producers))}
            cursor.execute(_OF_PRODUCERS, values)
            others[stream] = (row.id, [InputFile._make(found) for found in cursor.fetchall()])
    arranged = merge_chunk(work.unmerged[MASTER].id, masters, others)
    limits = work.limits(site)
    groups = merge_groups(arranged.chunk, limits, rest_too=rest_too)
    alike: dict[tuple[str, ...], list[Group]] = {}
    for group in groups:
        inputs = merge_inputs(group, arranged.streams, MASTER)
        ordered = [inputs.pop(MASTER), *inputs.values()]
        alike.setdefault(tuple(inputs), []).append(group._replace(files=ordered[0], secondaries=tuple(ordered[1:])))
    again = {log.file_id for log in masters if log.attempt}
    logs_here = Picked(masters, {f: job for f, job in logs.old_jobs.items() if f in again}, logs.failures)
    for streams, some in alike.items():
        sources = [Source(work.unmerged[MASTER], logs_here), *(Source(work.unmerged[s], Picked([])) for s in streams)]
        inputs_of = [MASTER, *streams]
        # Names of outputs have the fields of the input that the first jobs read.
        named = [(work.input_name, stream) for stream in inputs_of]
        builder = Builder(
            work.facts, work.needs_at(site), site, limits, work.made_of(inputs_of), work.template, named, now
        )
        first = work.of_first_jobs
        if first.build is not None and "LIB" in work.template.names:
            builder.use_library(library_for(cursor, first.facts, first.build, site, first.scope, now))
        store(cursor, [Part(builder, some)], sources, None)
    _note_merges(cursor, work, [file.file_id for group in groups for file in group.files], now)
    return len(groups)


def _note_merges(cursor: psycopg.Cursor[Any], work: MergeWork, logs: Sequence[int], now: datetime) -> None:
    """Which merge job takes the files of which job."""
    if not logs:
        return
    cursor.execute(
        """INSERT INTO jedi_job_retry_history (jeditaskid, oldpandaid, newpandaid, ins_utc_tstamp, relationtype, originpandaid)
           SELECT DISTINCT %(task)s::bigint, boundaryid, pandaid, %(now)s::timestamptz, 'merge', boundaryid
             FROM jedi_dataset_contents
            WHERE jeditaskid = %(task)s AND datasetid = %(dataset)s AND fileid = ANY(%(logs)s::bigint[])""",
        {"task": work.task.id, "dataset": work.unmerged[MASTER].id, "logs": numbers(logs), "now": now},
    )
