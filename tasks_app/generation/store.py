"""Hot path: a bunch of jobs is stored in one transaction. COPY for what is new, one UPDATE a dataset for what it uses."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import gt
from typing import Any, Final, NamedTuple

import psycopg

from jedisite.database.sql import copy_lines, hash_joins, take_ids
from jedisite.database.sql import numbers as as_array
from jedisite.vocabulary.words import plural
from tasks_app.generation import input_copies
from tasks_app.generation import job_rows as columns
from tasks_app.generation.job_rows import Numbers, SiteJobs
from tasks_app.generation.library_jobs import Source as Sandbox
from tasks_app.generation.library_jobs import attach, attach_sandbox
from tasks_app.generation.rules.common_facts import OutputStream
from tasks_app.generation.rules.sources import Source
from tasks_app.lifecycle import dataset_moves, file_uses, job_hooks, outbox
from tasks_app.models import Dataset
from tasks_app.params.dataset_attributes import IN_CVMFS, Attributes, is_tracked
from tasks_app.params.placeholders import BadTemplate
from tasks_app.params.splitrule import SplitRule
from tasks_app.splitting.chunk import Group, InputFile
from tasks_app.splitting.seeds import take_seeds

ME = "job_generator"
NO_RULE: Final = SplitRule.parse("")


@dataclass(frozen=True, slots=True)
class SeedSource:
    """The dataset of random seed numbers of a task: free numbers as (file id, number), and how many there are."""

    dataset_id: int
    free: Sequence[tuple[int, int]]
    highest: int


@dataclass(frozen=True, slots=True)
class Bunch:
    """Jobs of one task that are stored together: those of each site, and the datasets that they read.

    `sources` are the master and the secondaries in the order of the groups' files, `sandbox` what every job reads besides.
    `rule` is the task's, for jobs of event service.
    """

    sites: Sequence[SiteJobs]
    sources: Sequence[Source]
    seeds: SeedSource | None = None
    sandbox: Sandbox | None = None
    rule: SplitRule = NO_RULE


def store(cursor: psycopg.Cursor[Any], bunch: Bunch) -> int:
    """Store a bunch of jobs with all that belongs to them, in the caller's transaction. Returns their number.

    All sites go into the same statements. Raises CannotStoreError for jobs of event service that can never be made.
    """
    sources, seeds = bunch.sources, bunch.seeds
    groups = [group for site in bunch.sites for group in site.groups]
    count, task, streams = len(groups), bunch.sites[0].task, bunch.sites[0].streams
    numbers, seed_rows = _take_numbers(cursor, streams, count, seeds)
    if bunch.sites[0].consumers is not None:
        numbers = replace(numbers, jobsets=take_ids(cursor, "jobs_pandaid_seq", count))
    shares = _shares(bunch.sites, numbers)
    named = [(site, own, site.output_names(own)) for site, own in shares]
    failures = sources[0].picked.failures
    copy_lines(
        cursor, "jobs", bunch.sites[0].columns, chain.from_iterable(site.jobs(own, failures) for site, own in shares)
    )
    copy_lines(
        cursor,
        "job_params",
        columns.PARAM_COLUMNS,
        chain.from_iterable(site.params(names, own) for site, own, names in named),
    )
    if streams:
        copy_lines(
            cursor,
            "jedi_dataset_contents",
            columns.OUTPUT_CONTENT_COLUMNS,
            chain.from_iterable(site.output_contents(names, own) for site, own, names in named),
        )
        copy_lines(
            cursor,
            "job_files",
            columns.OUTPUT_FILE_COLUMNS,
            chain.from_iterable(site.output_files(names, own) for site, own, names in named),
        )
    copy_lines(
        cursor, "jobs_statuslog", columns.LOG_COLUMNS, chain.from_iterable(site.log(own, ME) for site, own in shares)
    )
    counts = list[Count]()
    for index, source in enumerate(sources):
        counts += _use(cursor, task.id, source, _pairs(groups, index, numbers.jobs))
    for site, own in shares:
        if site.library is not None:
            attach(cursor, task.id, site.library, own.jobs)
        if site.copies is not None:
            input_copies.request(cursor, own.jobs, site.copies, by=ME)
        elif nearby := input_copies.reads_nearby(site.needs, site.site, site.task.label or ""):
            input_copies.read_nearby(cursor, own.jobs, nearby)
    if bunch.sandbox is not None:
        attach_sandbox(task.id, bunch.sandbox, numbers.jobs)
    if seeds is not None:
        counts += _use_seeds(cursor, task.id, seeds.dataset_id, seed_rows, numbers)
    _keep_history(cursor, task.id, groups, numbers.jobs, sources[0].picked.old_jobs)
    more = job_hooks.jobs_are_stored(cursor, _stored(bunch, groups, numbers)) if numbers.jobsets else job_hooks.Beside()
    for site, own in shares if more.jobs else ():
        if site.copies is not None:
            input_copies.request(
                cursor, [one for job in own.jobs for one in more.jobs.get(job, ())], site.copies, by=ME
            )
    made = [(stream.dataset_id, count + more.records.get(stream.dataset_id, 0)) for stream in streams]
    counts += [Count(dataset_id, new=rows, used=rows) for dataset_id, rows in made]
    _count(cursor, counts, [stream.dataset_id for stream in streams])
    if task.push:
        outbox.jobs_changed(cursor, numbers.jobs)
    return count


def _shares(sites: Sequence[SiteJobs], numbers: Numbers) -> list[tuple[SiteJobs, Numbers]]:
    """The jobs of each site with their own of the numbers."""
    if len(sites) == 1:
        return [(sites[0], numbers)]
    shares, begin = [], 0
    for site in sites:
        end = begin + len(site.groups)
        own = Numbers(
            numbers.jobs[begin:end],
            [ids[begin:end] for ids in numbers.output_ids],
            [serials[begin:end] for serials in numbers.serials],
            numbers.seeds[begin:end],
            numbers.jobsets[begin:end],
        )
        shares.append((site, own))
        begin = end
    return shares


def _stored(bunch: Bunch, groups: Sequence[Group], numbers: Numbers) -> job_hooks.StoredJobs:
    """What hooks are told of new jobs of event service."""
    slots = [some for site, some in ((site, site.slots) for site in bunch.sites) for _ in site.groups]
    files, master = [group.files for group in groups], bunch.sources[0]
    again = any(file.attempt or file.file_id in master.picked.old_jobs for some in files for file in some)
    task_id, dataset_id = bunch.sites[0].task.id, master.dataset.id
    return job_hooks.StoredJobs(
        task_id, dataset_id, bunch.rule, numbers.jobs, numbers.jobsets, files, slots, tried_again=again
    )


class Count(NamedTuple):
    """What a bunch adds to the counters of a dataset: rows that are new, rows in use, and the last file handed out."""

    dataset_id: int
    new: int = 0
    used: int = 0
    last: int = 0


def _count(cursor: psycopg.Cursor[Any], counts: list[Count], outputs: list[int]) -> None:
    """Count on all datasets at the end and in the order of their ids, as the adder does: else the two lock each other out."""
    rows = sorted(counts)
    cursor.execute(
        "SELECT 1 FROM jedi_datasets WHERE datasetid = ANY(%s) ORDER BY datasetid FOR UPDATE", [[r[0] for r in rows]]
    )
    cursor.execute(
        dataset_moves.COUNT_STORED,
        [outputs, *(list(column) for column in zip(*rows, strict=True))],
    )


def _take_numbers(
    cursor: psycopg.Cursor[Any], streams: Sequence[OutputStream], count: int, seeds: SeedSource | None
) -> tuple[Numbers, list[int | None]]:
    """Numbers for the jobs, and for each seed number the id of its free row or None when it needs a new one."""
    jobs = take_ids(cursor, "jobs_pandaid_seq", count)
    output_ids, serials = list[Sequence[int]](), list[Sequence[int]]()
    for stream in streams:
        output_ids.append(take_ids(cursor, "public." + _contents_sequence(cursor), count))
        if stream.part:
            serials.append(serials[-1])  # all outputs of one group have its number
            continue
        cursor.execute(
            "UPDATE jedi_output_template SET serialnr = serialnr + %s WHERE outtempid = %s RETURNING serialnr, maxserialnr",
            [count, stream.template_id],
        )
        row = cursor.fetchone()
        assert row is not None
        if row[1] is not None and row[0] - 1 > row[1]:
            raise BadTemplate(f"no numbers are left for the files of {stream.stream}: the highest is {row[1]}")
        serials.append(range(row[0] - count, row[0]))
    if seeds is None:
        return Numbers(jobs, output_ids, serials), []
    by_number = {number: file_id for file_id, number in seeds.free}
    taken = take_seeds(list(by_number), seeds.highest, count)
    return Numbers(jobs, output_ids, serials, taken.numbers), [by_number.get(n) for n in taken.numbers]


_sequence_names: dict[str, str] = {}


def _contents_sequence(cursor: psycopg.Cursor[Any]) -> str:
    """Name of the sequence of file ids."""
    if "contents" not in _sequence_names:
        cursor.execute("SELECT pg_get_serial_sequence('jedi_dataset_contents', 'fileid')")
        row = cursor.fetchone()
        assert row is not None
        _sequence_names["contents"] = row[0].rpartition(".")[2]
    return _sequence_names["contents"]


def _pairs(groups: Sequence[Group], index: int, jobs: Sequence[int]) -> tuple[list[int], list[int]]:
    """(file ids, job ids) of one source, in parallel, by file id."""
    files: list[int] = []
    owners: list[int] = []
    for group, job_id in zip(groups, jobs, strict=True):
        used: Sequence[InputFile] = group.files if index == 0 else group.secondaries[index - 1]
        files += [f[0] for f in used]
        owners += [job_id] * len(used)
    if any(map(gt, files, files[1:])):  # files that came back stand before new ones
        pairs = sorted(zip(files, owners, strict=True))
        return [f for f, _ in pairs], [j for _, j in pairs]
    return files, owners


class FilesTakenError(RuntimeError):
    """Files that were to be used are not ready any more: the transaction must be rolled back."""


def _use(cursor: psycopg.Cursor[Any], task_id: int, source: Source, pairs: tuple[list[int], list[int]]) -> list[Count]:
    """Mark the files as used by their jobs and write the jobs' input rows. Returns what is to be counted."""
    files, jobs = pairs
    if not files:
        return []
    dataset = source.dataset
    values = {
        "files": as_array(files),
        "jobs": as_array(jobs),
        "first": files[0],
        "last": files[-1],
        "task": task_id,
        "dataset": dataset.id,
        "name": dataset.name,
    }
    if not is_tracked(dataset.attributes):
        if IN_CVMFS in Attributes.parse(dataset.attributes):
            return []
        with hash_joins(cursor):
            cursor.execute(file_uses.USE_FREELY, values)
        return []
    cursor.execute(file_uses.USE_TRACKED, values)
    _check_all_used(cursor, files, dataset.id)
    back = files if dataset.in_order else files[: bisect_right(files, dataset.cursor)]
    if back:
        cursor.execute("DELETE FROM file_retries WHERE fileid = ANY(%s)", [back])
    if dataset.in_order:
        return [Count(dataset.id, used=len(files))]
    _keep_passed(cursor, task_id, source, files[len(back) :])
    return [Count(dataset.id, used=len(files), last=files[-1])]


def _check_all_used(cursor: psycopg.Cursor[Any], files: Sequence[int], dataset_id: int) -> None:
    """Raise FilesTakenError unless the statement that has just run has put all of these files to use."""
    if cursor.rowcount != len(files):
        raise FilesTakenError(
            f"{len(files) - cursor.rowcount} of {plural(len(files), 'file')} of dataset {dataset_id} in use already"
        )


def _keep_passed(cursor: psycopg.Cursor[Any], task_id: int, source: Source, used: Sequence[int]) -> None:
    """Files between those used that were left for later are noted before the cursor passes them.

    That happens when jobs do not take new files in the order of their ids: files of another memory stay behind, and
    incomplete jobs that are not wanted.
    """
    if not used:
        return
    files, back = source.picked.files, source.picked.back
    end = bisect_right(files, used[-1], lo=back, key=lambda file: file.file_id)
    if end - back == len(used):
        return
    taken = set(used)
    passed = [file.file_id for file in files[back:end] if file.file_id not in taken]
    cursor.execute(
        "INSERT INTO file_retries (fileid, jeditaskid, datasetid) SELECT f, %s, %s FROM unnest(%s::bigint[]) f",
        [task_id, source.dataset.id, passed],
    )


def leave_out(cursor: psycopg.Cursor[Any], task_id: int, source: Source, left_out: Sequence[InputFile]) -> None:
    """Files of incomplete jobs that are not to be made: those never tried are no inputs any more, others have failed."""
    tried = [f.file_id for f in left_out if f.attempt]
    never = [f.file_id for f in left_out if not f.attempt]
    values = {"task": task_id, "dataset": source.dataset.id, "tried": tried, "never": never}
    cursor.execute("DELETE FROM file_retries WHERE fileid = ANY(%s)", [[*tried, *never]])
    cursor.execute(
        """DELETE FROM jedi_dataset_contents WHERE jeditaskid = %(task)s AND datasetid = %(dataset)s
              AND fileid = ANY(%(never)s::bigint[]) AND status = 'ready'""",
        values,
    )
    cursor.execute(
        """UPDATE jedi_dataset_contents SET maxattempt = attemptnr WHERE jeditaskid = %(task)s AND datasetid = %(dataset)s
              AND fileid = ANY(%(tried)s::bigint[]) AND status = 'ready'""",
        values,
    )
    cursor.execute(
        """UPDATE jedi_datasets SET nfiles = nfiles - cardinality(%(never)s::bigint[]),
                  nfilestobeused = nfilestobeused - cardinality(%(never)s::bigint[]),
                  nfilesused = nfilesused + cardinality(%(tried)s::bigint[]),
                  nfilesfailed = nfilesfailed + cardinality(%(tried)s::bigint[]), modificationtime = clock_timestamp()
            WHERE datasetid = %(dataset)s""",
        values,
    )


def _use_seeds(
    cursor: psycopg.Cursor[Any], task_id: int, dataset_id: int, rows: Sequence[int | None], numbers: Numbers
) -> list[Count]:
    """Give each job its seed number: free rows are taken again, new rows are written for new numbers.

    Returns what is to be counted.
    """
    again = [(file_id, job) for file_id, job in zip(rows, numbers.jobs, strict=True) if file_id is not None]
    if again:
        files = [f for f, _ in again]
        cursor.execute(
            file_uses.USE_SEEDS,
            {"files": as_array(files), "jobs": as_array(j for _, j in again), "task": task_id, "dataset": dataset_id},
        )
        _check_all_used(cursor, files, dataset_id)
        cursor.execute("DELETE FROM file_retries WHERE fileid = ANY(%s)", [files])
    new = [(n, job) for n, job, row in zip(numbers.seeds, numbers.jobs, rows, strict=True) if row is None]
    cursor.execute(
        """WITH made AS (
               INSERT INTO jedi_dataset_contents (jeditaskid, datasetid, lfn, type, status, firstevent, pandaid, keeptrack)
               SELECT %(task)s, %(dataset)s, n.number::text, 'random_seed', 'running', n.number, n.job, 1
                 FROM unnest(%(numbers)s::bigint[], %(jobs)s::bigint[]) n (number, job)
               RETURNING fileid, lfn, pandaid),
           taken AS (SELECT fileid, lfn, pandaid FROM made UNION ALL
                     SELECT c.fileid, c.lfn, c.pandaid FROM jedi_dataset_contents c
                      WHERE c.jeditaskid = %(task)s AND c.datasetid = %(dataset)s AND c.fileid = ANY(%(again)s))
           INSERT INTO job_files (pandaid, jeditaskid, datasetid, fileid, lfn, type, dataset, status)
           SELECT j.pandaid, %(task)s, %(dataset)s, t.fileid, t.lfn, 'random_seed', 'RNDMSEED', 'ready'
             FROM unnest(%(owners)s::bigint[]) j (pandaid) JOIN taken t ON t.pandaid = j.pandaid""",
        {
            "task": task_id,
            "dataset": dataset_id,
            "numbers": [n for n, _ in new],
            "jobs": [j for _, j in new],
            "again": [f for f, _ in again],
            "owners": list(numbers.jobs),
        },
    )
    return [Count(dataset_id, new=len(new), used=len(rows))]


def _keep_history(
    cursor: psycopg.Cursor[Any], task_id: int, groups: Sequence[Group], jobs: Sequence[int], old_jobs: Mapping[int, int]
) -> None:
    """Which job tries the files of which older job again."""
    if not old_jobs:
        return
    pairs = sorted(
        {
            (old_jobs[f.file_id], job)
            for group, job in zip(groups, jobs, strict=True)
            for f in group.files
            if f.file_id in old_jobs
        }
    )
    cursor.execute(
        """INSERT INTO jedi_job_retry_history (jeditaskid, oldpandaid, newpandaid, ins_utc_tstamp, relationtype, originpandaid)
           SELECT %s, p.old, p.new, clock_timestamp(), 'retry',
                  coalesce((SELECT min(h.originpandaid) FROM jedi_job_retry_history h WHERE h.newpandaid = p.old), p.old)
             FROM unnest(%s::bigint[], %s::bigint[]) p (old, new)""",
        [task_id, [o for o, _ in pairs], [n for _, n in pairs]],
    )


def free_seeds(cursor: psycopg.Cursor[Any], task_id: int, limit: int) -> SeedSource | None:
    """Random seed numbers of a task, with the lowest of those that failed jobs have given back; None without seeds."""
    dataset = Dataset.objects.filter(task_id=task_id, type="random_seed").first()
    if dataset is None:
        return None
    cursor.execute(
        """SELECT c.fileid, c.firstevent FROM file_retries r
             JOIN jedi_dataset_contents c ON c.jeditaskid = %(task)s AND c.datasetid = %(dataset)s AND c.fileid = r.fileid
            WHERE r.jeditaskid = %(task)s AND r.datasetid = %(dataset)s ORDER BY c.firstevent LIMIT %(limit)s""",
        {"task": task_id, "dataset": dataset.id, "limit": limit},
    )
    return SeedSource(dataset.id, cursor.fetchall(), dataset.files)
