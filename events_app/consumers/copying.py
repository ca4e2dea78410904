"""Copies of jobs: another consumer of a jobset, the retry of one, the merge job. In sets, in the caller's transaction.

A copy reads the same inputs and has a log of its own. Outputs have one owner, and so have inputs: see `hand_over`. But each
clone writes outputs of its own, named by its number as logs are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

import psycopg

from events_app.rules.event_jobs import EventJobKind
from jedisite.database.sql import numbers, take_ids, texts
from tasks_app.domain.job_file_states import JobFileStatus
from tasks_app.domain.jumbo_use import WAITING_QUEUE
from tasks_app.domain.states import JobStatus
from tasks_app.generation.job_rows import JOB_COLUMNS
from tasks_app.lifecycle.file_handovers import HAND_OVER_INPUTS, HAND_OVER_OUTPUTS
from tasks_app.outcomes.end_hooks import EVENT_MERGE


class CopyKind(Enum):
    """Why a job is copied. Values of `RELATED` are relations of JEDI_Job_Retry_History; a jumbo job follows nobody."""

    CONSUMER = "consumer"
    CLONE = "clone"
    RETRY = "retry"
    MERGE = "es_merge"
    JUMBO = "jumbo"


RELATED: Final = frozenset({CopyKind.RETRY, CopyKind.MERGE})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a copy runs and with what, when not as the old job: its queue, where its log goes, and its slot."""

    queue: str
    log_endpoint: str | None
    cores: int | None
    memory_mb: int | None
    resource_type: str | None


@dataclass(frozen=True, slots=True)
class JobCopy:
    """A job that is to be copied.

    A retry and a merge job have one attempt more than the old job; the attempt of a merge job is its last. None leaves
    what the old job has, but a retry is one more urgent. A jumbo job has neither inputs nor a jobset of others. At
    WAITING_QUEUE a copy waits, and at the queue of a job whose input is still brought there it is assigned, too; elsewhere
    pilots may have it at once. `outputs`: of a clone, the names in its parameters
    that it writes under names of its own.
    """

    old_job: int
    kind: CopyKind
    place: Place | None = None
    priority: int | None = None
    gshare: str | None = None
    transformation: str | None = None
    params: str | None = None
    special_handling: str | None = None
    outputs: Sequence[str] = ()


class Copied(NamedTuple):
    """The numbers of new jobs in the order of what was asked, and how many logs and outputs each dataset has more."""

    jobs: list[int]
    logs: Mapping[int, int]


_IS_JUMBO: Final = f"n.kind = '{CopyKind.JUMBO.value}'"
_IS_RELATED: Final = f"n.kind IN ({', '.join(sorted(repr(kind.value) for kind in RELATED))})"
_OVER: Final = {
    "pandaid": "n.new",
    "jobname": "regexp_replace(j.jobname, '[.]' || n.old || '$', '') || '.' || n.new",
    "attemptnr": f"CASE WHEN {_IS_JUMBO} THEN 1 ELSE j.attemptnr + n.more END",
    "maxattempt": f"CASE WHEN {_IS_JUMBO} THEN 1 WHEN n.kind = '{CopyKind.MERGE.value}' THEN j.attemptnr + n.more"
    " ELSE j.maxattempt END",
    "jobsetid": f"CASE WHEN {_IS_JUMBO} THEN nextval('jobs_pandaid_seq') ELSE j.jobsetid END",
    "ninputdatafiles": f"CASE WHEN {_IS_JUMBO} THEN 0 ELSE j.ninputdatafiles END",
    "inputfilebytes": f"CASE WHEN NOT {_IS_JUMBO} THEN j.inputfilebytes END",
    "maxwalltime": f"CASE WHEN NOT {_IS_JUMBO} THEN j.maxwalltime END",
    "maxcpucount": f"CASE WHEN NOT {_IS_JUMBO} THEN j.maxcpucount END",
    "nevents": f"CASE WHEN n.kind = '{CopyKind.CLONE.value}' THEN j.nevents END",
    "currentpriority": "coalesce(n.priority, j.currentpriority + n.more)",
    "assignedpriority": "coalesce(n.priority, j.assignedpriority + n.more)",
    "jobstatus": f"CASE WHEN coalesce(n.queue, j.computingsite) = '{WAITING_QUEUE}' THEN '{JobStatus.WAITING}'"
    f" WHEN n.queue IS NULL AND NOT {_IS_RELATED} AND NOT {_IS_JUMBO} AND j.jobstatus = '{JobStatus.ASSIGNED}'"
    f" THEN '{JobStatus.ASSIGNED}' ELSE '{JobStatus.ACTIVATED}' END",
    "creationtime": "clock_timestamp()",
    "modificationtime": "clock_timestamp()",
    "statechangetime": "clock_timestamp()",
    "transformation": "coalesce(n.transformation, j.transformation)",
    "computingsite": "coalesce(n.queue, j.computingsite)",
    "gshare": "coalesce(n.gshare, j.gshare)",
    "resource_type": "CASE WHEN n.queue IS NULL THEN j.resource_type ELSE n.resource_type END",
    "corecount": "CASE WHEN n.queue IS NULL THEN j.corecount ELSE n.cores END",
    "minramcount": "CASE WHEN n.queue IS NULL THEN j.minramcount ELSE n.memory_mb END",
    "specialhandling": "coalesce(n.special_handling, j.specialhandling)",
    "fence": "0",
    "eventservice": f"CASE WHEN n.kind = '{CopyKind.MERGE.value}' THEN {EVENT_MERGE}"
    f" WHEN {_IS_JUMBO} THEN {int(EventJobKind.JUMBO)} ELSE j.eventservice END",
    "parentid": f"CASE WHEN {_IS_RELATED} THEN n.old ELSE j.parentid END",
}
"""What a copy has of its own; the other columns of new jobs are as in the old one, and what jobs get later is empty."""
_COLUMNS: Final = (*JOB_COLUMNS, "eventservice", "parentid")
_WANTED: Final = """WITH n AS MATERIALIZED (
    SELECT * FROM unnest(%(new)s::bigint[], %(old)s::bigint[], %(kind)s::text[], %(more)s::smallint[], %(priority)s::int[],
        %(gshare)s::text[], %(transformation)s::text[], %(params)s::text[], %(special_handling)s::text[], %(queue)s::text[],
        %(log_endpoint)s::text[], %(cores)s::smallint[], %(memory_mb)s::bigint[], %(resource_type)s::text[])
      n (new, old, kind, more, priority, gshare, transformation, params, special_handling, queue, log_endpoint, cores,
         memory_mb, resource_type))"""
# ruff: noqa: S608 - every piece is a constant of ours
# A tracked input counts for the job that has it.
_COPY: Final = f"""
{_WANTED},
made AS (
    INSERT INTO jobs ({", ".join(_COLUMNS)})
    SELECT {", ".join(_OVER.get(name, f"j.{name}") for name in _COLUMNS)} FROM n JOIN jobs j ON j.pandaid = n.old
    RETURNING pandaid, jeditaskid, computingsite, jobstatus),
logged AS (
    INSERT INTO jobs_statuslog (pandaid, jobstatus, modificationtime, computingsite, actor, reason)
    SELECT pandaid, jobstatus, clock_timestamp(), computingsite, %(by)s, %(reason)s FROM made),
called AS (
    INSERT INTO job_params (pandaid, jobparameters)
    SELECT n.new, coalesce(n.params, p.jobparameters) FROM n JOIN job_params p ON p.pandaid = n.old),
reads AS (
    INSERT INTO job_files (pandaid, jeditaskid, datasetid, fileid, type, lfn, scope, dataset, destinationdblock, destinationse,
           guid, fsize, checksum, attemptnr, nevents, startevent, endevent, surl, status)
    SELECT n.new, f.jeditaskid, f.datasetid, f.fileid, f.type, f.lfn, f.scope, f.dataset, f.destinationdblock, f.destinationse,
           f.guid, f.fsize, f.checksum, f.attemptnr, f.nevents, f.startevent, f.endevent, f.surl,
           CASE WHEN c.keeptrack = 1 AND f.type <> 'lib' THEN '{JobFileStatus.AGAIN}' ELSE f.status END
      FROM n JOIN job_files f ON f.pandaid = n.old
      LEFT JOIN jedi_dataset_contents c ON c.jeditaskid = f.jeditaskid AND c.datasetid = f.datasetid AND c.fileid = f.fileid
     WHERE f.type NOT IN ('output', 'log', 'trn_output', 'trn_log', 'zipinput', 'zipoutput')
       AND (NOT {_IS_JUMBO} OR f.type NOT IN ('input', 'pseudo_input', 'random_seed')) ORDER BY n.new, f.row_id)
INSERT INTO jedi_job_retry_history (jeditaskid, oldpandaid, newpandaid, ins_utc_tstamp, relationtype, originpandaid)
SELECT m.jeditaskid, n.old, n.new, clock_timestamp(), n.kind,
       coalesce((SELECT min(h.originpandaid) FROM jedi_job_retry_history h WHERE h.newpandaid = n.old), n.old)
  FROM n JOIN made m ON m.pandaid = n.new WHERE {_IS_RELATED}
"""
# What goes to the storage of the queue goes to that of the copy's queue; its own storage an output keeps.
_COPY_LOGS: Final = f"""
{_WANTED},
logs AS MATERIALIZED (
    SELECT n.new, f.jeditaskid, f.datasetid, f.scope, f.dataset, f.destinationdblock, f.type,
           CASE WHEN f.type = 'log' OR f.destinationse = (SELECT min(l.destinationse) FROM job_files l
                                                           WHERE l.pandaid = n.old AND l.type = 'log')
                THEN coalesce(n.log_endpoint, f.destinationse) ELSE f.destinationse END AS destinationse,
           CASE WHEN f.type = 'log' THEN regexp_replace(f.lfn, '[.]' || n.old || '$', '') || '.' || n.new
                ELSE regexp_replace(f.lfn, '([.][^.]*)?$', '.' || n.new || '\\1') END AS lfn
      FROM n JOIN job_files f ON f.pandaid = n.old
                             AND (f.type = 'log' OR f.type = 'output' AND n.kind = '{CopyKind.CLONE.value}')),
records AS (
    INSERT INTO jedi_dataset_contents (jeditaskid, datasetid, lfn, type, status, scope, attemptnr, failedattempt, ramcount,
           keeptrack, pandaid, outpandaid)
    SELECT jeditaskid, datasetid, lfn, type, 'defined', scope, 0, 0, 0, 1, new, new FROM logs
    RETURNING fileid, datasetid, pandaid, lfn),
rows AS (
    INSERT INTO job_files (pandaid, jeditaskid, datasetid, fileid, type, lfn, scope, dataset, destinationdblock, destinationse,
           guid, attemptnr, status)
    SELECT l.new, l.jeditaskid, l.datasetid, r.fileid, l.type, l.lfn, l.scope, l.dataset, l.destinationdblock, l.destinationse,
           CASE WHEN l.type = 'log' THEN gen_random_uuid()::text END, 0, '{JobFileStatus.DEFINED}'
      FROM logs l JOIN records r ON r.pandaid = l.new AND r.datasetid = l.datasetid AND r.lfn = l.lfn)
SELECT datasetid, count(*) FROM logs GROUP BY datasetid
"""


def copy_jobs(cursor: psycopg.Cursor[Any], copies: Sequence[JobCopy], *, by: str, reason: str = "") -> Copied:
    """Make copies of jobs that the caller has stored or locked; pilots may have them at once. Three statements.

    Of a tracked input the copy's row says that another job has it. The caller counts the logs on their datasets, as
    records that are new and in use, when it counts all else: a transaction locks its datasets once, in their order.
    """
    if not copies:
        return Copied([], {})
    jobs = take_ids(cursor, "jobs_pandaid_seq", len(copies))
    places = [copy.place or Place("", None, None, None, None) for copy in copies]
    values = {
        "new": numbers(jobs),
        "old": numbers(copy.old_job for copy in copies),
        "kind": texts(copy.kind.value for copy in copies),
        "more": numbers(int(copy.kind in RELATED) for copy in copies),
        "priority": numbers(copy.priority for copy in copies),
        "gshare": texts(copy.gshare for copy in copies),
        "transformation": texts(copy.transformation for copy in copies),
        "params": texts(_own_params(copy, job) for copy, job in zip(copies, jobs, strict=True)),
        "special_handling": texts(copy.special_handling for copy in copies),
        "queue": texts(place.queue or None for place in places),
        "log_endpoint": texts(place.log_endpoint for place in places),
        "cores": numbers(place.cores for place in places),
        "memory_mb": numbers(place.memory_mb for place in places),
        "resource_type": texts(place.resource_type for place in places),
    }
    cursor.execute(_COPY, {**values, "by": by, "reason": reason})
    cursor.execute(_COPY_LOGS, values)
    return Copied(jobs, {dataset: count for dataset, count in cursor.fetchall()})


def hand_over(cursor: psycopg.Cursor[Any], task_id: int, olds: Collection[int], new: int) -> None:
    """What these jobs have goes to another job of their jobset: inputs in use, and the records of outputs. Two statements.

    None of them need be locked: whoever ends one of them waits for the jobset, which the caller holds.
    """
    given = [old for old in olds if old != new]
    if given:
        hand_over_inputs(cursor, task_id, given, new)
        cursor.execute(HAND_OVER_OUTPUTS, {"task": task_id, "olds": numbers(given), "new": new})


def hand_over_inputs(cursor: psycopg.Cursor[Any], task_id: int, olds: Collection[int], new: int) -> None:
    """The same of inputs alone, among clones: each has outputs of its own."""
    given = [old for old in olds if old != new]
    if given:
        values = {"task": task_id, "olds": numbers(given), "new": new, "jobs": numbers([*given, new])}
        cursor.execute(HAND_OVER_INPUTS, values)


def _own_params(copy: JobCopy, job: int) -> str | None:
    """The parameters of a copy, with the names of its own outputs."""
    if not copy.outputs or copy.params is None:
        return copy.params
    text, names = copy.params, sorted(copy.outputs, key=len, reverse=True)
    # First marks that no text has, the longest name first: a name may be the beginning of another, and of its own.
    for place, name in enumerate(names):
        text = text.replace(name, f"\0{place}\0")
    for place, name in enumerate(names):
        text = text.replace(f"\0{place}\0", own_name(name, job))
    return text


def own_name(name: str, job: int) -> str:
    """The name of a clone's own output: its number stands before the last extension."""
    head, dot, extension = name.rpartition(".")
    return f"{head}.{job}.{extension}" if dot else f"{name}.{job}"
