"""Merge jobs: what the jobs of a task have written at a site becomes few files, read and written there.

One transaction a task: its row is locked, then the jobs whose files are taken, then their files, then the datasets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import psycopg
from django.db import transaction

from brokerage_app.brokers import generic
from brokerage_app.grid.configured import configuration
from brokerage_app.vocabulary import codes
from brokerage_app.vocabulary.needs import TaskNeeds
from brokerage_app.vocabulary.site_view import SiteView
from brokerage_app.vocabulary.skip import Skip
from brokerage_app.vocabulary.snapshot import Grid
from jedisite.database.sql import hot_cursor, numbers
from tasks_app.domain.states import TaskStatus
from tasks_app.generation.job_building import library_at
from tasks_app.generation.job_rows import SiteJobs
from tasks_app.generation.picker import FIELDS, pick
from tasks_app.generation.rules.common_facts import OutputStream, TaskFacts, job_walltime_s
from tasks_app.generation.rules.merge_plan import MASTER, plan_merges
from tasks_app.generation.rules.sources import DatasetRow, Picked, Source
from tasks_app.generation.store import Bunch, store
from tasks_app.generation.turn_facts import TurnFacts, masters_of, read_turn, row_of, stream_of
from tasks_app.models import Dataset, OutputTemplate, Task
from tasks_app.models.dataset import UNMERGED_TYPES
from tasks_app.outcomes.unmerged import PROCESSING_TYPE
from tasks_app.params.placeholders import JobParamsTemplate, compile_template
from tasks_app.refining.policy import Transforms
from tasks_app.splitting.chunk import InputFile
from tasks_app.splitting.limits import MB, SiteNumbers, SplitLimits, TaskNumbers, limits_for, merge_name_fields
from tasks_app.splitting.merging import Heap, merged_streams, nothing_more
from tasks_app.submission import sandboxes

PRIORITY = 5000
MEMORY_MB = 2000
"""Memory of a merge job that nobody has asked or measured."""
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


@dataclass(frozen=True, slots=True)
class MergeFacts:
    """What is read once of a task whose outputs are merged.

    first        what its other jobs have in common and want
    facts, needs the same of its merge jobs; `walltime_h`: how long they may run, None without a limit of their own
    unmerged     the datasets that they read, by stream
    outputs      what they may write
    input_name   the dataset that the first jobs read: names of outputs have its fields
    template     the command line of merge jobs
    """

    first: TurnFacts
    facts: TaskFacts
    needs: TaskNeeds
    walltime_h: float | None
    unmerged: Mapping[str, DatasetRow]
    outputs: Sequence[OutputStream]
    input_name: str
    template: JobParamsTemplate

    def needs_at(self, site: SiteView) -> TaskNeeds:
        """Without a wish of the task the memory is what the site has, up to the usual."""
        if self.first.task.merge_ram_count or not site.max_memory_mb:
            return self.needs
        return replace(self.needs, memory_mb=min(self.needs.memory_mb, site.max_memory_mb))

    def limits(self, site: SiteView) -> SplitLimits:
        return limits_for(
            self.first.rule,
            merge_numbers(self.first.numbers, self.first.task.merge_walltime, self.first.task.merge_walltime_unit),
            SiteNumbers(
                cores=self.needs.cores_at(site),
                core_power=site.core_power,
                max_work_dir_bytes=site.work_dir_mb * MB if site.work_dir_mb else None,
                max_time_s=job_walltime_s(self.walltime_h, self.first.task.base_walltime, site),
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


def read_merge(task: Task, now: datetime) -> MergeFacts:
    """Read what the merge jobs of a task have to know. Raises BadTemplate, BadBuildError."""
    first = read_turn(task, task.fence, now)
    datasets = Dataset.objects.filter(task_id=task.id, type__in=UNMERGED_TYPES).order_by("list_position", "id")
    unmerged = {d.stream_name or "": _row_of(d) for d in datasets}
    rows = OutputTemplate.objects.filter(task_id=task.id).exclude(dataset__type__in=UNMERGED_TYPES)
    rows = rows.select_related("dataset").order_by("dataset__list_position", "id")
    outputs = [stream_of(row, task) for row in rows]
    text = str((first.raw.get("mergeSpec") or {}).get("jobParameters") or "")
    streams = {*unmerged, *(o.stream for o in outputs)}
    return MergeFacts(
        first=first,
        facts=_facts(first),
        needs=_needs(first),
        walltime_h=configuration().get("jobgen", "MERGE_JOB_MAX_WALLTIME", task.prod_source_label, vo=task.vo),
        unmerged=unmerged,
        outputs=outputs,
        input_name=next((d.name for d in masters_of(first.inputs)), ""),
        template=compile_template(text, streams=streams, keep_order=True),
    )


def _facts(first: TurnFacts) -> TaskFacts:
    spec = first.raw.get("mergeSpec") or {}
    facts = replace(
        first.facts,
        processing_type=PROCESSING_TYPE,
        priority=PRIORITY,
        cpu_limit_s_per_mb=0,
        transformation=spec.get("transPath") or Transforms().merge,
    )
    return replace(facts, name_fields=merge_name_fields(first.rule)) if facts.names_of_files else facts


def _needs(first: TurnFacts) -> TaskNeeds:
    """Merge jobs run where the files are, whatever the task says of sites."""
    task = first.task
    cores = task.merge_core_count or 1
    each_core = (task.merge_ram_unit or "").startswith("MBPerCore")
    memory_mb = (task.merge_ram_count or 0) * (cores if each_core else 1)
    return replace(
        first.needs,
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


def merge_numbers(numbers: TaskNumbers, walltime: int | None, unit: str | None) -> TaskNumbers:
    """The numbers by which merge jobs are cut: their own time for each MB that they read, once it is measured."""
    return replace(numbers, walltime_s_per_mb=walltime if unit else None)


def _row_of(dataset: Dataset) -> DatasetRow:
    return replace(row_of(dataset), attributes="", cursor=BEHIND_ALL)


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
    merge = read_merge(task, now)
    no_sandbox = sandboxes.lacking(task_id, task.user, merge.first.raw, merge.first.template.text)
    heaps = {heap.site: heap for heap in load_heaps(task_id).get(task_id, ())}
    made, skipped = 0, []
    with hot_cursor() as cursor:
        logs = pick(cursor, task_id, merge.unmerged[MASTER], PRODUCERS_A_TURN)
        by_site = _lock_producers(cursor, logs.files)
        for name in sorted(by_site):
            site = grid.sites.get(name)
            refusal = (
                Skip(name, codes.INPUT_NOT_READABLE, no_sandbox) if no_sandbox else _refusal(merge, site, name, grid)
            )
            if site is None or refusal:
                skipped.append(refusal)
                continue
            rest_too = name in heaps and nothing_more(heaps[name], now)
            made += _merge_at(cursor, merge, site, logs, by_site[name], now, rest_too=rest_too)
    return Made(made, tuple(skip for skip in skipped if skip))


def _refusal(merge: MergeFacts, site: SiteView | None, name: str, grid: Grid) -> Skip | None:
    if site is None:
        return Skip(name, codes.SITE_OFFLINE, "the queue no longer exists")
    return generic.refusal(merge.needs_at(site), grid, site)


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
    merge: MergeFacts,
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
